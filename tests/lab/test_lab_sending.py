"""What can't be sent to other hosts is told before anything runs there."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path

import pytest
from lab import lab_runs

from lomi.lab import files
from lomi.lab import run as runs
from lomi.lab.lanes import HostClock
from lomi.lab.plan import PlanError
from lomi.lab.run import RunOrder, run_plan
from lomi.lab.shard import Needs, Shard, ShardResult


class FarEngine:
    """Hosts elsewhere, which must not hear of the run."""

    capacity = 1
    ships_files = True

    def check(self, needs: Needs) -> None:
        """It could give anything."""

    async def run(self, shard: Shard, needs: Needs) -> ShardResult:
        """Not here."""
        raise AssertionError(f"shard {shard.number} was given out")


async def refused(root: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run a plan on such an engine; what it is refused for."""

    @asynccontextmanager
    async def opened(*_: object) -> AsyncIterator[FarEngine]:
        yield FarEngine()

    monkeypatch.setattr(runs, "opened_engine", opened)
    order = RunOrder(
        plan=lab_runs.write_project(root, "", {"tests/test_one.py": "def test_a(): pass\n"}),
        arguments=arguments,
        environment=lab_runs.environment_of(root),
        told=list[str]().append,
        today=date(2026, 1, 1),
        clock=HostClock(),
    )
    with pytest.raises(PlanError) as raised:
        await run_plan(order)
    (fault,) = raised.value.faults
    return str(fault)


async def test_a_file_name_that_is_no_text_is_a_fault_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the file's name, spelled out."""
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.bin")).touch()
    assert await refused(tmp_path, monkeypatch) == (
        "tests.folder: the file '\\udcff.bin' has a name that is no UTF-8; no other host could have it"
    )


async def test_an_argument_that_is_no_text_is_a_fault_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a shell may give it."""
    assert "an argument for pytest is no UTF-8" in await refused(tmp_path, monkeypatch, "--ignore=\udcff")


async def test_too_many_files_are_a_fault_of_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is named, and what to do."""
    monkeypatch.setattr(files, "MOST_FILES", 2)
    assert "holds more than 2 files; name a folder of tests alone" in await refused(tmp_path, monkeypatch)
