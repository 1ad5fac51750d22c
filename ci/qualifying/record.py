"""What is kept of every run, beside the page: a history that only grows."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from qualifying.reading import Figures

FORMAT = 1
Verdict = Literal[
    "passed",
    "failed",
    "out of time",
    "killed",
    "interrupted",
    "showed nothing",
    "showed nothing that can be read",
    "could not run",
]


@dataclass(frozen=True, slots=True)
class Result:
    """One gate's run.

    Attributes:
        verdict: `passed` needs exit code 0 and figures in its output, none of which counts a failure;
            `showed nothing` is exit code 0 without figures, `showed nothing that can be read` is one whose files are
            of another form; `could not run` is exit code 77, by which a gate says that this machine lacks what it
            needs.
        tail: the last lines, where it did not pass.
        why: what its figures say against it, or why there are none, in a sentence.
    """

    gate: str
    command: str
    verdict: Verdict
    code: int
    began: str
    seconds: float
    quick: bool
    left_processes: int
    figures: Figures
    tail: str = ""
    why: str = ""

    @property
    def passed(self) -> bool:
        """Whether it showed what it is there to show."""
        return self.verdict == "passed"


@dataclass(slots=True)
class Qualification:
    """One run of `ci/qualify`. `tree` is the hash of the sources; `wheel` what two builds gave."""

    began: str
    commit: str
    changed: list[str]
    tree: str
    wheel: dict[str, str]
    host: dict[str, str]
    versions: dict[str, str]
    not_run: dict[str, str]
    results: list[Result] = field(default_factory=list)
    ended: str = ""


class UnreadableHistoryError(Exception):
    """Raised when there is a history that can't be read: it is never overwritten."""


def read(path: Path) -> list[Qualification]:
    """All runs so far, oldest first; none where there is no file.

    Raises:
        UnreadableHistoryError: the file is there and is no history of this format.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableHistoryError(f"{path} can't be read: {error}") from error
    try:
        kept = json.loads(text)
        if kept["format"] != FORMAT:
            raise UnreadableHistoryError(f"{path} has format {kept['format']}; this program reads {FORMAT}")
        return [
            Qualification(**{**one, "results": [Result(**result) for result in one["results"]]}) for one in kept["runs"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableHistoryError(f"{path} is no history of qualifications: {error}") from error


def write(path: Path, text: str) -> None:
    """Replace a file in one step, so that an interrupted run leaves the old one or the new one."""
    beside = path.with_name(f".{path.name}.new")
    # What gates print may hold halves of pairs, which have no place in UTF-8.
    beside.write_text(text, encoding="utf-8", errors="backslashreplace")
    beside.replace(path)


def as_json(runs: list[Qualification]) -> str:
    """The history as it is kept."""
    return json.dumps({"format": FORMAT, "runs": [asdict(run) for run in runs]}, indent=1, ensure_ascii=False) + "\n"
