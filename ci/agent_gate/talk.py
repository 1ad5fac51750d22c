"""A conversation with a model, in neither API's words: what the user asked, what the model called, what came back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

MOST_DEEP = 64
"""How deep a model's JSON may be nested; what it goes through on its way to a tool gives up somewhere beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as a model is told of it. `name` is what the model calls; APIs allow letters, digits, `_` and `-`."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the model asked for; `arguments` is None where it wrote no JSON object that can be sent on."""

    call_id: str
    name: str
    arguments: Mapping[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that a tool sent."""

    media_type: str
    base64: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call brought."""

    call_id: str
    text: str
    pictures: tuple[Picture, ...] = ()
    is_error: bool = False

    def said(self, *, pictures: bool) -> str:
        """The text; without `pictures` it tells that there were some. Never empty: APIs refuse an empty text."""
        hidden = (
            f"\n({len(self.pictures)} picture(s), not shown to this model)" if self.pictures and not pictures else ""
        )
        return self.text + hidden or "(empty)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model. `raw` is the assistant's message in the API's own form, to be sent back unchanged."""

    text: str
    calls: tuple[ToolCall, ...]
    raw: object
    input_tokens: int
    output_tokens: int
    stopped: str


Entry = str | Turn | tuple[ToolResult, ...]
"""The user's words, a model's turn, or the results of a turn's calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """All that one request says. With `pictures` false a model is told of pictures and not given them."""

    model: str
    system: str
    tools: Sequence[ToolSchema]
    conversation: Sequence[Entry]
    most_output: int
    pictures: bool = True


class BadAnswerError(Exception):
    """Raised when an endpoint's answer is not in the API's form."""


def sendable(value: object) -> bool:
    """Whether decoded JSON can be sent on: its texts are valid Unicode, and it is not nested beyond `MOST_DEEP`."""
    level = [value]
    for _ in range(MOST_DEEP):
        texts = [one for one in level if isinstance(one, str)]
        texts += [name for one in level if isinstance(one, dict) for name in one]
        if any("\ud800" <= letter <= "\udfff" for text in texts for letter in text):
            return False
        level = list(chain.from_iterable(_inside(one) for one in level))
        if not level:
            return True
    return False


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


class Dialect(Protocol):
    """One API's way of saying it."""

    path: str
    """What follows the endpoint's base URL."""

    def headers(self, key: str) -> dict[str, str]:
        """Headers beside the content type."""
        ...

    def body(self, ask: Ask) -> dict[str, object]:
        """The JSON of a request."""
        ...

    def turn(self, answer: bytes) -> Turn:
        """The model's turn.

        Raises:
            BadAnswerError: it is not in this API's form.
        """
        ...
