"""The book of a run: every planned test, and how it stands. Pure: each change makes a new book out of values.

A test waits, runs in one shard, or has ended in exactly one state; whatever happens to workers, phones, hosts or time,
the counts of the states add up to the plan.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from lomi.lab.retries import RetryPolicy, decide, verdict_of
from lomi.lab.shard import Attempt, PlannedTest, Shard, ShardResult, Work

State = Literal["passed", "failed", "infra_error", "not_run", "cancelled"]
STATES: tuple[State, ...] = ("passed", "failed", "infra_error", "not_run", "cancelled")
Stop = Literal["cancelled", "not_run", "infra_error"]
"""What tests become that are not run any more: after a cancel, after the run's deadline, after the lab broke down."""


class BookError(Exception):
    """Raised when something is told that can't be: a test given out twice, or one that is not planned."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One test. `given` is the number of the last attempt that was used up, also by a host that was lost.

    Attributes:
        shard: the number of the shard that it runs in, None when it waits or has ended.
        returned: how often it came back without having begun, from shards in which nothing happened at all.
        state: how it ended, None before that.
        why: one line about the state, "" where it explains itself.
        skipped: it ended as `not_run` since it skipped itself.
    """

    test: PlannedTest
    attempts: tuple[Attempt, ...] = ()
    given: int = 0
    shard: int | None = None
    returned: int = 0
    state: State | None = None
    why: str = ""
    skipped: bool = False

    @property
    def flaky(self) -> bool:
        """Whether it passed after it had failed."""
        return self.state == "passed" and any(attempt.verdict == "failed" for attempt in self.attempts)

    @property
    def waits(self) -> bool:
        """Whether it can be given out."""
        return self.state is None and self.shard is None


@dataclass(frozen=True, slots=True)
class Book:
    """All tests of a plan by id, in the plan's order; `stop` is what waiting tests become, once a run is to end."""

    entries: Mapping[str, Entry]
    policy: RetryPolicy
    retries: int = 0
    stop: Stop | None = None
    stop_why: str = ""

    @property
    def ended(self) -> bool:
        """Whether every test has its state."""
        return all(entry.state is not None for entry in self.entries.values())

    @property
    def waiting(self) -> tuple[Entry, ...]:
        """Tests that can be given out, in the plan's order."""
        return tuple(entry for entry in self.entries.values() if entry.waits)

    @property
    def counts(self) -> dict[State, int]:
        """How many tests ended in each state."""
        found = dict.fromkeys(STATES, 0)
        for entry in self.entries.values():
            if entry.state is not None:
                found[entry.state] += 1
        return found


def open_book(tests: Iterable[PlannedTest], policy: RetryPolicy) -> Book:
    """A book in which every test waits.

    Raises:
        BookError: two tests have one id.
    """
    entries: dict[str, Entry] = {}
    for test in tests:
        if test.id in entries:
            raise BookError(f"two tests are named {test.id}")
        entries[test.id] = Entry(test)
    return Book(MappingProxyType(entries), policy)


def works_of(entries: Iterable[Entry]) -> tuple[Work, ...]:
    """The next attempt of each."""
    return tuple(Work(test=entry.test, attempt=entry.given + 1) for entry in entries)


def give(book: Book, shard: Shard) -> Book:
    """The shard's tests run from now on.

    Raises:
        BookError: one of them does not wait, is not planned, or its attempt was given out before.
    """
    changed: dict[str, Entry] = {}
    for work in shard.works:
        entry = book.entries.get(work.test.id)
        if entry is None or not entry.waits or work.test.id in changed or work.attempt != entry.given + 1:
            raise BookError(f"attempt {work.attempt} of {work.test.id} can't be given out")
        changed[work.test.id] = replace(entry, given=work.attempt, shard=shard.number)
    return _with(book, changed)


def take(book: Book, result: ShardResult) -> Book:
    """What a shard's end means. A result for a shard that nothing runs in any more changes nothing.

    Attempts that were not given out in this shard are not counted; tests that did not begin wait again.
    """
    told = {attempt.test: attempt for attempt in result.attempts}
    progressed = bool(told)
    changed: dict[str, Entry] = {}
    retries = book.retries
    for name, entry in book.entries.items():
        if entry.shard != result.shard:
            continue
        attempt = told.get(name)
        if attempt is None or attempt.attempt != entry.given:
            # It did not begin, so the number of this attempt is still free; a lost host's would not be.
            unused = replace(entry, given=entry.given - 1)
            changed[name] = _returned(book, unused, result.trouble or "it did not begin", counts=not progressed)
            continue
        again, changed[name] = _attempted(book, entry, attempt, retries)
        retries += again
    return replace(_with(book, changed), retries=retries)


def lose(book: Book, shard: int, why: str) -> Book:
    """A shard whose host is gone: nothing of it counts, its tests wait again."""
    running = {name: entry for name, entry in book.entries.items() if entry.shard == shard}
    return _with(book, {name: _returned(book, entry, why, counts=True) for name, entry in running.items()})


def fail(book: Book, shard: int, why: str) -> Book:
    """A shard that can never run: its tests end, as what earlier attempts say or as errors of the lab."""
    running = {name: entry for name, entry in book.entries.items() if entry.shard == shard}
    return _with(book, {name: _broken(replace(entry, shard=None), why) for name, entry in running.items()})


def stop(book: Book, kind: Stop, why: str) -> Book:
    """Give nothing out any more: what waits ends now, what runs when its shard does. The first stop stands."""
    if book.stop is not None:
        return book
    stopped = replace(book, stop=kind, stop_why=why)
    return _with(stopped, {entry.test.id: _stopped(stopped, entry) for entry in book.waiting})


def _with(book: Book, changed: Mapping[str, Entry]) -> Book:
    return replace(book, entries=MappingProxyType({**book.entries, **changed})) if changed else book


def _attempted(book: Book, entry: Entry, attempt: Attempt, retries: int) -> tuple[bool, Entry]:
    """The entry with one more attempt, and whether that is to be followed by a retry."""
    done = replace(entry, attempts=(*entry.attempts, attempt), shard=None)
    decision = decide(done.attempts, book.policy, retries)
    if decision.again and book.stop is None:
        return True, done
    return False, _judged(done, decision.why)


def _judged(entry: Entry, why: str) -> Entry:
    """The entry with the state that its attempts say."""
    verdict = verdict_of(entry.attempts)
    if verdict == "skipped":
        return replace(entry, state="not_run", skipped=True, why=entry.attempts[-1].reason)
    return replace(entry, state=verdict, why=why if len(entry.attempts) > 1 else "")


def _returned(book: Book, entry: Entry, why: str, *, counts: bool) -> Entry:
    back = replace(entry, shard=None, returned=entry.returned + counts)
    if book.stop is not None:
        return _stopped(book, back)
    return _broken(back, why) if back.returned > book.policy.infra else back


def _broken(entry: Entry, why: str) -> Entry:
    return _judged(entry, why) if entry.attempts else replace(entry, state="infra_error", why=why)


def _stopped(book: Book, entry: Entry) -> Entry:
    """A test that is not given out any more: attempts that it had still say how it ended."""
    if entry.attempts:
        return _judged(entry, book.stop_why)
    assert book.stop is not None
    return replace(entry, state=book.stop, why=book.stop_why)
