"""The transcript: every call and answer, each with a digest over itself and all before it; and how two differ."""

import difflib
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line. `step` counts within the scenario; `who` is a client, `owner` or `harness`; `digest` is hexadecimal."""

    scenario: str
    step: int
    who: str
    asked: object
    answered: object
    digest: str = ""

    def shown(self) -> list[str]:
        """For people: the line as indented JSON, without its digest."""
        plain = {"who": self.who, "asked": self.asked, "answered": self.answered}
        return json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False).splitlines()


class Transcript:
    """Lines in order; each digest chains on the one before."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    @property
    def digest(self) -> str:
        """The digest of the whole, 64 hexadecimal digits."""
        return self.entries[-1].digest if self.entries else hashlib.sha256().hexdigest()

    def add(self, entry: Entry) -> Entry:
        """Append a line and give it its digest."""
        body = msgspec.json.encode(msgspec.structs.replace(entry, digest=""), order="sorted")
        sealed = msgspec.structs.replace(entry, digest=hashlib.sha256(self.digest.encode() + body).hexdigest())
        self.entries.append(sealed)
        return sealed

    def write(self, path: Path) -> None:
        """One JSON object per line."""
        path.write_bytes(b"".join(msgspec.json.encode(entry) + b"\n" for entry in self.entries))


def whole_digest(transcripts: Iterable[Transcript]) -> str:
    """The digest of a run: over those of its scenarios, in order."""
    return hashlib.sha256(b"".join(each.digest.encode() for each in transcripts)).hexdigest()


def difference(first: Sequence[Entry], second: Sequence[Entry]) -> list[str]:
    """Where two transcripts of one scenario first differ, as lines for people; empty when they don't."""
    for one, other in zip(first, second, strict=False):
        if one.digest != other.digest:
            title = f"{one.scenario}, step {one.step} ({one.who}):"
            lines = difflib.unified_diff(one.shown(), other.shown(), "first run", "this run", lineterm="", n=2)
            return [title, *(f"  {line}" for line in lines)]
    if len(first) != len(second):
        return [f"{len(first)} entries in the first run, {len(second)} in this one"]
    return []
