"""What a worker did, out of what it told: attempts, and whose a crash is. No input or output of its own."""

from typing import Literal

import msgspec

from lomi.lab.events import Began, Ended, Finished, Heard, NotCollected, PhaseEnded, Unreadable
from lomi.lab.shard import Attempt, Part, Phase, Verdict, Work

_PARTS: dict[str, Part] = {"setup": "setup", "call": "test", "teardown": "teardown"}
_NEXT: dict[str, Part] = {"setup": "test", "call": "teardown", "teardown": "worker"}


class Account:
    """Keeps account of one worker.

    Args:
        works: what it was given, in order.
        shard: the shard's number.
        host: where it runs.
    """

    def __init__(self, works: tuple[Work, ...], shard: int, host: str) -> None:
        self._works = {work.test.id: work for work in works}
        self._shard = shard
        self._host = host
        self._attempts: dict[str, Attempt] = {}
        self._broken: dict[str, str] = {}
        self.current: Work | None = None
        """The test that runs now."""
        self.part: Part = "worker"
        """What the worker's time goes to now."""
        self.told_end = False
        self._began = 0.0
        self._phases: list[PhaseEnded] = []
        self._unread = False

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt that has ended, in the order of their ends."""
        return tuple(self._attempts.values())

    def hear(self, event: Heard) -> None:
        """Take in one event. One about a test that does not run, or that ran already, is not believed."""
        match event:
            case Began(test=test, at=at) if self.current is None and test not in self._attempts:
                self.current = self._works.get(test)
                self._began, self._phases, self.part = at, [], "setup" if self.current else self.part
                self._unread = False
            case PhaseEnded(test=test) if self.current is not None and self.current.test.id == test:
                self._phases.append(event)
                self.part = _NEXT[event.when]
            case Ended(test=test, at=at) if self.current is not None and self.current.test.id == test:
                self._keep(self._judged(at))
            case NotCollected(node=node, text=text):
                self._broken[node] = text
            case Unreadable():
                self._unread = True
            case Finished():
                self.told_end = True
            case _:
                return

    def uncollected(self, at: float) -> None:
        """Tests that the worker could not find, or whose file it could not collect, have failed for that reason."""
        for test, work in self._works.items():
            if test in self._attempts:
                continue
            text = self._broken.get(test) or self._broken.get(work.test.file)
            if text is not None:
                reason = (text.strip().splitlines() or ["not collected"])[-1]
                self._keep(self._attempt(work, "failed", reason, began=at, ended=at, detail=text))

    def cut(self, verdict: Literal["failed", "infra_error"], reason: str, at: float, output: str = "") -> None:
        """The worker is gone: the test that ran ends with this verdict, unless none ran."""
        if self.current is not None:
            self._keep(self._attempt(self.current, verdict, reason, began=self._began, ended=at, output=output))

    def blame(self, test: str, reason: str) -> None:
        """A test that failed did so since something of the lab failed under it."""
        failed = self._attempts[test]
        said = f"{reason}: {failed.reason}" if failed.reason else reason
        self._attempts[test] = msgspec.structs.replace(failed, verdict="infra_error", reason=said)

    def _judged(self, at: float) -> Attempt:
        assert self.current is not None
        failed = next((phase for phase in self._phases if phase.outcome == "failed"), None)
        skipped = next((phase for phase in self._phases if phase.outcome == "skipped"), None)
        spoken = failed or skipped or next((phase for phase in self._phases if phase.reason), None)
        gap = self._gap()
        verdict: Verdict = "failed" if failed else "infra_error" if gap else "skipped" if skipped else "passed"
        details = [phase.detail for phase in self._phases if phase.outcome == "failed" and phase.detail]
        return self._attempt(
            self.current,
            verdict,
            gap if gap and not failed else spoken.reason if spoken else "",
            began=self._began,
            ended=at,
            detail="\n\n".join(details),
            place=(failed.file, failed.line) if failed else (None, None),
            output="\n".join(dict.fromkeys(phase.output for phase in self._phases if phase.output)),
        )

    def _gap(self) -> str:
        """What is missing for a verdict that is no failure: whatever was not told may have been one; "" for nothing."""
        if self._unread:
            return "a line in which pytest told of the test could not be read"
        if not self._phases:
            return "pytest said nothing about the test"
        if any(phase.when == "call" or phase.outcome == "skipped" or phase.expected for phase in self._phases):
            return ""
        return "pytest said nothing about the call of the test"

    def _attempt(
        self,
        work: Work,
        verdict: Verdict,
        reason: str,
        *,
        began: float,
        ended: float,
        detail: str = "",
        place: tuple[str | None, int | None] = (None, None),
        output: str = "",
    ) -> Attempt:
        phases = tuple(
            Phase(part=_PARTS[phase.when], began=phase.began, seconds=phase.seconds, outcome=phase.outcome)
            for phase in (self._phases if work is self.current else ())
        )
        return Attempt(
            test=work.test.id,
            attempt=work.attempt,
            shard=self._shard,
            verdict=verdict,
            reason=reason,
            detail=detail,
            file=place[0] or work.test.file,
            line=place[1] or work.test.line,
            host=self._host,
            began=began,
            ended=max(began, ended),
            phases=phases,
            output=output,
        )

    def _keep(self, attempt: Attempt) -> None:
        self._attempts[attempt.test] = attempt
        if self.current is not None and self.current.test.id == attempt.test:
            self.current, self.part = None, "worker"
