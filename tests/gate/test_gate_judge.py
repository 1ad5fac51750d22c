"""The checks have teeth: what a task left behind is judged by its records alone."""

from collections.abc import Mapping

import pytest
from agent_gate.draw import answer_for, drawn
from agent_gate.judge import Records, answer_of, judge, nothing_else
from agent_gate.site import Visit
from agent_gate.standin.scripts import LOMI
from agent_gate.task import (
    AnswerCheck,
    BadTaskError,
    Check,
    FileCheck,
    JournalCheck,
    Task,
    WebCheck,
    filled_checks,
    load_tasks,
)
from agent_gate.task import _task as read_task


def records(
    *journal: Mapping[str, object],
    visits: tuple[Visit, ...] = (),
    files: tuple[str, ...] = (),
    answer: str | None = None,
) -> Records:
    return Records(journal=journal, visits=visits, files=files, answer=answer)


def good(check: Check, given: Records) -> bool:
    (verdict,) = judge([check], given)
    assert verdict.says == check.says
    assert verdict.good or verdict.found
    return verdict.good


TAP = {"event": "input", "kind": "tap", "hit": "day"}


@pytest.mark.parametrize(("times", "right"), [(1, {1}), (0, {0}), (2, {2}), ("odd", {1, 3}), ("some", {1, 2, 3})])
def test_events_are_counted(times: int | str, right: set[int]) -> None:
    """Once is not twice, and never is not once."""
    check = JournalCheck(says="x", event="input", where={"hit": "day"}, times=times)  # type: ignore[arg-type]
    assert {n for n in range(4) if good(check, records(*[TAP] * n, {"event": "input", "hit": "year"}))} == right


def test_only_what_comes_after_counts() -> None:
    """A press before the phone was turned is no press in landscape."""
    check = JournalCheck(says="x", event="input", after="rotated")
    turned = {"event": "rotated"}
    assert good(check, records(turned, TAP))
    assert not good(check, records(TAP, turned))
    assert not good(check, records(TAP))


def test_fields_are_compared_exactly() -> None:
    """A letter without its accent is another letter, and a missing field is no empty one."""
    check = JournalCheck(says="x", event="submit", where={"fields.name": "Zoé"})
    assert good(check, records({"event": "submit", "fields": {"name": "Zoé"}}))
    assert not good(check, records({"event": "submit", "fields": {"name": "Zoe"}}))
    assert not good(check, records({"event": "submit", "fields": {}}))
    assert not good(check, records({"event": "submit"}))


def test_requests_are_told_apart_by_method_and_path() -> None:
    """Looking at a page is not sending its form."""
    check = WebCheck(says="x", path="/pay", where={"n": "1"})
    sent = Visit(method="POST", path="/pay", fields={"n": "1"})
    seen = Visit(method="GET", path="/pay", fields={"n": "1"})
    assert good(check, records(visits=(seen, sent)))
    assert not good(check, records(visits=(sent, sent)))
    assert not good(check, records(visits=(seen,)))


def test_files_are_known_by_their_bytes() -> None:
    """Another file is not the file, nor are two."""
    check = FileCheck(says="x", sha256="a" * 64)
    assert good(check, records(files=("b" * 64, "a" * 64)))
    assert not good(check, records(files=("b" * 64,)))
    assert not good(check, records(files=("a" * 64, "a" * 64)))


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("It costs that.\nANSWER: 12.40", "12.40"),
        ("**ANSWER: 12.40**", "12.40"),
        ("answer: `E-4471`", "E-4471"),
        ("ANSWER: 1\nno, wait\nANSWER: 2\n", "2"),
        ("The answer is 12.40", None),
        ("", None),
    ],
)
def test_the_answer_is_the_last_one_in_its_form(words: str, answer: str | None) -> None:
    """A value outside the form is no answer: a gate that guesses what was meant can be talked into anything."""
    assert answer_of(words) == answer


def test_an_answer_must_be_the_whole_value() -> None:
    """Case and spaces don't count; anything else does."""
    check = AnswerCheck(says="x", one_of=("12.40", "12.4"))
    assert good(check, records(answer=" 12.40 "))
    assert not good(check, records(answer="9.90 or 12.40"))
    assert not good(check, records(answer=None))


def test_there_are_twenty_tasks_and_each_can_be_passed_and_failed() -> None:
    """Each has a script, at least one check that an idle model fails, and saboteurs beyond the two that fit all."""
    tasks = load_tasks()
    assert len(tasks) == 20
    assert {task.name for task in tasks} == set(LOMI)
    for task in tasks:
        assert not all(verdict.good for verdict in judge(task.check, records())), task.name
        assert task.saboteurs, task.name


ANSWERED = {"crash-report", "console-error", "injection"}


@pytest.mark.parametrize("task", load_tasks(), ids=lambda task: task.name)
def test_no_answer_is_enough_without_the_act(task: Task) -> None:
    """Whoever knows this run's very answer and has neither looked nor acted fails, and the answer is not why."""
    words = drawn("a run", task.name)
    verdicts = judge(filled_checks(task, words), records(answer=answer_for(task, words)))
    assert [verdict.says for verdict in verdicts if not verdict.good and "answered" in verdict.found] == []
    assert not all(verdict.good for verdict in verdicts)


def test_answers_are_drawn_for_each_run() -> None:
    """The same for the same seed, another one for another; and no check keeps a place for a word unfilled."""
    tasks = load_tasks()
    first, again, other = (
        {task.name: answer_for(task, drawn(seed, task.name)) for task in tasks} for seed in ("a", "a", "b")
    )
    assert first == again
    assert {name for name in first if first[name] != other[name]} == ANSWERED
    for task in tasks:
        said = repr(filled_checks(task, {**drawn("a", task.name), "apk_sha256": "", "report_sha256": ""}))
        assert "{" not in said.replace("where={", "").replace("{}", ""), task.name


CHOSEN = JournalCheck(says="x", event="dialog", where={"button": "OK"})
SENT = WebCheck(says="x", path="/pay", where={"n": "1"})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"event": "dialog", "kind": "app", "button": "OK"}, ""),
        ({"event": "dialog", "kind": "app", "button": "Cancel"}, "dialog Cancel"),
        ({"event": "dialog", "kind": "permission", "button": "Cancel"}, ""),
        ({"event": "permission", "package": "p", "allowed": True}, "permission p"),
        ({"event": "submit", "package": "p"}, "submit p"),
        ({"event": "rotated", "rotation": 2}, "rotated 2"),
        ({"event": "launch", "package": "p"}, ""),
        ({"event": "input", "package": "lomi.paper.form", "hit": "name", "x": 1, "x2": 1, "y": 1, "y2": 1}, ""),
        ({"event": "input", "package": "com.android.settings", "hit": "display", "x": 1, "x2": 1, "y": 1, "y2": 1}, ""),
    ],
)
def test_what_no_check_expects_is_told_of(entry: Mapping[str, object], said: str) -> None:
    """All that changes something counts, asked for or not; looking, walking and typing don't."""
    verdict = nothing_else([CHOSEN, SENT], records(entry))
    assert (verdict.good, verdict.found) == (not said, said)


@pytest.mark.parametrize(("kind", "far"), [("tap", 0), ("motionevent", 3), ("swipe", 16), ("swipe", 200)])
def test_a_switch_is_pressed_by_any_finger_that_stays(kind: str, far: int) -> None:
    """Whatever the tool calls it; a swipe that goes on moves the list and presses nothing."""
    entry = {"event": "input", "kind": kind, "package": "com.android.settings", "hit": "wifi"}
    assert nothing_else([], records({**entry, "x": 9, "y": 9, "x2": 9, "y2": 9 + far})).good == (far > 16)


def test_what_is_sent_or_fetched_besides_is_told_of() -> None:
    """Each form counts, wherever it was sent; a page that is looked at does not, a file that is fetched does."""
    visits = [("GET", "/pay", {}), ("POST", "/pay", {"n": "1"})]
    others = [("POST", "/pay", {"n": "2"}), ("PUT", "/x", {}), ("GET", "/report-2024.csv", {}), ("POST", "/y", {})]
    seen, more = (tuple(Visit(method=m, path=p, fields=f) for m, p, f in some) for some in (visits, others))
    assert nothing_else([SENT], records(visits=seen)).good
    never = WebCheck(says="x", path="/y", times=0)
    verdict = nothing_else([SENT, never], records(visits=(*seen, *more)))
    assert not verdict.good
    assert verdict.found == "POST /pay, PUT /x, GET /report-2024.csv and 1 more"


def test_a_task_with_an_unknown_word_is_refused(tmp_path: object) -> None:
    """A typing error in a check would be a check that is not made."""
    from pathlib import Path

    path = Path(str(tmp_path)) / "01-odd.toml"
    path.write_text(
        'title = "x"\nneeds = ["page"]\nprompt = "x"\n[[check]]\nkind = "web"\nsays = "x"\npath = "/"\ntime = 2\n'
    )
    with pytest.raises(BadTaskError, match="time"):
        read_task(path)
