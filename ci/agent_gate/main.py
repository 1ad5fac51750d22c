"""The gate as a command: tasks times servers, a table, and an exit code."""

import argparse
import asyncio
import json
import os
import secrets
import shlex
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import get_args

import msgspec

from agent_gate.anthropic import Anthropic
from agent_gate.draw import answer_for, drawn
from agent_gate.drive import ModelSetting
from agent_gate.openai import OpenAI
from agent_gate.other import opened_other
from agent_gate.outcome import LOMI, Outcome, comparison_of, head_of, line_of, totals_of
from agent_gate.run import EndpointGoneError, Job, Model, Opened, run_task
from agent_gate.stage import opened_lomi
from agent_gate.standin.server import MODEL, StandIn, opened_standin
from agent_gate.talk import Dialect
from agent_gate.task import Budget, Capability, Saboteur, Task, load_tasks
from lomi.cli.shown import printable

KEY_VARIABLE = "LOMI_GATE_KEY"
LOMI_CAN: frozenset[Capability] = frozenset({"page", "phone", "project", "lomi"})


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A tool server to be tried; `command` is empty for Lomi's own."""

    name: str
    command: tuple[str, ...]
    can: frozenset[Capability]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="ci/agent-gate", description=__doc__)
    made.add_argument("--model", help="the model's name at the endpoint")
    made.add_argument("--endpoint", metavar="URL", help="base URL of the API, as https://api.openai.com/v1")
    made.add_argument("--api", choices=("openai", "anthropic"), default="openai", help="default: openai")
    made.add_argument(
        "--key-env", metavar="NAME", default=KEY_VARIABLE, help=f"variable with the key (default: {KEY_VARIABLE})"
    )
    made.add_argument("--server", metavar="COMMAND", action="append", default=[], help="another MCP server to compare")
    made.add_argument(
        "--can", action="append", default=[], metavar="WHAT", help="what the n-th --server can: page, phone, page,phone"
    )
    made.add_argument("--no-lomi", action="store_true", help="only the servers given")
    made.add_argument("--task", action="append", default=[], metavar="NAME", help="only this task; repeat for more")
    made.add_argument("--calls", type=int, help="most calls of a task")
    made.add_argument("--tokens", type=int, help="most tokens of a task, in and out")
    made.add_argument("--seconds", type=int, help="most seconds of a task")
    made.add_argument("--most-output", type=int, default=4096, help="most tokens of one answer (default: 4096)")
    made.add_argument("--old-limit-name", action="store_true", help="send max_tokens instead of max_completion_tokens")
    made.add_argument("--no-images", action="store_true", help="for a model that takes no pictures")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    made.add_argument("--transcripts", type=Path, metavar="DIR", help="keep every conversation there")
    made.add_argument(
        "--saboteur",
        choices=get_args(Saboteur),
        help="the stand-in spoils the tasks that it can spoil so: each must fail",
    )
    made.add_argument(
        "--seed", default=secrets.token_hex(4), help="what the tasks' words are drawn from (default: new)"
    )
    made.add_argument("--list", action="store_true", help="list the tasks and end")
    return made


def _chosen(names: Sequence[str], saboteur: Saboteur | None) -> tuple[Task, ...]:
    """The tasks that are named, or all; with a saboteur, of those the ones that it can spoil."""
    tasks = load_tasks()
    unknown = set(names) - {task.name for task in tasks}
    if unknown:
        raise _UsageError(f"no task is named {', '.join(sorted(unknown))}; --list names them")
    tasks = tuple(task for task in tasks if not names or task.name in names)
    found = tuple(task for task in tasks if saboteur is None or saboteur in task.all_saboteurs)
    if not found:
        raise _UsageError(f"none of these tasks can be spoiled by {saboteur}")
    return found


class _UsageError(Exception):
    pass


def _need_model(asked: argparse.Namespace) -> None:
    if not asked.endpoint:
        asked.model = asked.model or MODEL
    if asked.endpoint and not asked.model:
        raise _UsageError("--endpoint needs the --model to ask there")
    if not asked.endpoint and asked.model != MODEL:
        raise _UsageError(
            f"--model {asked.model} needs its --endpoint; without one there is only {MODEL}, the stand-in"
        )
    if asked.saboteur and asked.endpoint:
        raise _UsageError("--saboteur is the stand-in's: leave out --endpoint")


def _need_key(asked: argparse.Namespace) -> None:
    key = os.environ.get(asked.key_env, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise _UsageError(f"the key in {asked.key_env} holds what can't be sent: use printable ASCII")


def _need_places(asked: argparse.Namespace) -> None:
    """Fail before the first task, not after the last, where the results can't be written."""
    try:
        if asked.json is not None:
            asked.json.open("a").close()
            if asked.json.is_file():
                _beside(asked.json).touch()
                _beside(asked.json).unlink()
        if asked.transcripts is not None:
            asked.transcripts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _UsageError(f"{error.filename} can't be written: {error.strerror}") from error


def _servers(asked: argparse.Namespace) -> list[Server]:
    found = [] if asked.no_lomi else [Server(name=LOMI, command=(), can=LOMI_CAN)]
    for number, line in enumerate(asked.server):
        try:
            words = tuple(shlex.split(line))
        except ValueError as error:
            raise _UsageError(f"--server {line}: {error}") from error
        if not words:
            raise _UsageError("--server needs a command")
        found.append(Server(name=f"server-{number + 1}", command=words, can=_abilities(asked.can, number)))
    if not found:
        raise _UsageError("--no-lomi without --server leaves nothing to try")
    return found


def _abilities(said: Sequence[str], number: int) -> frozenset[Capability]:
    known: dict[str, frozenset[Capability]] = {
        "page": frozenset({"page"}),
        "phone": frozenset({"phone"}),
        "page,phone": frozenset({"page", "phone"}),
    }
    found = known.get(said[number] if number < len(said) else "page")
    if found is None:
        raise _UsageError(f"--can takes one of: {' '.join(known)}")
    return found


def _budget(task: Task, asked: argparse.Namespace) -> Budget:
    given = {name: getattr(asked, name) for name in ("calls", "tokens", "seconds") if getattr(asked, name) is not None}
    return msgspec.structs.replace(task.budget, **given)


def _dialect(asked: argparse.Namespace) -> Dialect:
    if asked.api == "anthropic":
        return Anthropic()
    return OpenAI("max_tokens") if asked.old_limit_name else OpenAI()


async def _run(
    asked: argparse.Namespace, tasks: Sequence[Task], servers: Sequence[Server], folder: Path
) -> list[Outcome]:
    width = max(len(task.name) for task in tasks)
    outcomes: list[Outcome] = []
    async with AsyncExitStack() as stack:
        standin: StandIn | None = None
        # Out of our own environment: whatever the gate starts from here on inherits no key.
        url, key = asked.endpoint, os.environ.pop(asked.key_env, "").strip()
        if not url:
            standin = StandIn(secrets.token_urlsafe(16))
            url, key = await stack.enter_async_context(opened_standin(standin)), standin.key
        setting = ModelSetting(model=asked.model, most_output=asked.most_output, pictures=not asked.no_images)
        model = Model(base_url=url, dialect=_dialect(asked), key=key, setting=setting)
        for server in servers:
            _say(f"{server.name}: {shlex.join(server.command) or 'lomi mcp --profile qa'}")
            _say(head_of(width))
            for task in tasks:
                if standin is not None:
                    standin.begin(task.name, asked.saboteur, answer_for(task, drawn(f"before {asked.seed}", task.name)))
                try:
                    outcomes.append(await _one(asked, task, server, model, folder))
                except EndpointGoneError as gone:
                    outcomes.append(gone.outcome)
                    raise
                finally:
                    _keep(asked, outcomes, servers, complete=False)
                _say(line_of(outcomes[-1], width))
            _say(totals_of([one for one in outcomes if one.server == server.name], width))
            _say("")
    for line in comparison_of(outcomes, width):
        _say(line)
    return outcomes


async def _one(asked: argparse.Namespace, task: Task, server: Server, model: Model, folder: Path) -> Outcome:
    missing = sorted(set(task.needs) - server.can)
    if missing:
        return Outcome(server=server.name, task=task.name, title=task.title, reasons=tuple(missing), applicable=False)
    opened: Opened = partial(opened_other, server.command) if server.command else opened_lomi
    job = Job(task=task, server=server.name, seed=asked.seed, opened=opened, budget=_budget(task, asked), folder=folder)
    return await run_task(job, model)


def _say(line: str) -> None:
    sys.stdout.write(line.rstrip() + "\n")
    sys.stdout.flush()


def _beside(path: Path) -> Path:
    return path.resolve().with_name(f".{path.name}.{os.getpid()}.new")


def _keep(asked: argparse.Namespace, outcomes: Sequence[Outcome], servers: Sequence[Server], *, complete: bool) -> None:
    """Write what there is, after each task and whole: what ends the gate in between loses no result."""
    if asked.json is None:
        return
    content = _written(asked, outcomes, servers, complete=complete)
    if asked.json.exists() and not asked.json.is_file():
        if complete:  # a pipe or a terminal takes it once
            asked.json.write_bytes(content)
        return
    beside = _beside(asked.json)
    beside.write_bytes(content)
    beside.replace(asked.json.resolve())


def _written(
    asked: argparse.Namespace, outcomes: Sequence[Outcome], servers: Sequence[Server], *, complete: bool
) -> bytes:
    return json.dumps(
        {
            "model": asked.model,
            "api": asked.api,
            "seed": asked.seed,
            "complete": complete,
            "tokensEstimated": not asked.endpoint,
            "servers": [{"name": one.name, "command": one.command, "can": sorted(one.can)} for one in servers],
            "outcomes": [{**msgspec.to_builtins(one), "result": one.result} for one in outcomes],
        },
        ensure_ascii=False,
        indent=1,
    ).encode("utf-8", "backslashreplace")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the gate; 0 where every applicable task passed, 1 where one failed, 2 for a wrong command line."""
    made = parser()
    asked = made.parse_args(argv)
    if asked.list:
        for task in load_tasks():
            _say(f"{task.name:18} {', '.join(task.needs):14} {task.title}")
        return 0
    try:
        tasks, servers = _chosen(asked.task, asked.saboteur), _servers(asked)
        _need_model(asked)
        _need_key(asked)
        _need_places(asked)
    except _UsageError as error:
        made.error(str(error))
    return _gate(asked, tasks, servers)


def _gate(asked: argparse.Namespace, tasks: Sequence[Task], servers: Sequence[Server]) -> int:
    if not asked.endpoint:
        _say("No model is asked: a stand-in plays written scripts. Its tokens are estimates, a quarter of the bytes.")
    _say(f"Answers are drawn anew for each run: --seed {shlex.quote(asked.seed)} draws this run's again.")
    with tempfile.TemporaryDirectory(prefix="lomi-gate-") as scratch:
        folder = asked.transcripts or Path(scratch)
        try:
            outcomes = asyncio.run(_interruptible(asked, tasks, servers, folder))
            _keep(asked, outcomes, servers, complete=True)
        except EndpointGoneError as error:
            sys.stderr.write(f"lomi: {printable(str(error))}\nhint: check --endpoint, --api, --model and the key\n")
            return 1
        except (KeyboardInterrupt, asyncio.CancelledError):
            sys.stderr.write("lomi: interrupted; what the gate had started has been ended\n")
            return 130
        except BrokenPipeError:
            raise  # whoever read the table has seen enough
        except OSError as error:
            sys.stderr.write(f"lomi: {error.filename or 'a file'} can't be used: {error.strerror}\n")
            return 1
    return 0 if all(one.passed for one in outcomes if one.applicable) else 1


async def _interruptible(
    asked: argparse.Namespace, tasks: Sequence[Task], servers: Sequence[Server], folder: Path
) -> list[Outcome]:
    """Told to end, the run is cancelled once: what it had started then ends whole."""
    task, told = asyncio.current_task(), asyncio.Event()
    assert task is not None

    def end() -> None:
        if not told.is_set():
            told.set()
            task.cancel()

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(one) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(one, end)
    return await _run(asked, tasks, servers, folder)
