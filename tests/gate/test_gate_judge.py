"""The checks have teeth: what a task left behind is judged by its records alone."""

from collections.abc import Mapping

import pytest
from agent_gate.judge import Records, answer_of, judge
from agent_gate.site import Visit
from agent_gate.standin.scripts import LOMI
from agent_gate.task import AnswerCheck, BadTaskError, Check, FileCheck, JournalCheck, WebCheck, load_tasks
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


def test_a_task_with_an_unknown_word_is_refused(tmp_path: object) -> None:
    """A typing error in a check would be a check that is not made."""
    from pathlib import Path

    path = Path(str(tmp_path)) / "01-odd.toml"
    path.write_text(
        'title = "x"\nneeds = ["page"]\nprompt = "x"\n[[check]]\nkind = "web"\nsays = "x"\npath = "/"\ntime = 2\n'
    )
    with pytest.raises(BadTaskError, match="time"):
        read_task(path)
