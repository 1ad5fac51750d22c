"""What a script is: a generator that calls tools, sees what they brought, and ends with its last words."""

import re
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TypeVar

from agent_gate.talk import Picture
from agent_gate.task import Saboteur


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that a script makes."""

    tool: str
    arguments: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a model is told of a call's result."""

    text: str
    pictures: tuple[Picture, ...] = ()


T = TypeVar("T")
Steps = Generator[list[Call], list[Seen], T]
"""A piece of a script, with what it brings."""
Script = Steps[str]
"""Yields the calls of one turn, is sent their results, returns the last words."""


class LostError(Exception):
    """Raised by a script that does not find what it needs: it ends the task with these words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What a script knows beforehand: the prompt it was given, and how it is to spoil the task, if at all.

    `recalled` is what was the answer in another run.
    """

    prompt: str
    saboteur: Saboteur | None
    recalled: str = ""

    def pick(self, saboteur: Saboteur, spoiled: str, honest: str) -> str:
        """The honest word, unless this saboteur is at work."""
        return spoiled if self.saboteur == saboteur else honest

    @property
    def times(self) -> range:
        """How often the decisive act is done."""
        return range(2 if self.saboteur == "twice" else 1)


def one(tool: str, **arguments: object) -> Steps[Seen]:
    """A turn with a single call."""
    (seen,) = yield [Call(tool, arguments)]
    return seen


def url_of(part: Part) -> str:
    """The address that the prompt names."""
    found = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+", part.prompt)
    if found is None:
        raise LostError("the prompt names no address")
    return found[0]
