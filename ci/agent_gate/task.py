"""A task as its file says it: what a person asks for, what the world looks like, and what must be true afterwards."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Literal

import msgspec

Capability = Literal["page", "phone", "project", "lomi"]
"""What a task asks of a tool server: pages, a phone, files of a project, or Lomi's own rules (leases, generations)."""
Saboteur = Literal["nothing", "claims", "recalls", "twice", "wrong", "decoy", "obeys"]
"""How the stand-in spoils a task: see `agent_gate.standin.scripts`."""
Value = str | int | float | bool


class JournalCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="journal", tag_field="kind"):
    """How often the phone's own journal holds an event with these fields (dots go deeper).

    `times` is a number, or `odd` for what is switched back by a second touch, or `some`.
    With `after`, only events later than the last of that name count.
    """

    says: str
    event: str
    where: dict[str, Value] = {}
    times: int | Literal["odd", "some"] = 1
    after: str = ""


class WebCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="web", tag_field="kind"):
    """How often the web server's own log holds a request of this method and path with these fields."""

    says: str
    path: str
    method: str = "POST"
    where: dict[str, str] = {}
    times: int | Literal["odd", "some"] = 1


class AnswerCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="answer", tag_field="kind"):
    """The value of the last `ANSWER:` line, one of these; case and spaces around don't count."""

    says: str
    one_of: tuple[str, ...]


class FileCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="file", tag_field="kind"):
    """How many files with exactly the bytes that have this SHA-256 the tool server keeps."""

    says: str
    sha256: str
    times: int | Literal["odd", "some"] = 1


Check = JournalCheck | WebCheck | AnswerCheck | FileCheck


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to the world after the n-th call of a tool, as it would on a bad day.

    `take`: a person takes the phone and gives it back before the next call; `kill_phone`: its emulator dies.
    """

    does: Literal["take", "kill_phone"]
    tool: str
    calls: int = 1


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The most that a task may cost: tool calls, tokens in and out together, seconds."""

    calls: int = 60
    tokens: int = 600_000
    seconds: int = 300


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task. `prompt` is given to the model word for word, with `{origin}` and the like filled in."""

    title: str
    needs: tuple[Capability, ...]
    prompt: str
    check: tuple[Check, ...]
    saboteurs: tuple[Saboteur, ...] = ()
    event: tuple[Event, ...] = ()
    budget: Budget = Budget()
    name: str = ""

    @property
    def all_saboteurs(self) -> tuple[Saboteur, ...]:
        """Those that fit this task; what acts on nothing fits every one."""
        return ("nothing", "claims", "recalls", *self.saboteurs)


class BadTaskError(Exception):
    """Raised when a task's file is not valid; names the file and the fault."""


def folder(name: str) -> Path:
    """A folder of this package: `tasks`, `pages` or `apps`."""
    return Path(str(files("agent_gate").joinpath(name)))


def load_tasks() -> tuple[Task, ...]:
    """Every task, in the order of the files' names.

    Raises:
        BadTaskError: one of them is not valid.
    """
    return tuple(_task(path) for path in sorted(folder("tasks").glob("*.toml")))


def _task(path: Path) -> Task:
    try:
        task = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Task)
    except (OSError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadTaskError(f"{path.name}: {error}") from error
    return msgspec.structs.replace(task, name=path.stem.partition("-")[2])


def system_prompt() -> str:
    """What every model is told before any task."""
    return (folder("tasks") / "system.md").read_text("utf-8").strip()


def filled(text: str, words: Mapping[str, str]) -> str:
    """A text with the words of this run: `{origin}`, `{phone}`, `{apk}`, `{apk_sha256}`..."""
    for name, value in words.items():
        text = text.replace("{" + name + "}", value)
    return text


def filled_checks(task: Task, words: Mapping[str, str]) -> tuple[Check, ...]:
    """The checks of a task with the words of this run in all their values."""
    return tuple(msgspec.convert(_filled(msgspec.to_builtins(check), words), Check) for check in task.check)


def _filled(value: object, words: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return filled(value, words)
    if isinstance(value, dict):
        return {name: _filled(one, words) for name, one in value.items()}
    return [_filled(one, words) for one in value] if isinstance(value, (list, tuple)) else value
