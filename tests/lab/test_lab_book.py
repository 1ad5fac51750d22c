"""The book: whatever happens, every planned test ends in exactly one state, and nothing counts twice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from lab import lab_values as values

from lomi.lab import book as books
from lomi.lab.book import Book, BookError, open_book, works_of
from lomi.lab.retries import RetryPolicy, decide, verdict_of
from lomi.lab.shard import Shard, ShardResult

VERDICTS = st.sampled_from(["passed", "failed", "infra_error", "skipped"])


class BookModel(RuleBasedStateMachine):
    """Random lives of a run: shards end, half-way or not at all, hosts are lost, late results come, a stop comes."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0
        self.running: dict[int, Shard] = {}
        self.gone: list[Shard] = []
        self.ended: dict[str, tuple[str, int]] = {}
        self.seen: dict[str, int] = {}

    @initialize(count=st.integers(1, 6), failed=st.integers(0, 2), infra=st.integers(0, 2), most=st.integers(0, 4))
    def begin(self, count: int, failed: int, infra: int, most: int) -> None:
        self.plan = values.tests_of(count)
        self.policy = RetryPolicy(failed, infra, most)
        self.book: Book = open_book(self.plan, self.policy)

    @precondition(lambda self: self.book.waiting)
    @rule(data=st.data())
    def give(self, data: st.DataObject) -> None:
        some = data.draw(st.lists(st.sampled_from(self.book.waiting), min_size=1, unique_by=lambda one: one.test.id))
        self.numbers += 1
        shard = values.shard(self.numbers, works_of(some))
        self.book = books.give(self.book, shard)
        self.running[shard.number] = shard

    @precondition(lambda self: self.running)
    @rule(data=st.data(), verdicts=st.lists(VERDICTS, max_size=6))
    def end(self, data: st.DataObject, verdicts: list[str]) -> None:
        shard = self.running.pop(data.draw(st.sampled_from(sorted(self.running))))
        self.book = books.take(self.book, values.result(shard, *verdicts))
        self.gone.append(shard)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        shard = self.running.pop(data.draw(st.sampled_from(sorted(self.running))))
        self.book = books.lose(self.book, shard.number, "its host is gone")
        self.gone.append(shard)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def never(self, data: st.DataObject) -> None:
        shard = self.running.pop(data.draw(st.sampled_from(sorted(self.running))))
        self.book = books.fail(self.book, shard.number, "it can never run")
        self.gone.append(shard)

    @precondition(lambda self: self.gone)
    @rule(data=st.data(), verdicts=st.lists(VERDICTS, max_size=6))
    def late(self, data: st.DataObject, verdicts: list[str]) -> None:
        """A host that was thought lost sends its result after all: nothing may change."""
        before = self.book
        self.book = books.take(self.book, values.result(data.draw(st.sampled_from(self.gone)), *verdicts))
        assert self.book.entries == before.entries
        assert self.book.retries == before.retries

    @rule(kind=st.sampled_from(["cancelled", "not_run", "infra_error"]))
    def stop(self, kind: str) -> None:
        self.book = books.stop(self.book, kind, "it was stopped")  # type: ignore[arg-type]
        assert self.book.waiting == ()

    @invariant()
    def adds_up(self) -> None:
        if not hasattr(self, "book"):
            return
        entries = list(self.book.entries.values())
        assert [entry.test for entry in entries] == self.plan
        running = {work.test.id for shard in self.running.values() for work in shard.works}
        for entry in entries:
            held = [entry.waits, entry.shard is not None, entry.state is not None]
            assert held.count(True) == 1
            assert (entry.shard is not None) == (entry.test.id in running)
            numbers = [attempt.attempt for attempt in entry.attempts]
            assert numbers == sorted(set(numbers))
            assert all(number <= entry.given for number in numbers)
            assert len(numbers) >= self.seen.get(entry.test.id, 0)
            self.seen[entry.test.id] = len(numbers)
        assert sum(self.book.counts.values()) == sum(entry.state is not None for entry in entries)
        assert self.book.retries <= self.policy.most

    @invariant()
    def ended_stays_ended(self) -> None:
        for name, entry in getattr(self, "book", Book({}, RetryPolicy())).entries.items():
            if entry.state is not None:
                now = (entry.state, len(entry.attempts))
                assert self.ended.setdefault(name, now) == now

    @invariant()
    def states_say_what_attempts_say(self) -> None:
        for entry in getattr(self, "book", Book({}, RetryPolicy())).entries.values():
            if entry.state is None or not entry.attempts:
                continue
            said = verdict_of(entry.attempts)
            assert entry.state == ("not_run" if said == "skipped" else said)
            assert entry.skipped == (said == "skipped")

    def teardown(self) -> None:
        """From anywhere, a run that goes on ends, in a number of shards that the policy bounds."""
        if not hasattr(self, "book"):
            return
        for number in list(self.running):
            self.book = books.lose(self.book, number, "its host is gone")
        steps = 0
        while not self.book.ended:
            steps += 1
            assert steps < 100
            self.numbers += 1
            shard = values.shard(self.numbers, works_of(self.book.waiting))
            self.book = books.give(self.book, shard)
            told = () if steps % 2 else ("infra_error",)
            self.book = books.take(self.book, values.result(shard, *told))  # type: ignore[arg-type]
        assert sum(self.book.counts.values()) == len(self.plan)


BookModel.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
TestBookModel = BookModel.TestCase


@given(st.lists(VERDICTS, min_size=1, max_size=8), st.integers(0, 3), st.integers(0, 3), st.integers(0, 9))
def test_a_retry_is_decided_by_kind_and_cap(verdicts: list[str], failed: int, infra: int, used: int) -> None:
    """Nothing follows a pass or a skip; a failure is retried as long as its own kind and the run allow."""
    work = works_of(open_book(values.tests_of(1), RetryPolicy()).waiting)[0]
    attempts = tuple(values.attempt(work, verdict) for verdict in verdicts)  # type: ignore[arg-type]
    decision = decide(attempts, RetryPolicy(failed, infra, 5), used)
    last = verdicts[-1]
    allowed = {"failed": failed, "infra_error": infra}.get(last, -1)
    assert decision.again == (verdicts.count(last) <= allowed and used < 5)
    assert ("of the test" in decision.why) <= (last == "failed")
    assert ("of the lab" in decision.why) <= (last == "infra_error")
    assert bool(decision.why) == (last in ("failed", "infra_error"))


def test_infra_and_test_failures_have_budgets_of_their_own() -> None:
    """One failure of the test, two of the lab, then a pass: flaky, with all four attempts kept."""
    book = open_book(values.tests_of(1), RetryPolicy(failed=1, infra=2, most=10))
    for number, verdict in enumerate(("infra_error", "failed", "infra_error", "passed"), 1):
        given_out = values.shard(number, works_of(book.waiting))
        book = books.take(books.give(book, given_out), values.result(given_out, verdict))  # type: ignore[arg-type]
    (entry,) = book.entries.values()
    assert (entry.state, entry.flaky, book.retries) == ("passed", True, 3)
    assert [(one.attempt, one.verdict) for one in entry.attempts] == [
        (1, "infra_error"),
        (2, "failed"),
        (3, "infra_error"),
        (4, "passed"),
    ]


def test_a_failure_weighs_more_than_one_of_the_lab() -> None:
    """A test that failed once and then only met a broken lab has failed."""
    book = open_book(values.tests_of(1), RetryPolicy(failed=1, infra=0, most=10))
    for number, verdict in enumerate(("failed", "infra_error"), 1):
        given_out = values.shard(number, works_of(book.waiting))
        book = books.take(books.give(book, given_out), values.result(given_out, verdict))  # type: ignore[arg-type]
    assert [entry.state for entry in book.entries.values()] == ["failed"]


def test_the_cap_of_the_run_holds_over_all_tests() -> None:
    """Three tests fail, two retries are allowed in the whole run."""
    book = open_book(values.tests_of(3), RetryPolicy(failed=5, infra=0, most=2))
    given_out = values.shard(1, works_of(book.waiting))
    book = books.take(books.give(book, given_out), values.result(given_out, "failed", "failed", "failed"))
    assert (len(book.waiting), book.retries, book.counts["failed"]) == (2, 2, 1)


def test_tests_after_a_dead_one_are_not_blamed() -> None:
    """A worker dies in test 2 of 5: test 2 is an error of the lab, tests 3 to 5 did not begin and wait again."""
    book = open_book(values.tests_of(5), RetryPolicy(infra=0))
    given_out = values.shard(1, works_of(book.waiting))
    book = books.take(books.give(book, given_out), values.result(given_out, "passed", "infra_error"))
    assert [entry.state for entry in book.entries.values()] == ["passed", "infra_error", None, None, None]
    assert [entry.returned for entry in book.waiting] == [0, 0, 0]


def test_a_test_that_never_begins_ends_all_the_same() -> None:
    """Shards in which nothing happens come back only as often as the policy retries the lab."""
    book = open_book(values.tests_of(1), RetryPolicy(infra=2))
    for number in range(1, 4):
        given_out = values.shard(number, works_of(book.waiting))
        empty = ShardResult(shard=number, host="h", attempts=(), trouble="the worker exited with 4")
        book = books.take(books.give(book, given_out), empty)
    (entry,) = book.entries.values()
    assert (entry.state, entry.why) == ("infra_error", "the worker exited with 4")


def test_an_attempt_of_another_number_is_not_counted() -> None:
    """A result that names an attempt that this shard was not given is not believed."""
    book = open_book(values.tests_of(1), RetryPolicy(infra=1))
    given_out = values.shard(1, works_of(book.waiting))
    (work,) = given_out.works
    forged = ShardResult(
        shard=1, host="h", attempts=(values.attempt(work.__class__(test=work.test, attempt=2), "passed"),)
    )
    book = books.take(books.give(book, given_out), forged)
    (entry,) = book.entries.values()
    assert (entry.state, entry.attempts) == (None, ())


def test_nothing_is_given_out_twice() -> None:
    """Giving out what runs, what is not planned, or one test twice is refused."""
    book = open_book(values.tests_of(2), RetryPolicy())
    first, second = works_of(book.waiting)
    given = books.give(book, values.shard(1, (first,)))
    for works in ((first,), (second, second), (second.__class__(test=values.planned(9), attempt=1),)):
        with pytest.raises(BookError):
            books.give(given, values.shard(2, works))
    with pytest.raises(BookError, match="two tests are named"):
        open_book([values.planned(1), values.planned(1)], RetryPolicy())


@pytest.mark.parametrize("kind", ["cancelled", "not_run", "infra_error"])
def test_a_stop_reaches_what_runs_when_it_comes_back(kind: str) -> None:
    """Waiting tests end at once, running ones with their shard: by their attempt if they have one, else by the stop."""
    book = open_book(values.tests_of(3), RetryPolicy(failed=3))
    given_out = values.shard(1, works_of(book.waiting[:2]))
    book = books.stop(books.give(book, given_out), kind, "enough")  # type: ignore[arg-type]
    book = books.stop(book, "passed", "a second stop changes nothing")  # type: ignore[arg-type]
    assert [entry.state for entry in book.entries.values()] == [None, None, kind]
    book = books.take(book, values.result(given_out, "failed"))
    assert [entry.state for entry in book.entries.values()] == ["failed", kind, kind]
    assert [entry.why for entry in book.entries.values()][1:] == ["enough", "enough"]


def ended_with(*verdicts: str, policy: RetryPolicy) -> books.Entry:
    """One test that was tried as often as the policy allows, with these verdicts."""
    book = open_book(values.tests_of(1), policy)
    for number, verdict in enumerate(verdicts, 1):
        given_out = values.shard(number, works_of(book.waiting))
        book = books.take(books.give(book, given_out), values.result(given_out, verdict))  # type: ignore[arg-type]
    (entry,) = book.entries.values()
    return entry


@pytest.mark.parametrize(
    ("verdicts", "flaky"),
    [
        (["passed"], False),
        (["infra_error", "passed"], False),
        (["failed", "passed"], True),
        (["failed", "infra_error", "passed"], True),
        (["failed", "failed"], False),
        (["failed", "skipped"], False),
    ],
)
def test_flaky_is_who_passed_after_a_failure_of_its_own(verdicts: list[str], flaky: bool) -> None:
    """Not who passed after an error of the lab, and not who never passed."""
    assert ended_with(*verdicts, policy=RetryPolicy(failed=1, infra=1)).flaky is flaky


def test_a_new_book_has_nothing_in_it() -> None:
    """Nothing given out, tried, returned, retried or stopped, and every test waits for its first attempt."""
    book = open_book(values.tests_of(2), RetryPolicy())
    assert (book.retries, book.stop, book.stop_why, book.ended) == (0, None, "", False)
    for entry in book.entries.values():
        assert (entry.attempts, entry.given, entry.shard, entry.returned) == ((), 0, None, 0)
        assert (entry.state, entry.why, entry.skipped, entry.flaky, entry.waits) == (None, "", False, False, True)
    assert [work.attempt for work in works_of(book.waiting)] == [1, 1]
    assert RetryPolicy() == (0, 2, 100)
    assert open_book([], RetryPolicy()).ended


def test_a_number_that_a_lost_host_had_is_used_up_and_one_that_did_not_begin_is_free() -> None:
    """A late result of the lost host could name it; nothing was ever told of the other."""
    book = open_book(values.tests_of(1), RetryPolicy(infra=5))
    first = values.shard(1, works_of(book.waiting))
    book = books.lose(books.give(book, first), 1, "its host is gone")
    second = values.shard(2, works_of(book.waiting))
    assert [work.attempt for work in second.works] == [2]
    book = books.take(books.give(book, second), values.result(second))
    third = values.shard(3, works_of(book.waiting))
    assert [work.attempt for work in third.works] == [2]
    (entry,) = books.give(book, third).entries.values()
    assert (entry.given, entry.shard, entry.returned, entry.waits) == (2, 3, 2, False)


def test_an_attempts_number_is_given_out_once_and_in_order() -> None:
    """Neither the one that a lost host had, nor one that is not the next."""
    book = open_book(values.tests_of(1), RetryPolicy(infra=5))
    first = works_of(book.waiting)
    book = books.lose(books.give(book, values.shard(1, first)), 1, "its host is gone")
    (work,) = first
    for attempt in (0, 1, 3):
        with pytest.raises(BookError, match=f"attempt {attempt} of tests/test_a.py::test_1 can't be given out"):
            books.give(book, values.shard(2, (work.__class__(test=work.test, attempt=attempt),)))
    running = books.give(book, values.shard(2, works_of(book.waiting)))
    assert [entry.given for entry in running.entries.values()] == [2]
    with pytest.raises(BookError, match="attempt 3 of"):
        books.give(running, values.shard(3, works_of(running.entries.values())))


def test_only_shards_in_which_nothing_happened_count_against_a_test() -> None:
    """Behind a test that ran it came back once, in an empty shard a second time; the third ends it, with the reason."""
    book = open_book(values.tests_of(2), RetryPolicy(infra=1))
    given_out = values.shard(1, works_of(book.waiting))
    book = books.take(books.give(book, given_out), values.result(given_out, "passed"))
    assert [entry.returned for entry in book.waiting] == [0]
    for number, left in ((2, 1), (3, 0)):
        given_out = values.shard(number, works_of(book.waiting))
        book = books.take(books.give(book, given_out), values.result(given_out))
        assert len(book.waiting) == left
    last = list(book.entries.values())[-1]
    assert (last.state, last.why, last.returned, last.attempts) == ("infra_error", "it did not begin", 2, ())


def test_what_an_end_says_of_itself() -> None:
    """A first and only attempt explains itself, a last one says what it was allowed, a skip what it said."""
    assert ended_with("failed", policy=RetryPolicy()).why == ""
    after_retry = ended_with("failed", "failed", policy=RetryPolicy(failed=1))
    assert (after_retry.state, after_retry.why) == ("failed", "1 retries after a failure of the test were allowed")
    book = open_book(values.tests_of(1), RetryPolicy())
    given_out = values.shard(1, works_of(book.waiting))
    skip = values.attempt(given_out.works[0], "skipped", reason="no camera")
    book = books.take(books.give(book, given_out), ShardResult(shard=1, host="h", attempts=(skip,)))
    (entry,) = book.entries.values()
    assert (entry.state, entry.skipped, entry.why, entry.flaky) == ("not_run", True, "no camera", False)


def test_a_shard_that_can_never_run_ends_its_tests_by_what_they_had() -> None:
    """One failed before and has failed; one never ran and is an error of the lab; one of another shard goes on."""
    book = open_book(values.tests_of(3), RetryPolicy(failed=1))
    first = values.shard(1, works_of(book.waiting[:1]))
    book = books.take(books.give(book, first), values.result(first, "failed"))
    book = books.give(book, values.shard(2, works_of(book.waiting[:2])))
    book = books.give(book, values.shard(3, works_of(book.waiting)))
    book = books.fail(book, 2, "no phone is left")
    one, two, three = book.entries.values()
    assert (one.state, one.shard, len(one.attempts)) == ("failed", None, 1)
    assert (two.state, two.why, two.shard) == ("infra_error", "no phone is left", None)
    assert (three.state, three.shard) == (None, 3)
