"""What a pytest child tells the lab, one JSON object a line, while it lists or runs tests."""

from typing import Literal, TypeAlias

import msgspec

MOST_TEXT = 64 * 1024
"""Characters of one text that a child sends; the middle of a longer one is left out, and it says so."""


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
    """Set-up, call or teardown of a test has ended. `file` and `line` say where it failed, `detail` all of pytest's."""

    test: str
    when: Literal["setup", "call", "teardown"]
    outcome: Literal["passed", "failed", "skipped"]
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


Event: TypeAlias = Listed | NotCollected | Began | PhaseEnded | Ended | Finished
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
    """The text, or its first and last parts when it is over 64 KiB; what UTF-8 can't hold is replaced."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(clean) <= MOST_TEXT:
        return clean
    half = MOST_TEXT // 2
    return f"{clean[:half]}\n[... {len(clean) - 2 * half} characters left out ...]\n{clean[-half:]}"
