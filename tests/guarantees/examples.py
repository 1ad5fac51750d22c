"""An example of each tool: arguments of a call that succeeds, and how often its effect is there in the real thing."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from guarantees.stage import Actor, Stage

Arguments = dict[str, Any]
Make = Callable[[Stage, Actor], Awaitable[Arguments]]
Effects = Callable[[Stage, Actor, Arguments], Awaitable[int]]
Vary = Callable[[Arguments], Arguments]


def other_revision(arguments: Arguments) -> Arguments:
    """The same call with another revision: other content under the same key."""
    return {**arguments, "expectedRevision": str(int(arguments["expectedRevision"]) + 1)}


@dataclass(frozen=True)
class Example:
    """How one tool is shown.

    `lasting` arguments are of a call that goes on until it is cancelled; `ahead` is a call of the same queue; `shared`
    arguments leave the targets of other tools' arguments as they are; a `fleeting` effect ends with its broker.
    """

    tool: str
    make: Make
    effects: Effects | None = None
    vary: Vary = other_revision
    lasting: Make | None = None
    ahead: tuple[str, Make] | None = None
    shared: Make | None = None
    fleeting: bool = False


EXAMPLES: dict[str, Example] = {}


def example(
    tool: str,
    *,
    effects: Effects | None = None,
    vary: Vary = other_revision,
    lasting: Make | None = None,
    ahead: tuple[str, Make] | None = None,
    shared: Make | None = None,
    fleeting: bool = False,
) -> Callable[[Make], Make]:
    """Register the maker of a tool's arguments."""

    def register(make: Make) -> Make:
        EXAMPLES[tool] = Example(tool, make, effects, vary, lasting, ahead, shared, fleeting)
        return make

    return register


def same_but(**changed: Any) -> Vary:
    """Vary these fields."""
    return lambda arguments: {**arguments, **changed}
