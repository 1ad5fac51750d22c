"""Real runs of pytest with the plugin, each a process of its own, and what they left."""

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import World
from lab_world import LABEL, TOKEN

from lomi.lab.records import AttemptRecord, read_records

KILL_PHONE = """
import os, pathlib, signal
def kill_phone(phone):
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
                home = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"emulator_images.paper" in words and phone.name.encode() in words and HOME.encode() in words + home:
                os.kill(int(entry.name), signal.SIGKILL)
"""


@dataclass(frozen=True)
class InnerRun:
    """A run that has ended."""

    result: pytest.RunResult
    folder: Path
    records: tuple[AttemptRecord, ...]

    @property
    def output(self) -> str:
        """What it printed."""
        return self.result.stdout.str() + self.result.stderr.str()

    def outcomes(self) -> list[tuple[str, int, str]]:
        """Test, attempt and outcome of each record."""
        return [(one.node_id.partition("::")[2], one.attempt, one.outcome) for one in self.records]

    def cases(self) -> list[ElementTree.Element]:
        """The test cases of its JUnit file."""
        return list(ElementTree.parse(self.folder / "junit.xml").iter("testcase"))


def run_inner(
    pytester: pytest.Pytester, source: str, *arguments: str, environment: Mapping[str, str], seconds: float = 150.0
) -> InnerRun:
    """Run one file of tests to its end."""
    pytester.makepyfile(test_inner=textwrap.dedent(source))
    left = pytester.path / "left"
    with pytest.MonkeyPatch.context() as patched:
        for name in [name for name in os.environ if name.startswith(("LOMI_", "PYTEST_"))]:
            patched.delenv(name)
        for name, value in environment.items():
            patched.setenv(name, value)
        result = pytester.runpytest_subprocess(
            *("-p", "no:randomly", "-p", "no:cacheprovider", "-W", "ignore", "--junitxml", "junit.xml"),
            *(f"--lomi-records={left}/records.jsonl", *arguments),
            timeout=seconds,
        )
    file = left / "records.jsonl"
    return InnerRun(result, pytester.path, tuple(read_records(file)) if file.exists() else ())


def environment_of(world: World) -> dict[str, str]:
    """What a process needs to be this world's client."""
    return {
        "LOMI_HOME": str(world.home),
        "XDG_RUNTIME_DIR": str(world.runtime),
        "LOMI_CLIENT_LABEL": LABEL,
        "LOMI_CLIENT_TOKEN": TOKEN,
    }
