"""What is true of the effects, by the records of those who had them: phone's journal, server's log, system."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lomi.demo.record import Finding
from lomi.demo.site import Request


def read_journal(path: Path) -> list[Mapping[str, object]]:
    """The phone's own events; empty when it never wrote any."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def _shown(found: Sequence[object]) -> str:
    if not found:
        return "none"
    return f"{len(found)}: " + "; ".join(json.dumps(one, ensure_ascii=False) for one in found[:4])


def judge_phone(journal: Sequence[Mapping[str, object]], name: str, email: str) -> list[Finding]:
    """One boot, and one form with exactly these texts."""
    forms = [event.get("fields") for event in journal if event.get("event") == "submit"]
    boots = [event["boot"] for event in journal if event.get("event") == "boot"]
    wanted = {"name": name, "email": email}
    good = len(forms) == 1 and isinstance(forms[0], Mapping) and {k: forms[0].get(k) for k in wanted} == wanted
    source = "the phone's own journal"
    return [
        Finding(key="phone-booted", title="The phone booted once", source=source, expected="1 boot",
                found=f"{len(boots)} boots" if len(boots) != 1 else "1 boot", good=len(boots) == 1),
        Finding(key="phone-submitted", title="The phone received the form exactly once", source=source,
                expected=_shown([wanted]), found=_shown(forms), good=good),
    ]  # fmt: skip


def judge_site(requests: Sequence[Request], name: str, email: str) -> list[Finding]:
    """One submission with exactly these texts."""
    sent = [request.fields for request in requests if (request.method, request.path) == ("POST", "/sign-up")]
    wanted = {"name": name, "email": email}
    good = len(sent) == 1 and {key: sent[0].get(key) for key in wanted} == wanted
    return [
        Finding(key="page-submitted", title="The web server received the form exactly once",
                source="the web server's own log", expected=_shown([wanted]), found=_shown(sent), good=good)
    ]  # fmt: skip


def judge_end(exit_code: int | None, left: Sequence[str], root: Path) -> list[Finding]:
    """The broker ended well; none of its processes and files are left."""
    things = [*left] + ([str(root)] if root.exists() else [])
    return [
        Finding(key="broker-ended", title="The broker ended by itself when asked", source="the operating system",
                expected="exit code 0", found=f"exit code {exit_code}", good=exit_code == 0),
        Finding(key="nothing-left", title="Nothing is left behind", source="the operating system",
                expected="no process, no folder", found=", ".join(things) or "no process, no folder", good=not things),
    ]  # fmt: skip
