"""The pytest plugin where no broker runs: it starts one for the run, and ends it whatever happens to the run."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.process import processes_that_name
from harness.site import serving
from plugin_runs import run_inner

from lomi.lab.plugin import stations

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(180)
"""A run starts pytest, its workers, a broker and phones: seconds on a quiet machine, a minute on a crowded one."""


@pytest.fixture
def home() -> Iterator[Path]:
    """A state folder with a short path, in which at the end nothing runs."""
    made = Path(tempfile.mkdtemp(prefix="lh-")).resolve()
    try:
        yield made
        assert gone(made), list(processes_that_name(made))
    finally:
        for pid, _ in processes_that_name(made):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(made, ignore_errors=True)


def gone(home: Path, seconds: float = 60.0) -> bool:
    """Whether nothing names a home any more, after the time that it has to go away: a keeper gives its broker 30 s."""
    end = time.monotonic() + seconds
    while list(processes_that_name(home)):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def journal_of(home: Path, name: str) -> str:
    """What a phone wrote down itself."""
    return (home / "devices" / "avd" / f"{name}.avd" / "paper-journal.jsonl").read_text()


def test_a_run_without_a_broker_has_one_for_its_time(pytester: pytest.Pytester, home: Path) -> None:
    """Two workers share the one that the first of them started; both phones show their own effects; all ends."""
    source = """
import os, pathlib, time, pytest
HERE = pathlib.Path(__file__).parent
@pytest.mark.parametrize("number", range(2))
def test_each(phone, number):
    worker = os.environ["PYTEST_XDIST_WORKER"]
    (HERE / f"began-{worker}").touch()
    while len(list(HERE.glob("began-*"))) < 2:
        time.sleep(0.02)
    phone.launch("lomi.paper.form")
    phone.type(worker, into="name")
    phone.tap("Submit")
"""
    ran = run_inner(pytester, source, "-n", "2", "--lomi-home", str(home), environment={})
    ran.result.assert_outcomes(passed=2)
    assert len({record.broker for record in ran.records}) == 1
    phones = {record.worker: {one.name for one in record.leased} for record in ran.records}
    assert phones == {"gw0": {"paper-36-1"}, "gw1": {"paper-36-2"}}
    assert '"name":"gw0"' in journal_of(home, "paper-36-1").replace(": ", ":")
    assert '"name":"gw1"' in journal_of(home, "paper-36-2").replace(": ", ":")


def test_a_worker_that_looks_while_another_starts_the_broker_shares_it(pytester: pytest.Pytester, home: Path) -> None:
    """It saw that none was begun, and comes to the one that was: it is not refused for want of that one's token."""
    source = """
import os, pathlib, time, lomi, pytest
HERE, FIRST, CONNECT = pathlib.Path(__file__).parent, os.environ.get("PYTEST_XDIST_WORKER") == "gw0", lomi.connect
def until(name):
    while not (HERE / name).exists():
        time.sleep(0.02)
def connect(**given):
    if "token" not in given and FIRST:
        until("the second looks")
    elif "token" not in given:
        (HERE / "the second looks").touch()
        until("the first has it")
    return CONNECT(**given)
lomi.connect = connect
@pytest.mark.parametrize("number", range(2))
def test_each(phone, number):
    (HERE / "the first has it").touch()
    phone.go("home")
"""
    ran = run_inner(pytester, source, "-n", "2", "--lomi-home", str(home), environment={})
    ran.result.assert_outcomes(passed=2)
    assert len({record.broker for record in ran.records}) == 1


def test_a_broker_that_dies_costs_an_attempt_and_not_the_run(pytester: pytest.Pytester, home: Path) -> None:
    """Kill -9 the broker in a test: infra, and the next attempt runs on a broker that was started again."""
    source = """
import os, pathlib, signal
TRIES = []
def kill_broker():
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words, home = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"--headless" in words and b"keeper" not in words and HOME.encode() in home:
                os.kill(int(entry.name), signal.SIGKILL)
def test_lost(phone):
    TRIES.append(phone.generation)
    if len(TRIES) == 1:
        kill_broker()
    phone.tap("Form")
def test_after(phone):
    phone.go("home")
"""
    source = f"HOME = {str(home)!r}\n{source}"
    ran = run_inner(pytester, source, "--lomi-home", str(home), environment={})
    assert ran.result.parseoutcomes() == {"passed": 2, "infra": 1}, ran.output
    assert ran.outcomes() == [("test_lost", 1, "infra_error"), ("test_lost", 2, "passed"), ("test_after", 1, "passed")]
    first, second, third = ran.records
    assert first.broker != second.broker == third.broker
    assert first.leased[0].generation < second.leased[0].generation == third.leased[0].generation


@pytest.mark.parametrize("shown", [(), ("--showlocals",)])
def test_a_broker_that_can_not_start_says_why_once_and_shows_no_token(
    pytester: pytest.Pytester, home: Path, shown: tuple[str, ...]
) -> None:
    """What pytest shows of the failing functions holds the refusal's last words, and nothing that opens a broker."""
    home.chmod(0o755)
    options = ("--lomi-home", str(home), *shown)
    ran = run_inner(pytester, "def test_any(phone): pass", *options, environment={})
    ran.result.assert_outcomes(errors=1)
    said = [line for line in ran.output.splitlines() if line.startswith("E ") and "others may enter" in line]
    assert len(said) == 1, ran.output
    assert said[0].count("others may enter") == 1
    assert "chmod 700" in said[0]
    assert not re.search(r"\b[A-Za-z0-9_-]{43}\b", ran.output)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_image_that_there_is_not_is_wrong_usage(
    pytester: pytest.Pytester, home: Path, workers: tuple[str, ...]
) -> None:
    """It ends the run at once, with the names there are; a worker fails its tests with them, each once."""
    source = "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_any(phone, n): pass\n"
    options = ("--phone", "nosuch", "--lomi-home", str(home), *workers)
    ran = run_inner(pytester, source, *options, environment={})
    assert "lomi: --phone: no image is named 'nosuch'; known are paper-30, " in ran.output
    assert "infra" not in ran.output
    if workers:
        ran.result.assert_outcomes(errors=3)
        assert [attempt for _, attempt, _ in ran.outcomes()] == [1, 1, 1]
    else:
        assert (ran.result.ret, ran.outcomes()) == (pytest.ExitCode.USAGE_ERROR, [])


def test_a_killed_run_leaves_no_broker_behind(tmp_path: Path, home: Path) -> None:
    """Kill -9 pytest itself: its broker and its phone end all the same."""
    (tmp_path / "test_inner.py").write_text(
        "import pathlib, time\n"
        "def test_long(phone):\n"
        "    pathlib.Path(__file__).with_name('began').touch()\n"
        "    time.sleep(600)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LOMI_", "PYTEST_"))}
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider", f"--lomi-home={home}"]
    with (tmp_path / "said").open("wb") as said:
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=said, stderr=said)
    try:
        end = time.monotonic() + 120
        while not (tmp_path / "began").exists():
            assert run.poll() is None, (tmp_path / "said").read_text()
            assert time.monotonic() < end, (tmp_path / "said").read_text()
            time.sleep(0.02)
        words = [word for _, line in processes_that_name(home) for word in line.split()]
        roots = {Path(word).parent for word in words if word.endswith("/policy.toml")}
        assert len(roots) == 1
        assert len(list(processes_that_name(home))) >= 3
    finally:
        run.kill()
        run.wait()
    assert gone(home)
    (root,) = roots
    end = time.monotonic() + 60
    while root.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert not root.exists()


def test_a_keeper_that_ends_as_it_is_told_to_fails_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It still held its lock when it was looked at, and is gone when the signal comes."""
    looks = iter((True, False))
    monkeypatch.setattr(stations, "keeper_lives", lambda _: next(looks))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        (tmp_path / stations.KEEPER_PID).write_text(str(ended.pid))
    stations.end_keeper(tmp_path)
    assert list(looks) == []


def test_pages_of_a_runs_own_broker_leave_videos_and_traces(pytester: pytest.Pytester, home: Path) -> None:
    """Its grant holds what they need: a failing test has both files, and nothing is said to be missing."""
    with serving() as site:
        source = f"""
def test_page(page):
    page.goto("{site.origin}/")
    assert False
"""
        options = ("--video=retain-on-failure", "--tracing=on", "--lomi-origin", site.origin, "--lomi-home", str(home))
        ran = run_inner(pytester, source, *options, environment={})
    ran.result.assert_outcomes(failed=1)
    names = {one.path.rpartition("/")[2] for one in ran.records[0].artifacts}
    assert {"video.webp", "page-trace.zip", "trace.jsonl"} <= names
    assert "SCOPE_DENIED" not in ran.output
