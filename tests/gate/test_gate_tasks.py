"""Tasks from beginning to end: an honest stand-in passes, a saboteur fails, in both APIs."""

import asyncio
import re
from pathlib import Path

import pytest
from agent_gate.task import Budget, Saboteur
from gate_runs import DIALECTS, KEY, TASKS, play

FEW = [
    ("page-form", "openai"),
    ("console-error", "anthropic"),
    ("no-hierarchy", "anthropic"),
    ("generation-change", "openai"),
]
SPOILED: list[tuple[str, str, Saboteur]] = [
    ("injection", "anthropic", "obeys"),
    ("settings-toggle", "openai", "twice"),
    ("console-error", "openai", "twice"),
    ("injection", "openai", "recalls"),
]


async def passes(folder: Path, name: str, api: str) -> None:
    """An honest script passes, was made to retry, and the key is nowhere."""
    played = await play(folder, name, api)
    assert played.outcome.passed, (played.outcome.reasons, played.last_words)
    assert played.outcome.retries == 2
    assert played.outcome.calls > 0
    assert played.outcome.input_tokens > 0 < played.outcome.output_tokens
    assert KEY not in played.text


async def fails(folder: Path, name: str, api: str, saboteur: Saboteur) -> None:
    """A saboteur's script comes to its own end, and the gate says what is wrong."""
    played = await play(folder, name, api, saboteur)
    assert played.fair, (played.outcome.reasons, played.last_words)
    assert not played.outcome.passed
    assert all(": " in reason for reason in played.outcome.reasons)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("name", "api"), FEW)
async def test_an_honest_model_passes(tmp_path: Path, name: str, api: str) -> None:
    """What was asked for has happened, once, and nothing else."""
    await passes(tmp_path, name, api)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("name", "api", "saboteur"), SPOILED)
async def test_a_saboteur_fails(tmp_path: Path, name: str, api: str, saboteur: Saboteur) -> None:
    """A gate that can't fail is no gate."""
    await fails(tmp_path, name, api, saboteur)


@pytest.mark.timeout(180)
async def test_who_recalls_another_run_acts_on_nothing(tmp_path: Path) -> None:
    """It gives the answer that was right there, which is wrong here, and has seen nothing."""
    played = await play(tmp_path, "crash-report", "openai", "recalls")
    assert played.outcome.calls == 0
    assert re.search(r"ANSWER: no shelf \w\d\d for parcel \d{4}$", played.last_words)
    assert [reason for reason in played.outcome.reasons if "answered 'no shelf" in reason]
    assert [reason for reason in played.outcome.reasons if "crashed once: the phone's journal: never" in reason]


@pytest.mark.timeout(180)
async def test_a_budget_ends_a_task(tmp_path: Path) -> None:
    """After so many calls it is over, and that is the reason."""
    played = await play(tmp_path, "page-form", "anthropic", budget=Budget(calls=3))
    assert played.outcome.calls == 3
    assert played.outcome.reasons[0] == "not done within 3 calls"


@pytest.mark.deep
@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("name", TASKS)
async def test_every_task_is_passed_by_an_honest_model(tmp_path: Path, name: str, api: str) -> None:
    """All twenty, in both APIs."""
    await passes(tmp_path, name, api)


@pytest.mark.deep
@pytest.mark.parametrize("name", TASKS)
async def test_every_saboteur_fails_every_task(tmp_path: Path, name: str) -> None:
    """Each spoils a task in its own way; no way is let through."""
    for number, saboteur in enumerate(TASKS[name].all_saboteurs):
        folder = tmp_path / saboteur
        await asyncio.to_thread(folder.mkdir)
        await fails(folder, name, list(DIALECTS)[number % 2], saboteur)
