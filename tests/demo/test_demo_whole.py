"""The demo as a person starts it: as a process, to its end, and interrupted."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from lomi.demo.broker import descendants
from lomi.demo.plan import EMAIL, NAME, PLAN

COMMAND = [sys.executable, "-m", "lomi.demo", "--offline", "--into"]


@pytest.mark.timeout(240)
def test_the_demo_ends_well_and_its_report_is_whole(tmp_path: Path) -> None:
    """Every step runs, each effect is found once by the phone and the web server, and the folder holds it all."""
    done = subprocess.run([*COMMAND, tmp_path / "out"], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert folder == tmp_path / "out"
    whole = json.loads((folder / "transcript.json").read_text())
    assert whole["good"] is True
    assert [step["key"] for step in whole["steps"]] == [planned.key for planned in PLAN]
    assert all(finding["good"] for finding in whole["findings"])
    for step in whole["steps"]:
        for picture in step["pictures"]:
            assert (folder / picture["file"]).read_bytes().startswith(b"\x89PNG")
    suite = Xml.parse(folder / "junit.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "0")
    posts = [line for line in (folder / "web.log.jsonl").read_text().splitlines() if "POST" in line]
    assert [json.loads(post)["fields"]["name"] for post in posts] == [NAME]
    assert EMAIL in posts[0]
    assert NAME in (folder / "phone.log.jsonl").read_text()
    assert "default-src 'none'" in (folder / "report.html").read_text().replace("&#x27;", "'")
    assert "\x1b" not in done.stderr


@pytest.mark.timeout(120)
def test_a_phone_that_ends_at_once_fails_the_demo_with_its_last_words(tmp_path: Path) -> None:
    """The exit code, the report and the evidence all tell of the failure, and the rest is still taken down."""
    (tmp_path / "faults.toml").write_text('[[fault]]\nname = "exit_early"\ntext = "out of ink"\n')
    environment = {**os.environ, "PAPER_FAULTS": str(tmp_path / "faults.toml")}
    done = subprocess.run(
        [*COMMAND, tmp_path / "out"], capture_output=True, text=True, check=False, timeout=100, env=environment
    )
    assert done.returncode == 1
    assert "FAIL Boot a phone" in done.stderr
    assert "ok      No process and no temporary file is left" in done.stderr
    suite = Xml.parse(tmp_path / "out" / "junit.xml").getroot()[0]
    assert int(suite.get("skipped", "0")) == len(PLAN) - 4
    assert "Something failed" in (tmp_path / "out" / "report.html").read_text()
    words = [path.read_text() for path in (tmp_path / "out").glob("evidence-*.txt")]
    assert len(words) == 1
    assert "out of ink" in words[0]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_demo_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """A signal in the middle, and another while that ends, ends broker, phone, browser, helper; the home goes."""
    process = subprocess.Popen([*COMMAND, tmp_path / "out"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[ 3/"):
            break
    family = descendants(process.pid)
    homes = {word for pid in family for word in _environment(pid) if word.startswith("LOMI_HOME=")}
    # What the broker forks is called as it is, for a moment; the broker was there before all of them.
    broker = min((pid for pid in family if b"\0up\0--headless" in _command(pid)), key=family.__getitem__)
    os.kill(broker, signal.SIGSTOP)
    process.send_signal(number)
    while not _pending(broker, signal.SIGTERM):
        assert process.poll() is None
        time.sleep(0.002)
    # It waits for its broker now, and the person is impatient.
    process.send_signal(number)
    os.kill(broker, signal.SIGCONT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.endswith("lomi: interrupted; what the demo had started has been ended\n")
    assert len(family) >= 3
    assert len(homes) == 1
    assert not Path(homes.pop().partition("=")[2]).parent.exists()
    assert {pid for pid, started in family.items() if _started(pid) == started} == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_interrupted_while_it_fetches_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """An index that never answers: pip is ended, and neither its folder nor a process of it is left."""
    with socket.create_server(("127.0.0.1", 0)) as index:
        (tmp_path / "t").mkdir()
        cache = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "t")}
        pip = {"PIP_INDEX_URL": f"http://127.0.0.1:{index.getsockname()[1]}/simple", "PIP_NO_CACHE_DIR": "1"}
        command = [word for word in COMMAND if word != "--offline"]
        with subprocess.Popen(
            [*command, tmp_path / "out"],
            env={**os.environ, **cache, **pip},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            index.settimeout(40)
            with index.accept()[0]:
                family = descendants(process.pid)
                process.send_signal(number)
                _, said = process.communicate(timeout=40)
    assert (process.returncode, len(family) >= 1) == (130, True), said
    assert {pid for pid, started in family.items() if _started(pid) == started} == set()
    assert (list((tmp_path / "t").iterdir()), list((tmp_path / "cache" / "lomi" / "demo").iterdir())) == ([], [])


def _pending(pid: int, number: signal.Signals) -> bool:
    """Whether the process, which is stopped, has yet to see this signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    waiting = next(line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:"))
    return bool(int(waiting, 16) & 1 << (number - 1))


def _command(pid: int) -> bytes:
    """Its command line; empty once it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _environment(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/environ").read_text().split("\0")
    except OSError:
        return []


def _started(pid: int) -> str | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


def test_help_says_where_the_report_goes() -> None:
    """`lomi demo --help` needs no broker and names the options."""
    shown = subprocess.run([*COMMAND[:-2], "--help"], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert "--into" in shown.stdout
    assert "--offline" in shown.stdout
