"""`ci/qualify` told to end: at any line, in the midst of a spawn, while it starts up, and a second time."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness.gates import PASSES, ROOT, Bench
from harness.moments import calls, carriers, signalled_at

AT_EVERY_LINE = """
import linecache, os, signal, sys
from pathlib import Path
from ending import stopping
from qualifying import running

running.LOOKS_S = (0.0,)
log, lines, seen = Path(sys.argv[1]), {running.__file__, stopping.__file__}, 0


def trace(frame, event, argument):
    global seen
    if frame.f_code.co_filename not in lines or frame.f_code.co_name in ("_come", "<lambda>"):
        return None
    if event == "line":
        seen += 1
        if seen == wanted:
            os.kill(os.getpid(), signal.SIGINT)
        elif seen < wanted and "select.select(" in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
            os.write(gate, b"go\\n")
    return trace


os.mkfifo(log.with_name("gate"))
gate = os.open(log.with_name("gate"), os.O_RDWR)
command = ["sh", "-c", f"read line < {log.with_name('gate')}"]


wanted, found = 0, []
while True:
    wanted, seen = wanted + 1, 0
    stop = stopping.Stop()
    stop.listen()
    sys.settrace(trace)
    ran = running.run(command, folder=log.parent, log=log, bound_s=30, stop=stop)
    sys.settrace(None)
    if not stop.count:
        break
    found.append((ran.ending, ran.code, ran.left))
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        continue
    raise SystemExit(f"a child is left after a signal at line {wanted}")
print(repr(found))
"""
DEMO = "echo 'ok      one tap'; echo 'all good in 9.5 s, 51 calls'"
KEPT = (
    [("test", "passed"), ("demo", "passed")],
    [("test", "passed"), ("demo", "interrupted")],
    [("test", "passed")],
    [("test", "interrupted")],
)
SLOW_SPAWN = """
import subprocess, time
fork = subprocess._fork_exec

def slow(*arguments):
    pid = fork(*arguments)
    if b"LOMI_QUALIFY_GATE" in b" ".join(arguments[5] or []):
        time.sleep(0.5)
    return pid

subprocess._fork_exec = slow
"""


def test_a_signal_at_any_line_ends_the_gate(tmp_path: Path) -> None:
    """Whichever line it comes at, no exception leaves the run, no child stays, and the ending is one of two."""
    ran = subprocess.run(
        [sys.executable, "-c", AT_EVERY_LINE, str(tmp_path / "log")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "ci")},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    found = eval(ran.stdout)
    assert len(found) > 20
    assert set(found) == {("interrupted", -signal.SIGTERM, 0), ("ended", 0, 0)}
    first_ended = found.index(("ended", 0, 0))
    assert first_ended > 10, "from the first line on, and while the gate runs, it is ended"
    assert found[first_ended:] == [("ended", 0, 0)] * (len(found) - first_ended)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_spawn_has_returned_is_heard(bench: Bench, tmp_path: Path, number: signal.Signals) -> None:
    """The gate runs, and the call that starts it has not come back: it is ended and recorded, and the code is 130."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SLOW_SPAWN)
    environment = {**bench.environment, "LOMI_TEST_TAG": str(tmp_path)}
    environment["PYTHONPATH"] = f"{tmp_path / 'site'}:{environment['PYTHONPATH']}"
    bench.gate("test", PASSES)
    os.mkfifo(tmp_path / "begun")
    bench.gate("demo", f"echo > {tmp_path}/begun; exec sleep 600")
    with subprocess.Popen(
        bench.command(), env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True
    ) as process:
        (tmp_path / "begun").read_text()
        process.send_signal(number)
        assert process.wait(40) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert [one["verdict"] for one in bench.runs[0]["results"]] == ["passed", "interrupted"]
    assert carriers(f"LOMI_TEST_TAG={tmp_path}") == []


def test_a_second_signal_hurries(bench: Bench, tmp_path: Path) -> None:
    """A gate that won't end for a request is killed at once when Ctrl-C comes again, and is recorded as interrupted."""
    os.mkfifo(tmp_path / "begun")
    os.mkfifo(tmp_path / "asked")
    bench.gate("demo", f"trap 'echo > {tmp_path}/asked' TERM; echo > {tmp_path}/begun; while :; do sleep 0.05; done")
    with subprocess.Popen(bench.command(), env=bench.environment, start_new_session=True) as process:
        (tmp_path / "begun").read_text()
        process.send_signal(signal.SIGINT)
        (tmp_path / "asked").read_text()
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
        assert time.monotonic() - begun < 12, "it waits 15 s where nobody hurries it"
    (result,) = bench.runs[0]["results"]
    assert (result["verdict"], result["code"]) == ("interrupted", -signal.SIGKILL)


@pytest.mark.timeout(180)  # nine runs one after another, each traced call by call
def test_a_signal_at_any_moment_leaves_nothing(bench: Bench, tmp_path: Path) -> None:
    """At seeded calls from its first line to its last gate: 130, no traceback, no process, a history that reads."""
    bench.gate("test", PASSES)
    bench.gate("demo", DEMO)
    site = tmp_path / "site"

    def ran(at: int, number: signal.Signals) -> subprocess.CompletedProcess[str]:
        environment = signalled_at({**bench.environment, "LOMI_TEST_TAG": str(tmp_path)}, site, at, number)
        return subprocess.run(bench.command(), env=environment, capture_output=True, text=True, timeout=50, check=False)

    assert ran(0, signal.SIGINT).returncode == 0
    # Counts differ by what else runs here, whose processes are looked at: the last of them may not come again.
    whole, moments = calls(site) * 7 // 10, random.Random(36)
    for _ in range(8):
        at, number = moments.randrange(1, whole), moments.choice((signal.SIGINT, signal.SIGTERM))
        ended = ran(at, number)
        assert (ended.returncode, "Traceback" in ended.stderr) == (130, False), f"{number.name} at {at} of {whole}"
        assert carriers(f"LOMI_TEST_TAG={tmp_path}") == []
    for one in bench.runs:
        assert [(result["gate"], result["verdict"]) for result in one["results"]] in KEPT
