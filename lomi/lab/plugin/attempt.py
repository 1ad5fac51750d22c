"""One attempt at one test while it runs: what it uses, where its time goes, what it leaves."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from lomi.client.acts import Act
from lomi.client.lab import Lab, Page, Phone, Terminal
from lomi.contract.model import Result
from lomi.lab.plugin.films import Films
from lomi.lab.records import (
    ArtifactRecord,
    AttemptRecord,
    Cause,
    DeviceRecord,
    Outcome,
    PhaseTimes,
    ReceiptRecord,
)

Measured = Literal["queue", "boot", "evidence"]
Phase = Literal["setup", "call", "teardown"]


class Attempt:
    """Made when its set-up begins; everything that it took is told here.

    Attributes:
        node_id: pytest's id of the test.
        number: from 1.
        phones: those that it leased; pages and terminals likewise.
        films: what is recorded of them.
        cause: why it did not pass, as soon as that is known.
        infra: whether the cause is none of the test's.
    """

    def __init__(self, node_id: str, number: int, lab: Lab | None) -> None:
        self.node_id = node_id
        self.number = number
        self.started_at = time.time()
        self.phones: list[Phone] = []
        self.pages: list[Page] = []
        self.terminals: list[Terminal] = []
        self.artifacts: list[ArtifactRecord] = []
        self.films = Films()
        self.cause: Cause | None = None
        self.infra = False
        self.in_setup = False
        self.outcome: Outcome = "passed"
        self.note: Literal["xfailed", "xpassed"] | None = None
        self.account = ""
        self._devices: dict[str, DeviceRecord] = {}
        self._seconds: dict[str, float] = {}
        self._within = ""
        self._lab = lab
        self._mark = lab.acted if lab is not None else 0

    def uses(self, lab: Lab) -> None:
        """The connection was made, or made again, in this attempt."""
        self._lab, self._mark = lab, 0

    @property
    def lab(self) -> Lab | None:
        """The connection that it uses, None before there is one."""
        return self._lab

    @contextmanager
    def measuring(self, what: Measured) -> Iterator[None]:
        """Count the time of a part of a phase apart from the phase; parts of parts belong to the inner one."""
        outer, began, inside = self._within, time.monotonic(), dict(self._seconds)
        self._within = what
        try:
            yield
        finally:
            self._within = outer
            took = time.monotonic() - began
            inner = sum(self._seconds.get(name, 0.0) - inside.get(name, 0.0) for name in ("queue", "boot", "evidence"))
            self._seconds[what] = self._seconds.get(what, 0.0) + took - inner

    def phase_took(self, phase: Phase, seconds: float) -> None:
        """A phase has ended, after so many seconds on pytest's clock."""
        self._seconds[phase] = seconds
        if phase == "setup":
            self._seconds["in_setup"] = self._seconds.get("queue", 0.0) + self._seconds.get("boot", 0.0)

    def took(self, kind: Literal["phone", "page", "terminal"], name: str, device: Phone | Page | Terminal) -> None:
        """Remember a device in its present generation."""
        self._devices[device.generation] = DeviceRecord(
            kind=kind,
            name=name,
            panel_id=device.panel_id,
            generation=device.generation,
            device_id=device.device_id if isinstance(device, Phone) else None,
            simulated=device.simulated if isinstance(device, Phone) else None,
        )

    def acts(self) -> tuple[Act[Result], ...]:
        """What this attempt did, as far as the client remembers."""
        if self._lab is None:
            return ()
        count = self._lab.acted - self._mark
        return self._lab.receipts[-count:] if count > 0 else ()

    def receipts(self) -> tuple[ReceiptRecord, ...]:
        """Their receipts."""
        return tuple(
            ReceiptRecord(
                operation_id=act.operation_id,
                tool=act.tool,
                state=str(act.state),
                effect_state=str(act.effect),
                at=act.at,
                generation=act.generation,
                code=str(act.failure.code) if act.failure is not None else None,
                reason=act.failure.reason if act.failure is not None else None,
            )
            for act in self.acts()
        )

    def record(self, worker: str, *, final: bool) -> AttemptRecord:
        """The attempt as it is written down."""
        seconds = self._seconds
        return AttemptRecord(
            node_id=self.node_id,
            attempt=self.number,
            final=final,
            outcome=self.outcome,
            note=self.note,
            started_at=self.started_at,
            times=PhaseTimes(
                queue_s=seconds.get("queue", 0.0),
                boot_s=seconds.get("boot", 0.0),
                setup_s=max(0.0, seconds.get("setup", 0.0) - seconds.get("in_setup", 0.0)),
                call_s=seconds.get("call", 0.0),
                teardown_s=seconds.get("teardown", 0.0) + seconds.get("evidence", 0.0),
            ),
            worker=worker,
            broker=self._lab.instance_id if self._lab is not None else None,
            leased=tuple(self._devices.values()),
            receipts=self.receipts(),
            artifacts=tuple(self.artifacts),
            cause=self.cause,
        )
