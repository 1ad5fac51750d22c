"""`lomi up` told to end at odd moments."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import LOMI
from harness.moments import carriers, signalled_import

POLICY = """version = 1
[[device]]
name = "phone-1"
image = "paper-36"
"""


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder whose path leaves room for sockets."""
    with tempfile.TemporaryDirectory(prefix="lu-", dir="/tmp") as made:
        for name in ("home", "run", "project"):
            (Path(made) / name).mkdir(mode=0o700)
        (Path(made) / "policy.toml").write_text(POLICY)
        (Path(made) / "policy.toml").chmod(0o600)
        yield Path(made)


@pytest.mark.parametrize("module", ["lomi.host", "devices.fleet", "lomi.terminals.rooms"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_reads_its_own_modules_ends_it_with_0(
    root: Path, module: str, number: signal.Signals
) -> None:
    """As one that comes later: no traceback, and neither a process nor a socket of it is left."""
    places = {"LOMI_HOME": str(root / "home"), "XDG_RUNTIME_DIR": str(root / "run")}
    environment = signalled_import({**os.environ, **places}, root / "site", module, number)
    command = [LOMI, "up", "--headless", "--policy", root / "policy.toml", "--project", root / "project"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert carriers(f"LOMI_HOME={root}") == []
    assert list((root / "run").iterdir()) == []


def test_one_started_with_nohup_outlives_its_terminal(root: Path) -> None:
    """SIGHUP, ignored from the start, changes nothing; SIGTERM ends it."""
    places = {"LOMI_HOME": str(root / "home"), "XDG_RUNTIME_DIR": str(root / "run")}
    command = [LOMI, "up", "--headless", "--policy", root / "policy.toml", "--project", root / "project", "--json"]
    shell = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", *command]
    with subprocess.Popen(shell, env={**os.environ, **places}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert b"ready" in process.stdout.readline()
        ignored = next(
            line.split()[1]
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
            if line.startswith("SigIgn:")
        )
        assert int(ignored, 16) & 1 << (signal.SIGHUP - 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0
