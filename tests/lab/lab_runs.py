"""Whole runs of the lab as a command, in folders of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from lomi.lab.report.model import RunReport, TestReport

COMMAND = (sys.executable, "-c", "from lomi.cli.main import main; main()", "lab")
_KEPT = ("PATH", "LANG", "HOME", "PYTHONPATH", "PLAYWRIGHT_BROWSERS_PATH")


@dataclass(frozen=True)
class Ended:
    """A run that has ended: exit code, what it printed, and its report's folder."""

    code: int
    out: str
    err: str
    folder: Path

    @property
    def report(self) -> RunReport:
        """The report as others read it."""
        return msgspec.json.decode((self.folder / "report.json").read_bytes(), type=RunReport)

    def test(self, name: str) -> TestReport:
        """The one test whose id ends like this."""
        (found,) = [test for test in self.report.tests if test.id.endswith(name)]
        return found


def environment_of(root: Path, **more: str) -> dict[str, str]:
    """What a run inherits: a home of its own, and of pytest's plugins only those that it names."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    home, runtime = root / "h", root / "r"
    for folder in (home, runtime):
        folder.mkdir(mode=0o700, exist_ok=True)
    places = {"LOMI_HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), "TMPDIR": str(root)}
    return {**kept, **places, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}


def write_project(folder: Path, plan: str, files: Mapping[str, str]) -> Path:
    """A project with a plan and tests; the plan's path."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    path = folder / "PLAN.toml"
    path.write_text(f"version = 1\n{plan}", encoding="utf-8")
    return path


def launch(plan: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    """Start a run without waiting for it."""
    return subprocess.Popen(
        [*COMMAND, "run", str(plan), *arguments],
        env=environment_of(plan.parent, **more),
        cwd=plan.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(plan: Path, *arguments: str, **more: str) -> Ended:
    """Run a plan to its end."""
    process = launch(plan, *arguments, **more)
    try:
        out, err = process.communicate(timeout=170)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        raise AssertionError(f"the run did not end:\n{out}\n{err}") from None
    return Ended(process.returncode, out, err, plan.parent / "lab-report")


def verify(folder: Path, *arguments: str) -> tuple[int, str]:
    """`lomi lab verify`: its exit code and what it printed."""
    ended = subprocess.run(
        [*COMMAND, "verify", str(folder), *arguments],
        env=environment_of(folder.parent),
        check=False,
        capture_output=True,
        text=True,
        timeout=55,
    )
    return ended.returncode, ended.stdout + ended.stderr
