"""What `ci` has overseen, told to end: one line, an exit code, and nothing of it goes on or lies about."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / "ci"
PROGRAMS = {
    "ci/bench": ("benches", "cli", "--starts", "1000"),
    "ci/harness": ("rehearsal", "run", "claim-race", "--repeat", "1000"),
}
STAGES = {
    "with its program": b".program",
    "with a broker": b"\0up\0--headless",
    "with a phone": b"emulator_images.paper",
}
SPAWNER = """
import subprocess, tempfile
tempfile.mkdtemp()
while True:
    subprocess.Popen(["setsid", "sh", "-c", "trap '' INT TERM HUP; sleep 600 & wait"], stderr=subprocess.DEVNULL)
    print("x", flush=True)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what was started")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder for a run, with a path that is short enough for sockets; all processes of the run name it."""
    place = Path(tempfile.mkdtemp(prefix="t-", dir="/tmp"))
    yield place
    place.rmdir()


def started(folder: Path, *words: str, path: Path = CI) -> subprocess.Popen[str]:
    """A run."""
    return subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": f"{CI}:{path}", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def of_run(folder: Path, word: bytes = b"") -> list[bytes]:
    """The command lines of its processes that have this word in them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(folder) in (entry / "environ").read_bytes() and word in (entry / "cmdline").read_bytes():
                found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue
    return found


def hears(pid: int) -> bool:
    """Whether the process handles SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))


@pytest.mark.parametrize(
    ("program", "stage"),
    [
        (program, stage)
        for program in PROGRAMS
        for stage in ("once it hears", *STAGES)
        if (program, stage) != ("ci/bench", "with a phone")  # this bench has none
    ],
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_told_to_end_it_leaves_nothing(
    program: str, stage: str, number: signal.Signals, code: int, folder: Path
) -> None:
    """No traceback, 128 and the signal's number; neither a process nor a folder of it is left, however far it was."""
    with started(folder, "-m", *PROGRAMS[program]) as process:
        while not (of_run(folder, STAGES[stage]) if stage in STAGES else hears(process.pid)):
            assert process.poll() is None
            time.sleep(0.002)
        # A terminal's Ctrl-C reaches the whole group; a supervisor's SIGTERM only the first.
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        _, said = process.communicate(timeout=40)
    assert (process.returncode, said.splitlines()[1:]) == (code, []), said
    assert said.startswith(f"{program}: ended by {number.name}")
    assert (of_run(folder), list(folder.iterdir())) == ([], [])


def test_one_that_spawns_all_the_time_is_ended_whole(folder: Path, tmp_path: Path) -> None:
    """What it starts in sessions of their own, deaf to requests, up to the moment of its end, goes with it."""
    (tmp_path / "spawner.py").write_text(SPAWNER)
    program = "import sys; from ending.overseer import overseen; sys.exit(overseen('it', ['-m', 'spawner']))"
    with started(folder, "-c", program, path=tmp_path) as process:
        assert process.stdout is not None
        for _ in range(5):
            assert process.stdout.readline() == "x\n"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=40)
    assert (process.returncode, said) == (143, "it: ended by SIGTERM, with all that it had started\n")
    assert (of_run(folder), list(folder.iterdir())) == ([], [])


def test_what_ends_by_itself_says_how(folder: Path, tmp_path: Path) -> None:
    """Its own exit code, and still nothing of it is left."""
    (tmp_path / "brief.py").write_text(
        "import subprocess, tempfile\ntempfile.mkdtemp()\nsubprocess.Popen(['setsid', 'sleep', '600'])\nexit(7)\n"
    )
    program = "import sys; from ending.overseer import overseen; sys.exit(overseen('it', ['-m', 'brief']))"
    with started(folder, "-c", program, path=tmp_path) as process:
        assert process.communicate(timeout=40) == ("", "")
    assert process.returncode == 7
    assert (of_run(folder), list(folder.iterdir())) == ([], [])
