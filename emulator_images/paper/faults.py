"""Fault plans: the ways in which real emulators fail, on demand.

A plan is a TOML file with `[[fault]]` tables:

    [[fault]]
    name = "slow_dump"   # one of FaultName
    after = 2            # let this many occasions pass first (default 0)
    times = 1            # strike this often (default 0: always)
    seconds = 3.0        # how long, where the fault has a length
    text = "..."         # noise, message or package, where the fault needs one
    value = 4            # a number, where the fault needs one (an exit code, a count)
"""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec

FaultName = Literal[
    "never_boots", "boot_loop", "slow_boot", "services_late", "offline", "unauthorized", "systemui_anr", "slow_dump",
    "failed_dump", "dump_noise", "text_before_png", "empty_png", "truncated_png", "black_secure", "black_picture",
    "failed_picture", "ignored_input", "lost_reply", "slow_input", "slow_install", "failed_install", "port_taken",
    "stale_lock", "stale_pid_file", "ignored_kill", "held_pipes", "name_late", "adb_silent", "exit_early",
    "renderer_disabled", "disk_full", "display_off", "shell_hangs", "cut_connection",
]  # fmt: skip


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One planned fault; see the module's text for the fields."""

    name: FaultName
    after: int = 0
    times: int = 0
    seconds: float = 0.0
    text: str = ""
    value: int = 0


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    fault: tuple[Fault, ...] = ()


class BadFaultPlanError(Exception):
    """Raised when a fault plan cannot be read; names the file and the mistake."""


class Faults:
    """The faults still to come; each occasion is counted."""

    def __init__(self, planned: tuple[Fault, ...] = ()) -> None:
        self._planned: list[list[int]] = []
        self._faults: list[Fault] = []
        for fault in planned:
            self.add(fault)

    @classmethod
    def load(cls, path: Path) -> "Faults":
        """Read a plan.

        Raises:
            BadFaultPlanError: the file is missing or no plan.
        """
        try:
            plan = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _Plan)
        except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise BadFaultPlanError(f"{path}: {error}") from error
        return cls(plan.fault)

    def add(self, fault: Fault) -> None:
        """Plan another fault."""
        self._faults.append(fault)
        self._planned.append([fault.after, fault.times])

    def clear(self, name: str = "") -> None:
        """Forget the faults of a name, or all."""
        kept = [pair for pair in zip(self._faults, self._planned, strict=True) if name and pair[0].name != name]
        self._faults = [fault for fault, _ in kept]
        self._planned = [left for _, left in kept]

    def strikes(self, name: FaultName) -> Fault | None:
        """An occasion for a fault: the fault when it strikes now, else None."""
        for fault, left in zip(self._faults, self._planned, strict=True):
            if fault.name != name or left[1] < 0:
                continue
            if left[0] > 0:
                left[0] -= 1
                continue
            if fault.times:
                left[1] -= 1
                if left[1] == 0:
                    left[1] = -1
            return fault
        return None
