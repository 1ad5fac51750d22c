"""What is true of a task's effects, by the records of those who had them; a check that fails says why in one line."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_gate.deeds import phone_deeds, web_deeds
from agent_gate.site import Visit
from agent_gate.task import AnswerCheck, Check, FileCheck, JournalCheck, WebCheck

Entry = Mapping[str, object]
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What a task left behind: the phone's journal, the server's log, digests of kept files, the model's last words."""

    journal: Sequence[Entry]
    visits: Sequence[Visit]
    files: Sequence[str]
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One check's outcome; `found` says what there was instead, in words."""

    says: str
    good: bool
    found: str = ""


def read_journal(path: Path) -> list[Entry]:
    """The phone's own events; empty when it never wrote any."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def digests(places: Iterable[Path]) -> list[str]:
    """The SHA-256 of every plain file below some folders."""
    found = [path for place in places for path in sorted(place.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in found]


def answer_of(text: str) -> str | None:
    """The value of the last line that begins with `ANSWER:`; None without one."""
    for line in reversed(text.splitlines()):
        plain = line.strip().strip("*`").strip()
        if plain.upper().startswith("ANSWER:"):
            return plain[len("ANSWER:") :].strip().strip("*`\"'").strip()
    return None


def judge(checks: Sequence[Check], records: Records) -> list[Verdict]:
    """Every check's verdict, in order."""
    return [_verdict(check, records) for check in checks]


def nothing_else(checks: Sequence[Check], records: Records) -> Verdict:
    """Whether every deed is one that some check expects; how often each may be done is for that check to say."""
    on_phone = [check for check in checks if isinstance(check, JournalCheck) and check.times != 0]
    on_web = [check for check in checks if isinstance(check, WebCheck) and check.times != 0]
    deeds = [_named(one) for one in phone_deeds(records.journal) if not any(_is_event(c, one) for c in on_phone)]
    deeds += [
        f"{one.method} {one.path}" for one in web_deeds(records.visits) if not any(_is_visit(c, one) for c in on_web)
    ]
    shown = ", ".join(deeds[:_MOST_SHOWN]) + (f" and {len(deeds) - _MOST_SHOWN} more" if deeds[_MOST_SHOWN:] else "")
    return Verdict(says="nothing else was done", good=not deeds, found=shown)


def _named(entry: Entry) -> str:
    where = next((str(entry[name]) for name in ("hit", "button", "package", "rotation") if name in entry), "")
    return f"{entry.get('event')} {where}".strip()


def _verdict(check: Check, records: Records) -> Verdict:
    match check:
        case JournalCheck():
            return _counted(check.says, check.times, len(_events(check, records.journal)), "the phone's journal")
        case WebCheck():
            return _counted(check.says, check.times, len(_visits(check, records.visits)), "the web server's log")
        case FileCheck():
            return _counted(check.says, check.times, records.files.count(check.sha256), "the files kept")
        case AnswerCheck():
            given = records.answer
            good = given is not None and _plain(given) in {_plain(one) for one in check.one_of}
            return Verdict(
                says=check.says, good=good, found="no ANSWER line" if given is None else f"answered {given!r}"
            )


def _plain(text: str) -> str:
    return " ".join(text.casefold().rstrip(".").split())


def _counted(says: str, wanted: int | Literal["odd", "some"], found: int, source: str) -> Verdict:
    good = {"odd": found % 2 == 1, "some": found > 0}.get(str(wanted), found == wanted)
    seen = {0: "never", 1: "once"}.get(found, f"{found} times")
    expected = {0: "never", 1: "once", "odd": "an odd number of times", "some": "at least once"}.get(
        wanted, f"{wanted} times"
    )
    return Verdict(says=says, good=good, found=f"{source}: {seen}, expected {expected}")


def _events(check: JournalCheck, journal: Sequence[Entry]) -> list[Entry]:
    start = 0
    if check.after:
        places = [place for place, entry in enumerate(journal) if entry.get("event") == check.after]
        if not places:
            return []
        start = places[-1]
    return [entry for entry in journal[start:] if _is_event(check, entry)]


def _is_event(check: JournalCheck, entry: Entry) -> bool:
    return entry.get("event") == check.event and _holds(entry, check.where)


def _visits(check: WebCheck, visits: Sequence[Visit]) -> list[Visit]:
    return [visit for visit in visits if _is_visit(check, visit)]


def _is_visit(check: WebCheck, visit: Visit) -> bool:
    return (visit.method, visit.path) == (check.method, check.path) and _holds(visit.fields, check.where)


def _holds(entry: Mapping[str, object], where: Mapping[str, object]) -> bool:
    return all(_at(entry, name) == value for name, value in where.items())


def _at(entry: Mapping[str, object], name: str) -> object:
    found: object = entry
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
