"""Whole tasks with the stand-in, as the command runs them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_gate.anthropic import Anthropic
from agent_gate.draw import answer_for, drawn
from agent_gate.drive import ModelSetting
from agent_gate.openai import OpenAI
from agent_gate.outcome import LOMI, Outcome
from agent_gate.run import Job, Model, run_task
from agent_gate.stage import opened_lomi
from agent_gate.standin.server import MODEL, StandIn, opened_standin
from agent_gate.talk import Dialect
from agent_gate.task import Budget, Saboteur, Task, load_tasks

TASKS = {task.name: task for task in load_tasks()}
DIALECTS = {"openai": OpenAI, "anthropic": Anthropic}
KEY = "a-key-that-nobody-may-see"


@dataclass(frozen=True)
class Played:
    """What came of it, and the transcript."""

    outcome: Outcome
    transcript: dict[str, Any]
    text: str

    @property
    def last_words(self) -> str:
        """What the stand-in said last."""
        said = [entry["model"] for entry in self.transcript["conversation"] if "model" in entry]
        return str(said[-1]) if said else ""

    @property
    def fair(self) -> bool:
        """Whether the script came to its own end, and neither the world nor the endpoint failed."""
        lost = self.last_words.startswith(("I am lost", "The stand-in has no script"))
        troubled = any(reason.startswith(("the world", "the endpoint")) for reason in self.outcome.reasons)
        return not lost and not troubled


async def play(
    folder: Path, name: str, api: str, saboteur: Saboteur | None = None, budget: Budget | None = None
) -> Played:
    """One task with Lomi."""
    task: Task = TASKS[name]
    dialect: Dialect = DIALECTS[api]()
    standin = StandIn(KEY)
    standin.begin(name, saboteur, answer_for(task, drawn("the run before", name)))
    async with opened_standin(standin) as url:
        model = Model(base_url=url, dialect=dialect, key=KEY, setting=ModelSetting(model=MODEL))
        job = Job(task=task, server=LOMI, seed="a run", opened=opened_lomi, budget=budget or task.budget, folder=folder)
        outcome = await run_task(job, model)
    text = (folder / f"{LOMI}-{name}.json").read_text(encoding="utf-8")
    return Played(outcome, json.loads(text), text)
