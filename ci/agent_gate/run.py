"""One task from beginning to end: its world, the conversation, the end, the judgement."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from mcp.shared.exceptions import MCPError

from agent_gate.draw import drawn
from agent_gate.drive import Course, Drive, ModelSetting
from agent_gate.endpoint import Endpoint, without_key
from agent_gate.judge import Records, Verdict, answer_of, judge, nothing_else
from agent_gate.outcome import Outcome
from agent_gate.stage import Stage, StageError
from agent_gate.talk import Dialect
from agent_gate.task import Budget, Task, filled, filled_checks, system_prompt
from agent_gate.tools import CLOSED, ToolsError, opened_tools
from agent_gate.transcript import write_transcript
from lomi.demo.record import DemoFailedError

Opened = Callable[[Task, Mapping[str, str], Path], AbstractAsyncContextManager[Stage]]
"""Sets the world of a task up with the words that were drawn for it, and a log file for what its processes say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Where a model is and how it is asked."""

    base_url: str
    dialect: Dialect
    key: str
    setting: ModelSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A task, the seed of its words, the world that it runs in."""

    task: Task
    server: str
    seed: str
    opened: Opened
    budget: Budget
    folder: Path
    clock: Callable[[], float] = time.monotonic


class EndpointGoneError(Exception):
    """Raised when the endpoint would refuse every other task as well; one line, and what came of the last task."""

    def __init__(self, text: str, outcome: Outcome) -> None:
        super().__init__(text)
        self.outcome = outcome


async def run_task(job: Job, model: Model) -> Outcome:
    """Run one task. Whatever keeps it from its end is a reason of its failure.

    Raises:
        EndpointGoneError: the endpoint refuses us, or is gone.
    """
    course, retries, seconds = Course(), 0, 0.0
    reasons: list[str] = []
    log = job.folder / f"{job.server}-{job.task.name}.log"
    try:
        async with job.opened(job.task, drawn(job.seed, job.task.name), log) as stage, httpx2.AsyncClient() as client:
            endpoint = Endpoint(client, model.base_url, model.dialect, model.key)
            async with opened_tools(
                stage.command, stage.environment, stage.directory, log, job.budget.seconds
            ) as tools:
                drive = Drive(endpoint, tools, model.setting, stage.called)
                system = "\n\n".join(part for part in (system_prompt(), tools.instructions) if part)
                started, course = job.clock(), drive.course
                await drive.run(system, filled(job.task.prompt.strip(), stage.words), job.budget)
                seconds = job.clock() - started
            retries = endpoint.retries
            ended = await stage.end()
            reasons = _reasons(job.task, without_key(course.last_words, model.key), course.problem, stage, ended)
    except* (DemoFailedError, StageError, ToolsError, MCPError, OSError, ValueError) as group:
        reasons = [f"the world of the task: {_said(group)}"]
    reasons = [without_key(reason, model.key) for reason in reasons]
    transcript = job.folder / f"{job.server}-{job.task.name}.json"
    write_transcript(transcript, f"{job.task.title} ({job.server})", course, reasons, model.key)
    outcome = Outcome(
        server=job.server,
        task=job.task.name,
        title=job.task.title,
        reasons=tuple(reasons),
        calls=course.calls,
        input_tokens=course.input_tokens,
        output_tokens=course.output_tokens,
        seconds=seconds,
        retries=retries,
    )
    if course.fatal:
        raise EndpointGoneError(without_key(course.problem, model.key), outcome)
    return outcome


def _said(group: BaseExceptionGroup) -> str:
    """The first of the errors, in one line."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    if isinstance(found, MCPError):
        return "the tool server ended" if found.message == CLOSED else f"the tool server: {found.message}"
    return next(iter(str(found).splitlines()), type(found).__name__)


def _reasons(task: Task, last_words: str, problem: str, stage: Stage, ended: str) -> list[str]:
    records: Records = stage.records(answer_of(last_words))
    checks = filled_checks(task, stage.words)
    verdicts: list[Verdict] = [*judge(checks, records), nothing_else(checks, records)]
    wrong = [f"{verdict.says}: {verdict.found}" for verdict in verdicts if not verdict.good]
    return [reason for reason in (problem, *wrong, ended) if reason]
