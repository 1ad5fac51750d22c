"""What a pytest child tells the lab, one JSON object a line, while it lists or runs tests."""

import itertools
from typing import Literal, TypeAlias

import msgspec

MOST_TEXT = 64 * 1024
"""Bytes of one text in the JSON that a child sends; the middle of a longer one is left out, and it says so."""


class _Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Listed(_Event, frozen=True, kw_only=True, tag="listed"):
    """A test that was collected. `line` counts from 1."""

    test: str
    file: str
    line: int


class NotCollected(_Event, frozen=True, kw_only=True, tag="not_collected"):
    """A file or package that could not be collected, or (in a run) a test that was asked for and is not there."""

    node: str
    text: str


class Began(_Event, frozen=True, kw_only=True, tag="began"):
    """A test begins now. `at` is seconds since the epoch."""

    test: str
    at: float


class PhaseEnded(_Event, frozen=True, kw_only=True, tag="phase"):
    """Set-up, call or teardown of a test has ended. `file` and `line` say where it failed, `detail` all of pytest's.

    `expected`: it failed and was to, or passed and was not to; neither is held against the test.
    """

    test: str
    when: Literal["setup", "call", "teardown"]
    outcome: Literal["passed", "failed", "skipped"]
    expected: bool = False
    began: float
    seconds: float
    reason: str = ""
    detail: str = ""
    file: str | None = None
    line: int | None = None
    output: str = ""


class Ended(_Event, frozen=True, kw_only=True, tag="ended"):
    """A test has ended, its teardown included. With `waits` the child goes on once it is told to."""

    test: str
    at: float
    waits: bool = False


class Finished(_Event, frozen=True, kw_only=True, tag="finished"):
    """The session ends with this exit status."""

    status: int


class Unreadable(msgspec.Struct, frozen=True):
    """Stands where a line came that is no event, or is too long for one: what it told is lost. No child sends it."""


Event: TypeAlias = Listed | NotCollected | Began | PhaseEnded | Ended | Finished
Heard: TypeAlias = Event | Unreadable
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: _Event) -> bytes:
    """One line."""
    return msgspec.json.encode(event) + b"\n"


def decode(line: bytes) -> Event:
    """Read one line.

    Raises:
        msgspec.DecodeError: it is no event.
    """
    return _decoder.decode(line)


def bounded(text: str) -> str:
    """The text, or its first and last parts when JSON makes it over 64 KiB; what UTF-8 can't hold is replaced."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if _encoded(clean) <= MOST_TEXT:
        return clean
    half = MOST_TEXT // 2
    first, last = _fitting(clean[:half], half), _fitting(clean[: -half - 1 : -1], half)
    left_out = len(clean) - first - last
    return f"{clean[:first]}\n[... {left_out} characters left out ...]\n{clean[len(clean) - last :]}"


def _encoded(text: str) -> int:
    """Bytes of a text in JSON, its quotes aside."""
    return len(msgspec.json.encode(text)) - 2


def _fitting(text: str, most: int) -> int:
    """How many of the first characters JSON holds in so many bytes."""
    spent = itertools.accumulate(_encoded(char) for char in text)
    return sum(1 for _ in itertools.takewhile(lambda so_far: so_far <= most, spent))
