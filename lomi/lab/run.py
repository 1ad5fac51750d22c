"""One run from its plan to its report: list, open, conduct, write, anchor."""

import asyncio
import hashlib
import os
import platform
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import msgspec

from lomi.disk.home import state_home
from lomi.lab.book import Book, open_book
from lomi.lab.collecting import listed_tests
from lomi.lab.conductor import Conductor, Task
from lomi.lab.engine import Engine, NeedsUnmetError
from lomi.lab.engines.local import LocalSetting
from lomi.lab.engines.opening import opened_engine
from lomi.lab.files import FolderUnsendableError, is_text, shelve
from lomi.lab.lanes import HostClock
from lomi.lab.outcome import NOT_WRITTEN, outcome_of
from lomi.lab.plan import Plan, PlanError, PlanFault, read_plan
from lomi.lab.quarantine import needs_of, reason_for, warnings
from lomi.lab.report.history import History, read_history
from lomi.lab.report.model import RunReport, ShardReport, TestReport, recorded_seconds
from lomi.lab.report.saving import ANCHOR, Anchor, prepared, put, save
from lomi.lab.retries import RetryPolicy
from lomi.lab.shard import FileByHash, PlannedTest, Segment
from lomi.lab.shelf import FolderShelf

Listener = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrder:
    """What to run and what comes from outside. `into` overrides the plan's folder for the report, None does not.

    `told` hears one line at a time about what happens.
    """

    plan: Path
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    told: Listener
    today: date
    into: Path | None = None
    engine: str = "local"
    clock: HostClock


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A finished run: its report as a value, where it was written, the tests' folder, and what was not written."""

    report: RunReport
    folder: Path
    tests: Path
    unwritten: str | None = None

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        return NOT_WRITTEN if self.unwritten is not None else self.report.exit_code


async def run_plan(order: RunOrder) -> RunEnd:
    """Run a plan. SIGINT and SIGTERM cancel it: what runs is ended, and if tests were listed, there is a report.

    Raises:
        PlanError: the plan is wrong; nothing was started.
        FolderTakenError: the report's folder holds other things.
        UnknownEngineError: there is no such engine.
        OSError: the report's folder can't be made.
    """
    with _cancelling(order.told) as wish:
        return await _run(order, wish)


async def _run(order: RunOrder, wish: "_Wish") -> RunEnd:
    plan, content = await asyncio.to_thread(_read, order.plan)
    base = order.plan.absolute().parent
    folder = (base / plan.tests.folder).resolve()
    into = (order.into or base / plan.report.into).absolute()
    history, unread = await asyncio.to_thread(read_history, into)
    seconds = await asyncio.to_thread(_earlier_seconds, plan, base, history)
    began = order.clock.now()
    tests = await listed_tests(
        plan.tests, folder, order.arguments, order.environment, max(60.0, plan.deadlines.worker_s)
    )
    listed_s = order.clock.now() - began
    wish.planned()
    await asyncio.to_thread(prepared, into, history)
    odd = (*warnings(tests, plan.quarantine, order.today), *((unread,) if unread is not None else ()))
    order.told(f"{len(tests)} tests planned, {plan.worker_count} at a time")
    with tempfile.TemporaryDirectory(prefix="lomi-lab-", ignore_cleanup_errors=True) as place:
        shelf = FolderShelf(Path(place) / "shelf")
        (scratch := Path(place) / "scratch").mkdir()
        setting = LocalSetting(
            plan=plan,
            folder=folder,
            environment=order.environment,
            shelf=shelf,
            scratch=scratch,
            clock=order.clock,
        )
        async with opened_engine(order.engine, setting) as engine:
            task = await _task(order, plan, content, tests, seconds, engine, setting, into)
            conductor, segments = await _conducted(order, task, engine, wish)
            report = _report(order, task, conductor, segments, listed_s, odd)
            history = history.with_run(report.tests)
            report = msgspec.structs.replace(report, tests=tuple(history.told(test) for test in report.tests))
            return await _written(order, report, setting, into, engine, history)


def _read(path: Path) -> tuple[Plan, bytes]:
    plan = read_plan(path)
    return plan, path.read_bytes()


def _earlier_seconds(plan: Plan, base: Path, history: History) -> dict[str, float]:
    """What tests took in the report that the plan names; of those that it lacks, the last time that is known.

    Raises:
        PlanError: it can't be read.
    """
    if plan.shards.timing is None:
        return {}
    path = base / plan.shards.timing
    try:
        return {**history.seconds, **recorded_seconds(path.read_bytes())}
    except (OSError, msgspec.DecodeError) as error:
        raise PlanError(PlanFault(None, "shards.timing", f"{path} is no report of an earlier run: {error}")) from error


async def _task(
    order: RunOrder,
    plan: Plan,
    content: bytes,
    tests: tuple[PlannedTest, ...],
    seconds: Mapping[str, float],
    engine: Engine,
    setting: LocalSetting,
    into: Path,
) -> Task:
    """What the conductor needs.

    Raises:
        PlanError: some test needs what this engine could never give, or the hosts can't be sent what it takes.
    """
    needs = {test.id: needs_of(test, plan.needs, plan.phones) for test in tests}
    for test in tests:
        try:
            engine.check(needs[test.id])
        except NeedsUnmetError as unmet:
            raise PlanError(PlanFault(None, "needs", f"{test.id}: {unmet}")) from unmet
    files: tuple[FileByHash, ...] = ()
    if engine.ships_files:
        if not all(is_text(argument) for argument in order.arguments):
            raise PlanError(PlanFault(None, "", "an argument for pytest is no UTF-8, so no other host could have it"))
        try:
            files = await asyncio.to_thread(shelve, setting.folder, setting.shelf, frozenset({into}))
        except FolderUnsendableError as error:
            raise PlanError(PlanFault(None, "tests.folder", str(error))) from error
    return Task(
        plan=plan,
        plan_sha256=hashlib.sha256(content).hexdigest(),
        tests=tests,
        needs=needs,
        seconds=seconds,
        arguments=order.arguments,
        files=files,
    )


async def _conducted(order: RunOrder, task: Task, engine: Engine, wish: "_Wish") -> tuple[Conductor, list[Segment]]:
    retries = task.plan.retries
    book = open_book(task.tests, RetryPolicy(failed=retries.failed, infra=retries.infra, most=retries.most))
    conductor = Conductor(task, engine, book, order.clock, _Progress(order.told, len(task.tests)).heard)
    wish.heard_by(conductor)
    await conductor.conduct()
    last = await engine.finish()
    return conductor, [*conductor.segments, *last]


class _Wish:
    """A person's wish to end the run: the first signal cancels it in good order, the second at once.

    While the tests are listed there is nothing to report, and the first one ends it at once, too.
    """

    def __init__(self, told: Listener, give_up: Callable[[], object]) -> None:
        self._told = told
        self._give_up = give_up
        self._first: signal.Signals | None = None
        self._planned = self._given_up = False
        self._conductor: Conductor | None = None

    def planned(self) -> None:
        """From now on there is a report to write."""
        self._planned = True

    def heard_by(self, conductor: Conductor) -> None:
        """From now on this conductor is told, also of a signal that came before."""
        self._conductor = conductor
        if self._first is not None:
            conductor.stop("cancelled", f"the run was cancelled by {self._first.name}")

    def come(self, number: signal.Signals) -> None:
        """A signal. Once the run is given up, further ones change nothing: what ends, ends whole."""
        if self._given_up:
            return
        if self._first is not None or not self._planned:
            self._given_up = True
            self._give_up()
            return
        self._first = number
        self._told(f"{number.name}: ending what runs; once more gives up the report")
        if self._conductor is not None:
            self._conductor.stop("cancelled", f"the run was cancelled by {number.name}")


@contextmanager
def _cancelling(told: Listener) -> Iterator[_Wish]:
    """Hear SIGINT, SIGTERM and SIGHUP as wishes, until everything that was started has ended."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    wish, numbers = _Wish(told, task.cancel), [signal.SIGINT, signal.SIGTERM]
    # Started with nohup, it outlives its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, wish.come, number)
    try:
        yield wish
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


class _Progress:
    """Says each test's end once."""

    def __init__(self, told: Listener, planned: int) -> None:
        self._told = told
        self._planned = planned
        self._said: set[str] = set()

    def heard(self, book: Book) -> None:
        """Say what is new."""
        for name, entry in book.entries.items():
            if entry.state is None or name in self._said:
                continue
            self._said.add(name)
            state = "skipped" if entry.skipped else "flaky" if entry.flaky else entry.state
            reason = (entry.attempts[-1].reason if entry.attempts else "") or entry.why
            tail = f": {reason}" if reason and state not in ("passed", "skipped") else ""
            self._told(f"{state:11} [{len(self._said)}/{self._planned}] {name}{tail}")


def _report(
    order: RunOrder, task: Task, conductor: Conductor, segments: list[Segment], listed_s: float, odd: tuple[str, ...]
) -> RunReport:
    tests = tuple(
        TestReport(
            number=number,
            id=entry.test.id,
            file=entry.test.file,
            line=entry.test.line,
            state=entry.state or "not_run",
            why=entry.why,
            skipped=entry.skipped,
            flaky=entry.flaky,
            quarantine=reason_for(entry.test, task.plan.quarantine, order.today),
            attempts=entry.attempts,
        )
        for number, entry in enumerate(conductor.book.entries.values(), 1)
    )
    now = order.clock.now()
    outcome = outcome_of(tests)
    return RunReport(
        name=task.plan.name,
        plan_sha256=task.plan_sha256,
        engine=order.engine,
        outcome=outcome.word,
        exit_code=outcome.code,
        began=min((segment.began for segment in segments), default=now),
        ended=max((segment.ended for segment in segments), default=now),
        listed_s=listed_s,
        retries=conductor.book.retries,
        facts=_facts(order, task.plan),
        warnings=odd,
        tests=tests,
        shards=tuple(
            ShardReport(
                number=note.number,
                host=note.host,
                tests=note.tests,
                queued=note.queued,
                ended=note.ended,
                waited_s=note.waited_s,
                trouble=note.trouble,
            )
            for note in conductor.notes.values()
        ),
        segments=tuple(segments),
    )


def _facts(order: RunOrder, plan: Plan) -> tuple[tuple[str, str], ...]:
    simulated = plan.pool is not None and plan.pool.image.startswith("paper")
    phones = "none"
    if plan.pool is not None:
        phones = f"{plan.pool.phones} of {plan.pool.image}" + (", SIMULATED" if simulated else "")
    return (
        ("Lomi", version("lomi-lab")),
        ("pytest", version("pytest")),
        ("Plan", order.plan.name),
        ("Engine", order.engine),
        ("Phones", phones),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("Machine", f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores"),
    )


async def _written(
    order: RunOrder, report: RunReport, setting: LocalSetting, into: Path, engine: Engine, history: History
) -> RunEnd:
    """Write the report, and have the broker's ledger hold its hash."""
    try:
        manifest = await asyncio.to_thread(save, report, setting.shelf, into, history)
        operation = await engine.anchor(manifest)
        anchor = Anchor(
            manifest_sha256=hashlib.sha256(manifest).hexdigest(),
            operation_id=operation,
            home=str(state_home(order.environment)) if operation is not None else None,
            why=None if operation is not None else "no broker took the hash of this report",
        )
        await asyncio.to_thread(put, into / ANCHOR, msgspec.json.format(msgspec.json.encode(anchor), indent=1))
    except (OSError, KeyError) as error:
        return RunEnd(report, into, setting.folder, f"the report in {into} is not complete: {error}")
    return RunEnd(report, into, setting.folder)
