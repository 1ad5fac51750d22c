"""PLAN.toml: what it may say, and how a wrong one is told, with line and field."""

from datetime import date
from pathlib import Path

import pytest
from lab import lab_values as values

from lomi.lab.plan import PlanError, Quarantine, parse_plan, read_plan
from lomi.lab.quarantine import matches, needs_of, reason_for, warnings
from lomi.lab.quarters import policy_text
from lomi.lab.shard import Needs

FULL = """\
version = 1
name = "checkout"
[tests]
folder = "qa"
paths = ["tests"]
arguments = ["-m", "smoke"]
[pool]
image = "paper-36"
phones = 4
recycle = "wipe"
per = "module"
[shards]
by = "timing"
timing = "last/report.json"
[retries]
failed = 1
[[quarantine]]
test = "*flaky*"
reason = "QA-7"
until = 2026-12-31
[[needs]]
test = "*pair*"
phones = 2
[deadlines]
test_s = 30
[broker]
origins = ["http://127.0.0.1:8000"]
"""


def test_a_whole_plan_is_read() -> None:
    """Every table has its values, and what is left out its default."""
    plan = parse_plan(FULL)
    assert (plan.name, plan.phones, plan.worker_count, plan.retries.infra) == ("checkout", 4, 4, 2)
    assert plan.quarantine[0].until == date(2026, 12, 31)
    assert parse_plan("version = 1\n").worker_count == 1


@pytest.mark.parametrize(
    ("text", "line", "field", "said"),
    [
        ("version = 2\n", 1, "version", "Invalid enum value 2"),
        ("version = 1\nx = " + "[" * 50_000, None, "", "nested too deep"),
        ("version = 1\nx = " + "9" * 5_000, None, "", "a number or date is out of range"),
        ("version = 1\n" + "a." * 100_000 + "a = 1", 2, "", "a key has too many parts"),
        ("name = 'x'\n", None, "version", "is missing"),
        ("version = 1\n\nworker = 3\n", 3, "worker", "no such field"),
        ("version = 1\n[pool]\nimage = 'a'\nphones = -1\n", 4, "pool.phones", "`int` >= 0"),
        ("version = 1\n[pool]\nrecycle = 'burn'\n", 3, "pool.recycle", "Invalid enum value 'burn'"),
        ("version = 1\n[retries]\nfailed = 1\nfail = 1\n", 4, "retries.fail", "no such field"),
        (
            "version = 1\n[[quarantine]]\ntest = 'a'\nreason = 'b'\n[[quarantine]]\ntest = 'c'\n",
            5,
            "quarantine[1]",
            "`reason`",
        ),
        ("version = 1\n[deadlines]\nrun_s = 0\n", 3, "deadlines.run_s", "> 0"),
        ("version = 1\n[shards]\nby = 'timing'\n", 2, "shards.timing", "earlier report"),
        ("version = 1\n[shards]\ntiming = 'x'\n", 3, "shards.timing", "goes with"),
        ("version = 1\nworkers = 5\n[pool]\nphones = 2\n", 2, "workers", "would wait for 2 phones"),
        ("version = 1\nname = \n", 2, "", "Invalid value"),
    ],
)
def test_a_fault_names_line_and_field(text: str, line: int | None, field: str, said: str) -> None:
    """One wrong thing is one fault, at its place."""
    with pytest.raises(PlanError) as caught:
        parse_plan(text)
    (fault,) = caught.value.faults
    assert (fault.line, fault.field) == (line, field)
    assert said in fault.message


def test_what_no_pool_could_give_is_refused_before_it_is_queued() -> None:
    """Row 11: three phones of a pool of two are never waited for; the refusal says how many there are."""
    with pytest.raises(
        PlanError, match=r"line 6: needs\[0\].phones: no pool could ever give 3 phones: this plan has 2"
    ):
        parse_plan("version = 1\n[pool]\nphones = 2\n[[needs]]\ntest = 'x'\nphones = 3\n")


def test_every_table_with_a_fault_is_named_at_once() -> None:
    """Who writes a plan does not have to find the faults one by one."""
    with pytest.raises(PlanError) as caught:
        parse_plan("version = 1\n[pool]\nphones = 'x'\n[shards]\nby = 3\n[odd]\n")
    assert [fault.field for fault in caught.value.faults] == ["pool.phones", "shards.by", "odd"]


def test_a_plan_that_is_no_text_or_not_there_is_told(tmp_path: Path) -> None:
    """A missing file, bytes that are no UTF-8, and a file that is too large."""
    for content in (None, b"\xff\xfe", b"#" * (256 * 1024 + 1)):
        path = tmp_path / "PLAN.toml"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(PlanError):
            read_plan(path)


def test_patterns_mean_ids() -> None:
    """`*` and `?` as in file names; brackets of parameters mean themselves."""
    name = "tests/test_a.py::test_p[a-1]"
    assert matches(name, name)
    assert matches("tests/*::test_p[a-?]", name)
    assert not matches("tests/*::test_p[ab]", name)


def test_quarantine_ends_on_its_day_and_odd_rules_are_told() -> None:
    """On the last day it counts, on the next it is over; a rule that means nothing is a warning."""
    tests = values.tests_of(2)
    rule, nothing = Quarantine(test="*test_1", reason="QA-7", until=date(2026, 6, 30)), Quarantine(test="x", reason="r")
    assert reason_for(tests[0], [rule], date(2026, 6, 30)) == "QA-7"
    assert reason_for(tests[0], [rule], date(2026, 7, 1)) is None
    assert reason_for(tests[1], [rule], date(2026, 6, 30)) is None
    assert len(warnings(tests, [rule, nothing], date(2026, 6, 30))) == 1
    assert len(warnings(tests, [rule, nothing], date(2026, 7, 1))) == 2


def test_needs_are_those_of_the_first_rule() -> None:
    """Without a rule a test needs one phone, if there is a pool."""
    plan = parse_plan(FULL)
    assert needs_of(values.planned(1, "tests/test_pair.py"), plan.needs, 4) == Needs(phones=2)
    assert needs_of(values.planned(1), plan.needs, 4) == Needs(phones=1)
    assert needs_of(values.planned(1), (), 0) == Needs(phones=0)


def test_the_policy_of_an_own_broker_is_one_that_lomi_accepts(tmp_path: Path) -> None:
    """It holds the hash of the token and not the token, and no wider grant than the plan asks for."""
    from lomi.broker.policy import read_policy

    path = tmp_path / "policy.toml"
    text = policy_text(parse_plan(FULL.replace('"wipe"', '"reuse"')), "secret")
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
    policy = read_policy(path)
    assert [device.name for device in policy.device] == ["lab-1", "lab-2", "lab-3", "lab-4"]
    assert policy.client[0].origins == ("http://127.0.0.1:8000",)
    assert "secret" not in text
