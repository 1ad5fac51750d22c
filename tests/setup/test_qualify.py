"""`ci/qualify` on stand-ins for the gates: what the page says of each ending, and that no failure is ever lost."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from benches.rows import Report, row, write_json
from harness.gates import PASSES, Bench, checkout
from qualifying import reading, sources

DEMO = "echo 'ok      one tap'; echo 'all good in 9.5 s, 51 calls'"


def test_every_ending_is_told_apart(bench: Bench) -> None:
    """Passed, failed, out of time, killed and "showed nothing" each stand on the page with code, tail and figures."""
    bench.gate("test", PASSES)
    bench.gate("demo", "echo 'FAIL    a tap was lost ```'; echo 'FAILED in 9.5 s, 51 calls'; exit 1")
    bench.gate("conformance", "sleep 600 & wait")
    bench.gate("harness", "echo working; kill -KILL $$")
    bench.gate("agent-gate", "echo 'there is no phone here'; exit 77")
    bench.gate("deep", "true")
    ran = bench.qualify("--bound", "conformance=0.5")
    assert ran.returncode == 1, ran.stderr
    verdicts = {one["gate"]: (one["verdict"], one["code"]) for one in bench.runs[0]["results"]}
    assert verdicts == {
        "test": ("passed", 0),
        "demo": ("failed", 1),
        "conformance": ("out of time", -signal.SIGTERM),
        "agent-gate": ("could not run", 77),
        "harness": ("killed", -signal.SIGKILL),
        "deep": ("showed nothing", 0),
    }
    assert "tests passed 7; tests skipped 1" in bench.row("test")
    assert "not run" in bench.row("bench")
    assert "[1] tests/real/x.py:9: no SDK here" in bench.page
    failures = bench.page.partition("## Failures kept")[2]
    assert "````text\nFAIL    a tap was lost ```" in failures
    assert failures.count("### `ci/") == 5
    assert "| ci/bench | this tree has no such gate |" in bench.page
    assert "**Not qualified**" in bench.page
    for gate in ("demo", "conformance", "agent-gate", "harness", "deep"):
        assert f"`ci/{gate}`: {verdicts[gate][0]}" in ran.stdout


def test_a_failure_stays_after_the_gate_passes(bench: Bench) -> None:
    """The table shows the newest result, and the old failure is still on the page with its tail and its commit."""
    bench.gate("test", "echo 'E assert 1 == 2'; echo '=== 1 failed, 6 passed in 0.5s ==='; exit 1")
    bench.gate("demo", DEMO)
    assert bench.qualify().returncode == 1
    bench.gate("test", PASSES)
    ran = bench.qualify("--only", "test")
    assert ran.returncode == 0, ran.stderr
    assert "| passed |" in bench.row("test")
    assert "| passed |" in bench.row("demo"), "an earlier result of the same sources still counts"
    assert "E assert 1 == 2" in bench.page.partition("## Failures kept")[2]
    assert [len(run["results"]) for run in bench.runs] == [2, 1]
    assert "| ci/demo | left out by --only |" in bench.page


def test_what_a_quick_run_shows_qualifies_nothing(bench: Bench) -> None:
    """It runs gates in part and says so; a full result of the same sources is not hidden by it."""
    bench.gate("test", f'echo "given: $*"; {PASSES}')
    bench.gate("deep", "exit 1")
    assert bench.qualify("--quick").returncode == 0
    assert "passed (in part: --quick)" in bench.row("test")
    assert "| ci/deep | left out by --quick |" in bench.page
    assert "`ci/test` was run only in part" in bench.page
    assert bench.qualify("--skip", "deep").returncode == 0
    assert bench.qualify("--quick").returncode == 0
    assert "| passed |" in bench.row("test")


def test_what_a_gate_leaves_behind_is_ended_and_told(bench: Bench, tmp_path: Path) -> None:
    """A process that a gate forgot, in a session of its own, does not outlive it."""
    bench.gate("demo", f"setsid sleep 600 >/dev/null 2>&1 & echo $! > {tmp_path}/pid; {DEMO}")
    assert bench.qualify().returncode == 0
    assert "1 processes left behind" in bench.row("demo")
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][:3]


def test_ctrl_c_keeps_what_was_shown_so_far(bench: Bench, tmp_path: Path) -> None:
    """The gate that runs is ended and recorded as interrupted; those before it stay; the exit code is 130."""
    bench.gate("test", PASSES)
    os.mkfifo(tmp_path / "begun")
    bench.gate("demo", f"echo > {tmp_path}/begun; exec sleep 600")
    with subprocess.Popen(bench.command(), env=bench.environment, start_new_session=True) as process:
        (tmp_path / "begun").read_text()
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    assert [one["verdict"] for one in bench.runs[0]["results"]] == ["passed", "interrupted"]
    assert "**interrupted**" in bench.row("demo")


def test_a_history_that_cannot_be_read_is_not_overwritten(bench: Bench) -> None:
    """Exit code 2, the file as it was, and no gate was run."""
    bench.gate("test", PASSES)
    (bench.place / "docs").mkdir()
    history = bench.place / "docs" / "qualification.json"
    history.write_text('{"format": 99, "runs": []}')
    ran = bench.qualify()
    assert (ran.returncode, history.read_text()) == (2, '{"format": 99, "runs": []}')
    assert "format 99" in ran.stderr
    assert bench.qualify("--only", "tset").returncode == 2


@pytest.mark.parametrize(
    ("gate", "script", "why"),
    [
        ("test", "echo '=== 1 passed, 3 failed in 0.5s ==='", "tests failed 3"),
        ("test", "echo '=== 3 failed in 0.5s ==='", "tests failed 3"),
        ("deep", "echo '=== 7 passed, 1 error in 0.5s ==='", "tests error 1"),
        ("demo", "echo 'ok      one tap'; echo 'FAILED in 1 s, 51 calls'", "runs that failed 1"),
        ("demo", "echo 'FAIL    a tap was lost'; echo 'all good in 1 s, 51 calls'", "effects not so 1"),
        ("conformance", "echo 'conformance 2025-11-25: FAILED; passed: tools'", "suites that failed 1"),
        ("harness", "echo 'tap  run 1  40 entries'; echo 'harness: the runs differ'", "digests missing 1"),
    ],
)
def test_failures_that_are_shown_count_whatever_the_exit_code(bench: Bench, gate: str, script: str, why: str) -> None:
    """A gate that ends with 0 has failed where its own figures count a failure, and the page says which."""
    bench.gate(gate, script)
    ran = bench.qualify("--only", gate)
    assert (ran.returncode, f"ci/{gate}: failed" in ran.stdout) == (1, True)
    assert "| **failed** |" in bench.row(gate)
    assert f"Its figures show failures: {why}." in bench.page.partition("## Failures kept")[2]


@pytest.mark.parametrize(
    ("gate", "file", "content", "why"),
    [
        ("agent-gate", "agent-gate.json", "[]", "agent-gate.json: Expected `object`, got `array`"),
        ("agent-gate", "agent-gate.json", "", "agent-gate.json: Expecting value"),
        ("bench", "bench.json", '[{"bench": "cli", "machine": {"loadAtStart": 0, "loadAtEnd": 0}}]', "field `rows`"),
        ("demo", "demo/junit.xml", "<testsuite>", "junit.xml: no element found"),
    ],
)
def test_what_cannot_be_read_is_recorded_and_the_gates_go_on(
    bench: Bench, gate: str, file: str, content: str, why: str
) -> None:
    """A broken file of a gate has a verdict of its own, with the reason on the page; the next gates are still run."""
    logs = bench.place / "work"
    bench.gate(gate, f"mkdir -p {logs}/demo; printf %s '{content}' > {logs}/{file}; {DEMO}")
    bench.gate("deep", PASSES)
    ran = bench.qualify()
    assert ran.returncode == 1, ran.stderr
    verdicts = {one["gate"]: one["verdict"] for one in bench.runs[0]["results"]}
    assert verdicts == {gate: "showed nothing that can be read", "deep": "passed"}
    assert why in bench.page.partition("## Failures kept")[2]


def test_what_the_benches_write_is_read(tmp_path: Path) -> None:
    """A row with a yardstick, one without, and one whose yardstick took no time, which JSON has no number for."""
    rows = [row("tap", [2.0], ("adb", [1.0]), target=3.0), row("start", [5.0], target=4.0, note="cold")]
    write_json(tmp_path / "bench.json", [Report("android", [*rows, row("idle", [1.0], ("none", [0.0]))])])
    figures = reading.bench("", tmp_path)
    assert (figures["rows measured"], figures["targets met"], figures["targets missed"]) == (3, 1, 1)
    assert figures["missed"] == ["android: start: 5 ms, at most 4 (cold)"]
    assert isinstance(figures["measured"], list)
    assert figures["measured"][0] == "android: tap: 2 ms; adb: 1 ms; ratio 2.00, at most 3"
    assert figures["measured"][2] == "android: idle: 1 ms; none: 0 ms; ratio inf"


def test_only_a_folder_of_its_own_is_emptied(bench: Bench) -> None:
    """Logs of an earlier run give way; a folder with another's files is refused with exit code 2 and left as it was."""
    bench.gate("demo", DEMO)
    assert bench.qualify().returncode == 0
    (bench.place / "work" / "demo.log").write_text("of the first run")
    assert bench.qualify().returncode == 0
    assert "all good" in (bench.place / "work" / "demo.log").read_text()
    mine = bench.place / "mine" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("years of work")
    ran = bench.qualify("--work", str(mine.parent))
    assert ran.returncode == 2
    assert "--work names another folder" in ran.stderr
    assert [path.read_text() for path in mine.parent.iterdir()] == ["years of work"]
    ran = bench.qualify("--work", str(bench.place / "all"), "--into", str(bench.place / "all" / "docs"))
    assert (ran.returncode, "name another --work" in ran.stderr) == (2, True)
    assert len(bench.runs) == 2


def test_the_hash_of_the_tree_can_be_had_by_hand(bench: Bench) -> None:
    """The command on the page gives the same hash, in a checkout of its own; what is not committed is named."""
    files = {"b.py": "b", "a é.py": "a", "docs/qualification.md": "page"}
    tree = checkout(bench.place / "a checkout", files)
    by_hand = subprocess.run(["bash", "-c", sources.BY_HAND], cwd=tree, capture_output=True, text=True, check=True)
    assert by_hand.stdout.split()[0] == sources.tree_hash(tree)
    assert sources.changed(tree) == []
    (tree / "b.py").write_text("changed")
    (tree / "new.py").write_text("new")
    (tree / "docs" / "qualification.md").write_text("other page")
    assert sources.changed(tree) == ["b.py", "new.py"]
