"""Fault plans: the ways in which real emulators fail, on demand.

A plan is a TOML file with `[[fault]]` tables:

    [[fault]]
    name = "slow_dump"   # one of FaultName
    after = 2            # let this many occasions pass first (default 0)
    times = 1            # strike this often (default 0: always)
    delay = 1.0          # for timed faults: seconds after the phone is ready
    seconds = 3.0        # how long, where the fault has a length
    text = "..."         # noise, message or package, where the fault needs one
    value = 4            # a number, where the fault needs one (an exit code, a count)
"""

import asyncio
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

FaultName = Literal[
    # start of the process
    "exit_early",  # prints `text` and exits with code 1
    "port_taken",  # says that the ports are taken
    "stale_lock",  # believes a lock file whatever its owner
    "stale_pid_file",  # leaves the discovery file behind at the end
    "held_pipes",  # starts a child that holds stdout and stderr for `seconds`
    "name_late",  # does not know its AVD name for `seconds`
    # boot
    "never_boots",  # stops before the stage named `text`: kernel, adbd, services, completed, ready
    "boot_loop",  # reboots by itself once ready
    "slow_boot",  # the boot takes `seconds` more
    "services_late",  # the boot flag comes, services answer `seconds` later
    "systemui_anr",  # a dialog says that `text` (System UI) does not respond
    "renderer_disabled",  # draws nothing, as headless test images do
    # adb
    "unauthorized",  # takes every key for a stranger's, for `seconds` or for ever
    "offline",  # timed: cuts adb and stays silent for `seconds`
    "adb_silent",  # takes a connection and says nothing on it
    "cut_connection",  # drops the connection when a service is opened
    "adb_server_replaced",  # timed: another adb kills the server at `text`, a port or socket path
    "shell_hangs",  # a shell command hangs for `seconds`
    # the emulator's gRPC
    "grpc_absent",  # is not served, whatever the command line asks for
    "grpc_fails",  # answers every call with UNAVAILABLE
    # observation
    "slow_dump", "failed_dump", "dump_noise", "text_before_png", "empty_png", "truncated_png", "black_secure",
    "black_picture", "failed_picture",
    "slow_picture",  # half of a picture comes at once, the rest `seconds` later
    "cut_picture",  # half of a picture comes, then its shell ends
    # action
    "ignored_input", "slow_input",
    "dropped_keys",  # of a typed text every key number `value` is swallowed
    "moved_focus",  # after `value` keys of a typed text the field `text` has the focus
    "slow_typing",  # after `value` keys of a typed text the next one comes `seconds` later, or once this is cleared
    "late_change",  # `seconds` after a touch was answered the item of `text`, as ID=WORDS, changes too
    "lost_reply",  # the input lands, its answer comes `seconds` later or never
    "slow_install", "failed_install",
    "disk_full",
    "display_off",  # timed
    # end
    "ignored_kill",  # the console says it kills and does not
    "ignored_term",  # SIGTERM is ignored
    "dies",  # timed: prints `text` and is gone with exit code `value`, locks and files left behind
]  # fmt: skip


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One planned fault; see the module's text for the fields."""

    name: FaultName
    after: int = 0
    times: int = 0
    delay: float = 0.0
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
        self.changed = asyncio.Event()
        self._cleared = asyncio.Event()
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
        self.changed.set()

    def clear(self, name: str = "") -> None:
        """Forget the faults of a name, or all."""
        kept = [pair for pair in zip(self._faults, self._planned, strict=True) if name and pair[0].name != name]
        self._faults = [fault for fault, _ in kept]
        self._planned = [left for _, left in kept]
        cleared, self._cleared = self._cleared, asyncio.Event()
        cleared.set()

    async def last(self, fault: Fault) -> None:
        """Wait for as long as a fault that struck lasts: its `seconds`, or until it is cleared."""
        with suppress(TimeoutError):
            async with asyncio.timeout(fault.seconds):
                while any(one is fault for one in self._faults):
                    await self._cleared.wait()

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
