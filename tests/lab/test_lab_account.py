"""What a worker did, out of what it told; and a lane's time, which has no gap."""

import itertools
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from lab import lab_values as values

from lomi.lab.account import Account
from lomi.lab.engines.local import LocalEngine, LocalSetting
from lomi.lab.events import (
    MOST_TEXT,
    Began,
    Ended,
    Finished,
    Heard,
    NotCollected,
    PhaseEnded,
    Unreadable,
    bounded,
    decode,
    encode,
)
from lomi.lab.lanes import HostClock, Lane
from lomi.lab.plan import parse_plan
from lomi.lab.shard import Part, Work
from lomi.lab.shelf import FolderShelf

WORKS = tuple(Work(test=test, attempt=1) for test in values.tests_of(3))
IDS = [work.test.id for work in WORKS]
EVENTS = st.one_of(
    st.builds(Began, test=st.sampled_from([*IDS, "other"]), at=st.floats(0, 9)),
    st.builds(
        PhaseEnded,
        test=st.sampled_from([*IDS, "other"]),
        when=st.sampled_from(["setup", "call", "teardown"]),
        outcome=st.sampled_from(["passed", "failed", "skipped"]),
        began=st.floats(0, 9),
        seconds=st.floats(0, 9),
    ),
    st.builds(Ended, test=st.sampled_from([*IDS, "other"]), at=st.floats(0, 9)),
    st.builds(NotCollected, node=st.sampled_from([*IDS, "tests/test_a.py"]), text=st.just("SyntaxError")),
    st.builds(Finished, status=st.integers(0, 5)),
    st.builds(Unreadable),
)


def told(*events: Heard) -> Account:
    account = Account(WORKS, 7, "h")
    for event in events:
        account.hear(event)
    return account


def phase(test: str, when: str, outcome: str = "passed", **more: object) -> PhaseEnded:
    return PhaseEnded(test=test, when=when, outcome=outcome, began=1.0, seconds=2.0, **more)  # type: ignore[arg-type]


@given(st.lists(EVENTS, max_size=40))
def test_whatever_is_told_each_test_has_one_attempt_at_most(events: list[Heard]) -> None:
    """Events in any order, about any test: attempts are of what was given out, once each, and a cut closes the rest."""
    account = told(*events)
    account.cut("infra_error", "gone", 10.0)
    account.uncollected(10.0)
    named = [attempt.test for attempt in account.attempts]
    assert len(named) == len(set(named))
    assert set(named) <= set(IDS)
    assert account.current is None
    assert all(attempt.ended >= attempt.began for attempt in account.attempts)


def test_the_first_failed_part_says_why() -> None:
    """A failed set-up, call or teardown fails the test; its reason, place and output are kept."""
    one = IDS[0]
    failed = phase(one, "teardown", "failed", reason="boom", detail="long", file="t.py", line=9, output="log")
    account = told(Began(test=one, at=0.5), phase(one, "setup"), phase(one, "call"), failed, Ended(test=one, at=9.0))
    (attempt,) = account.attempts
    assert (attempt.verdict, attempt.reason, attempt.detail) == ("failed", "boom", "long")
    assert (attempt.file, attempt.line, attempt.output, attempt.began, attempt.ended) == ("t.py", 9, "log", 0.5, 9.0)
    assert [part.part for part in attempt.phases] == ["setup", "test", "teardown"]


def test_a_skip_is_no_pass_and_silence_is_an_error_of_the_lab() -> None:
    """A test that skipped itself says why; one of which pytest said nothing has no verdict of its own."""
    one, two, _ = IDS
    account = told(
        Began(test=one, at=0.0),
        phase(one, "setup", "skipped", reason="not today"),
        Ended(test=one, at=1.0),
        Began(test=two, at=1.0),
        Ended(test=two, at=2.0),
    )
    assert [(attempt.verdict, attempt.reason) for attempt in account.attempts] == [
        ("skipped", "not today"),
        ("infra_error", "pytest said nothing about the test"),
    ]


def test_what_was_not_told_may_have_been_a_failure() -> None:
    """No pass without a call, nor with a lost line; a failure that was told stands, and a later test is free."""
    one, two, three = IDS
    account = told(Began(test=one, at=0.0), phase(one, "setup"), phase(one, "teardown"), Ended(test=one, at=1.0))
    for event in (Began(test=two, at=1.0), phase(two, "call"), Unreadable(), Ended(test=two, at=2.0)):
        account.hear(event)
    for event in (Began(test=three, at=2.0), phase(three, "call"), Ended(test=three, at=3.0)):
        account.hear(event)
    assert [(attempt.verdict, attempt.reason) for attempt in account.attempts] == [
        ("infra_error", "pytest said nothing about the call of the test"),
        ("infra_error", "a line in which pytest told of the test could not be read"),
        ("passed", ""),
    ]
    failed = phase(one, "call", "failed", reason="boom")
    (attempt,) = told(Began(test=one, at=0.0), failed, Unreadable(), Ended(test=one, at=1.0)).attempts
    assert (attempt.verdict, attempt.reason) == ("failed", "boom")
    skipped = phase(one, "setup", "skipped", reason="not today")
    (attempt,) = told(Began(test=one, at=0.0), skipped, Unreadable(), Ended(test=one, at=1.0)).attempts
    assert attempt.verdict == "infra_error"


def test_a_failure_in_the_set_up_that_was_expected_is_a_pass_without_a_call() -> None:
    """As pytest has it: a test that is not to be run, or whose fixture fails as it was said to."""
    one = IDS[0]
    known = phase(one, "setup", reason="it failed, as expected", expected=True)
    (attempt,) = told(Began(test=one, at=0.0), known, phase(one, "teardown"), Ended(test=one, at=1.0)).attempts
    assert (attempt.verdict, attempt.reason) == ("passed", "it failed, as expected")


def test_a_crash_belongs_to_the_test_that_ran() -> None:
    """Its part is known until the end; without a running test nobody is blamed."""
    one, two, _ = IDS
    account = told(Began(test=one, at=0.0), phase(one, "setup"), phase(one, "call"), Ended(test=one, at=1.0))
    account.cut("infra_error", "gone", 2.0)
    assert [attempt.verdict for attempt in account.attempts] == ["passed"]
    account.hear(Began(test=two, at=2.0))
    assert account.part == "setup"
    account.hear(phase(two, "setup"))
    assert account.part == "test"
    account.hear(phase(two, "call"))
    assert account.part == "teardown"
    account.cut("failed", "too long", 3.0, "stack")
    assert (account.attempts[1].verdict, account.attempts[1].output, account.part) == ("failed", "stack", "worker")


def test_what_can_not_be_collected_has_failed() -> None:
    """Each test of a file that no longer imports fails with the error; those that ran before keep their verdict."""
    one = IDS[0]
    account = told(Began(test=one, at=0.0), phase(one, "call"), Ended(test=one, at=1.0))
    account.hear(NotCollected(node="tests/test_a.py", text="Traceback\nImportError: nowhere"))
    account.uncollected(2.0)
    assert [(attempt.verdict, attempt.reason) for attempt in account.attempts] == [
        ("passed", ""),
        ("failed", "ImportError: nowhere"),
        ("failed", "ImportError: nowhere"),
    ]


def test_a_death_of_the_phone_lifts_the_blame() -> None:
    """A failure that the lab explains becomes its error, with both reasons."""
    one = IDS[0]
    account = told(Began(test=one, at=0.0), phase(one, "call", "failed", reason="no tree"), Ended(test=one, at=1.0))
    account.blame(one, "a phone died")
    assert [(a.verdict, a.reason) for a in account.attempts] == [("infra_error", "a phone died: no tree")]


@given(st.lists(st.tuples(st.sampled_from(["idle", "boot", "test", "worker"]), st.floats(0, 3), st.floats(-2, 5))))
def test_a_lanes_time_has_no_gap_and_no_overlap(steps: list[tuple[Part, float, float]]) -> None:
    """Whatever moments other processes tell, the stretches lie end to end and add up to the time that passed."""
    now = 100.0
    clock = HostClock(epoch=lambda: 1_000.0, steady=lambda: now)
    lane = Lane("h", "phone 1", clock)
    began, taken = clock.now(), []
    for part, passed, told_at in steps:
        now += passed
        lane.enter(part, at=clock.now() - told_at)
        taken += lane.taken() if passed > 2 else ()
    now += 1
    taken += lane.taken()
    assert taken[0].began == began
    assert taken[-1].ended == clock.now()
    assert all(one.ended == two.began for one, two in pairwise(taken))
    assert all(one.ended > one.began for one in taken)


async def test_every_lane_of_a_host_adds_up_to_the_same_time(tmp_path: Path) -> None:
    """However long the machine stops between two of them: a second passes at each look at the clock."""
    passed = itertools.count(1.0)
    setting = LocalSetting(
        plan=parse_plan('version = 1\n[pool]\nphones = 2\n[[needs]]\ntest = "*"\nphones = 0\n'),
        folder=tmp_path,
        environment={},
        shelf=FolderShelf(tmp_path / "shelf"),
        scratch=tmp_path,
        clock=HostClock(epoch=lambda: 1_000.0, steady=lambda: next(passed)),
    )
    segments = await LocalEngine(setting).finish()
    assert {segment.lane for segment in segments} == {"phone 1", "phone 2", "worker 1", "worker 2"}
    assert len({(segment.began, segment.ended) for segment in segments}) == 1


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_travels_between_processes(text: str) -> None:
    """Lone surrogates and control characters arrive, spelled out where UTF-8 has no place for them."""
    event = decode(encode(NotCollected(node="n", text=bounded(text))))
    assert isinstance(event, NotCollected)
    assert event.text == text.encode("utf-8", "backslashreplace").decode()


@given(st.text('\x01a"\n\u20ac\U0001f600', max_size=50).map(lambda text: text * 5_000))
def test_a_cut_text_is_short_in_json(text: str) -> None:
    """What counts is what travels: a control character takes six bytes there, not one."""
    assert len(encode(NotCollected(node="n", text=bounded(text)))) < MOST_TEXT + 200


def test_long_text_is_cut_in_its_middle() -> None:
    """Both ends stay, and what is left out is counted."""
    cut = bounded("a" * MOST_TEXT + "b" * 100)
    assert cut.startswith("a")
    assert cut.endswith("b" * 100)
    assert "100 characters left out" in cut
