"""The reproducible harness: two runs alike, and that it can fail: a changed answer and a chance value are seen."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from rehearsal.normal import Symbols
from rehearsal.scenario import Call, Scenario, ScenarioError, Together, Walk, find, load
from rehearsal.transcript import Entry, Transcript, difference, whole_digest

from lomi.contract.tools import BY_NAME

ROOT = Path(__file__).resolve().parents[2]
LOOK = """
title = "A client looks"
clients = { a = "calls" }

[[step]]
do = "call"
as = "a"
tool = "lomi_workspace_list"
expect = "answered"
"""
CHANCE = (
    LOOK
    + """
[[step]]
note = "An epoch is another in each life; that it may differ is not said here."
do = "call"
as = "a"
tool = "lomi_connect"
exact = ["data.retryEpoch"]
"""
)


def played(*words: str) -> subprocess.CompletedProcess[str]:
    """`ci/harness` without its setting up."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LOMI_", "PYTEST_"))}
    path = os.pathsep.join(filter(None, (str(ROOT / "ci"), environment.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "rehearsal", *words],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def entries(path: Path) -> list[Entry]:
    """A transcript that was written."""
    return [msgspec.json.decode(line, type=Entry) for line in path.read_bytes().splitlines()]


@pytest.mark.timeout(150)
def test_a_phone_s_life_is_the_same_twice(tmp_path: Path) -> None:
    """Boot to stop, digest for digest, over the socket; the transcript holds no id, time or path of its run."""
    said = played("run", "life", "--image", "paper", "--seed", "7", "--repeat", "2", "--into", str(tmp_path))
    assert said.returncode == 0, said.stdout + said.stderr
    first, second = entries(tmp_path / "life-1.jsonl"), entries(tmp_path / "life-2.jsonl")
    assert [entry.digest for entry in first] == [entry.digest for entry in second]
    assert len(first) > 15
    assert f"digest {whole_digest([sealed(first)])}" in said.stdout
    raw = (tmp_path / "life-1.jsonl").read_text()
    assert "/tmp" not in raw
    assert '"<generation 1>"' in raw


def sealed(lines: list[Entry]) -> Transcript:
    """The same lines once more."""
    made = Transcript()
    for line in lines:
        made.add(line)
    return made


@pytest.mark.timeout(120)
def test_what_is_left_to_chance_is_reported(tmp_path: Path) -> None:
    """A value that differs between runs ends with 1 and a diff that shows it."""
    (tmp_path / "chance.toml").write_text(CHANCE)
    said = played("run", str(tmp_path / "chance.toml"), "--repeat", "2")
    assert said.returncode == 1, said.stdout + said.stderr
    assert "the runs differ" in said.stderr
    assert "chance, step 2 (a):" in said.stdout
    minus, plus = ([line for line in said.stdout.splitlines() if f"{sign}  " in line] for sign in "-+")
    assert any("retryEpoch" in line for line in minus)
    assert any("retryEpoch" in line for line in plus)


@pytest.mark.timeout(120)
def test_a_wrong_answer_and_another_digest_fail(tmp_path: Path) -> None:
    """An expectation that does not hold ends with 1 and shows the answer; so does `--expect` with other digits."""
    (tmp_path / "wrong.toml").write_text(LOOK.replace('"answered"', '"SCOPE_DENIED"'))
    said = played("run", str(tmp_path / "wrong.toml"), "--repeat", "1")
    assert said.returncode == 1
    assert "expected  SCOPE_DENIED\n  got       answered" in said.stderr
    (tmp_path / "look.toml").write_text(LOOK)
    said = played("run", str(tmp_path / "look.toml"), "--repeat", "1", "--expect", "0000")
    assert said.returncode == 1
    digest = said.stdout.rpartition("digest ")[2].split()[0]
    said = played("run", str(tmp_path / "look.toml"), "--repeat", "1", "--expect", digest[:12])
    assert said.returncode == 0, said.stderr


def test_a_changed_answer_changes_every_digest_from_there_on() -> None:
    """The chain: what comes before keeps its digest, what comes after does not."""
    lines = [Entry(scenario="s", step=number, who="a", asked={"n": number}, answered="ok") for number in range(4)]
    changed = [*lines[:2], msgspec.structs.replace(lines[2], answered="another"), lines[3]]
    one, other = sealed(lines), sealed(changed)
    alike = [x.digest == y.digest for x, y in zip(one.entries, other.entries, strict=True)]
    assert alike == [True, True, False, False]
    shown = difference(one.entries, other.entries)
    assert shown[0] == "s, step 2 (a):"
    assert '  - "answered": "ok",' in shown
    assert '  + "answered": "another",' in shown
    assert difference(one.entries, one.entries) == []
    assert difference(one.entries, one.entries[:3]) == ["4 entries in the first run, 3 in this one"]


def test_the_same_thing_has_the_same_symbol_wherever_it_stands() -> None:
    """By first sight, in fields and in texts; times lose their value, other values keep it."""
    symbols = Symbols("/tmp/lr-1", simulated=True)
    lease, device = "l7", "50737cd5-77f2-5ade-8cb3-569da5c8986d"
    seen = symbols.normal({"leaseId": lease, "deviceId": device, "capturedAtMillis": "17", "count": 17, "open": True})
    assert seen == {
        "leaseId": "<lease 1>",
        "deviceId": "<device 1>",
        "capturedAtMillis": "<time>",
        "count": 17,
        "open": True,
    }
    told = symbols.normal({"hint": f"{device} at 127.0.0.1:5554 in /tmp/lr-1/h since 2026-11-30T03:00:00Z, pid 71"})
    assert told == {"hint": "<device 1> at 127.0.0.1:<port 1> in <home>/h since <time>, pid <pid 1>"}
    assert symbols.normal({"leaseId": "l8"}) == {"leaseId": "<lease 2>"}
    assert symbols.normal({"panelId": lease}) == {"panelId": "<panel 1>"}, "short ids are told apart by their kind"


def test_a_real_image_leaves_out_what_it_shows() -> None:
    """Screens of a real image differ; the rules that scenarios are about don't."""
    symbols = Symbols("/tmp/lr-1", simulated=False)
    assert symbols.normal({"nodes": [{"text": "7:31"}], "state": "ok"}) == {"nodes": "<of the image>", "state": "ok"}


@pytest.mark.skipif("ANDROID_HOME" in os.environ, reason="there may be a real image here")
def test_a_real_image_that_is_not_there_is_skipped_with_its_reason() -> None:
    """Exit code 77, never 0: nothing was shown."""
    said = played("run", "--image", "atd-34-x86_64")
    assert said.returncode == 77
    assert "ANDROID_HOME names no SDK with an emulator" in said.stderr


def calls(scenario: Scenario) -> list[Call]:
    """Every call of a scenario."""
    found: list[Call] = []
    for step in scenario.steps:
        match step:
            case Call():
                found.append(step)
            case Together():
                found += step.calls
            case Walk():
                found += [move for move in step.moves if isinstance(move, Call)]
            case _:
                pass
    return found


@pytest.mark.parametrize("path", find(()), ids=lambda path: path.stem)
def test_each_scenario_is_well_formed(path: Path) -> None:
    """It names tools that there are and clients that it has."""
    scenario = load(path)
    for call in calls(scenario):
        assert call.tool in BY_NAME
        assert call.client in scenario.clients


def test_a_broken_scenario_is_told_by_name(tmp_path: Path) -> None:
    """An unknown field, an unknown name: one line, nothing started."""
    (tmp_path / "odd.toml").write_text(LOOK.replace("expect", "expects"))
    with pytest.raises(ScenarioError, match=r"odd\.toml: .*expects"):
        load(tmp_path / "odd.toml")
    with pytest.raises(ScenarioError, match=r"there are .*life"):
        find(["nothing"])


@pytest.mark.deep
@pytest.mark.timeout(2400)
def test_every_scenario_is_the_same_twice(tmp_path: Path) -> None:
    """All of them with one seed, as `ci/harness run` has it."""
    said = played("run", "--image", "paper", "--seed", "7", "--repeat", "2", "--into", str(tmp_path))
    assert said.returncode == 0, said.stdout + said.stderr
    assert len(list(tmp_path.glob("*-2.jsonl"))) == len(find(()))


@pytest.mark.deep
@pytest.mark.timeout(900)
def test_another_seed_takes_another_way() -> None:
    """The walk of seed 8 is not that of seed 7, and is the same twice as well."""
    digests = {
        played("run", "walk", "--seed", seed, "--repeat", "2").stdout.rpartition("digest ")[2].split()[0]
        for seed in ("7", "8")
    }
    assert len(digests) == 2
