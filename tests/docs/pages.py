"""The hand-written pages, read as their readers see them: fences, links, headings, names.

A fence's info string says what a test does with it:

- `sh`: run in a home and a project of its own, without a broker. More words: `broker` (one runs), `up` (a foreground
  `lomi up`, ended once it is up), `stays=word` (it serves until the page's end, ready once it prints the word),
  `home=name` (in another home), `typed=word` (at a terminal, where the word is typed once it is asked for),
  `within=seconds`, `exit=1` or `exit=0,1` (what it may end with, else 0), `skip=why` (not run; only in the README);
- `python`: run likewise; `broker` as above;
- `json TOOL`: the arguments of that tool; `json` alone: any JSON;
- `toml policy`: a policy that `lomi policy check` accepts, and the `lomi.toml` of the commands below it;
- `text`, `yaml`, or no word: shown to a reader only.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = frozenset({"tools.md", "guarantees.md", "qualification.md"})
LANGUAGES = frozenset({"", "sh", "python", "json", "toml", "text", "yaml"})
README_WORDS = {
    "ci/demo": "sh skip=tests of their own run both",
    "lomi up .": "sh up",
    "lomi status": "sh broker",
    "pytest ": "sh exit=5",
}
"""What the README's fences would say, by how they begin: its readers see them on web sites that show every word."""


@dataclass(frozen=True)
class Fence:
    """One fenced block. `line` is that of its first line of text."""

    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    def word(self, name: str) -> str | None:
        """The value of a word `name=value`, None without one. `skip` takes the rest of the line."""
        rest = " ".join(self.words)
        if name == "skip":
            return rest.partition("skip=")[2] or None
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), None)

    @property
    def place(self) -> str:
        """Where a reader of a failure finds it."""
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README and every page of docs/, generated ones included."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def written_pages() -> list[Path]:
    """Those that people wrote."""
    return [path for path in pages() if path.name not in GENERATED]


def fences(path: Path) -> list[Fence]:
    """The fenced blocks of a page in order."""
    found: list[Fence] = []
    inside: list[str] | None = None
    info, begun = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            if inside is None:
                inside, info, begun = [], line[3:].strip(), number + 1
            else:
                found.append(_fence(path, info, begun, "\n".join(inside) + "\n"))
                inside = None
        elif inside is not None:
            inside.append(line)
    assert inside is None, f"{path.name}: a fence is not closed"
    return found


def _fence(path: Path, info: str, line: int, text: str) -> Fence:
    if path.name == "README.md" and info == "sh":
        info = next((said for start, said in README_WORDS.items() if text.startswith(start)), info)
    language, *words = info.split() or [""]
    if language == "toml" and "[[client]]" in text and "policy" not in words:
        words.append("policy")
    return Fence(path.name, line, language, tuple(words), text)


def prose(path: Path) -> str:
    """A page without its fences."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", prose(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def code_spans(path: Path) -> list[str]:
    """Inline code of a page's prose."""
    return re.findall(r"`([^`\n]+)`", prose(path))
