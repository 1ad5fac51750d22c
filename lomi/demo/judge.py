"""What is true of the effects, by the records of those who had them: phone's journal, server's log, system."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lomi.demo.plan import ANSWER
from lomi.demo.record import CallRecord, Finding
from lomi.demo.site import Request

_FIELDS = ("name", "email")


def read_journal(path: Path) -> list[Mapping[str, object]]:
    """The phone's own events; empty when it never wrote any."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def _shown(found: Sequence[object]) -> str:
    if not found:
        return "never"
    times = "once" if len(found) == 1 else f"{len(found)} times"
    return f"{times}: " + "; ".join(_words(one) for one in found[:4])


def _words(one: object) -> str:
    return ", ".join(str(value) for value in one.values()) if isinstance(one, Mapping) else str(one)


def judge_phone(journal: Sequence[Mapping[str, object]], name: str, email: str, package: str) -> list[Finding]:
    """One boot, one form with exactly these texts, one installed package, one answered question."""
    forms = [event.get("fields") for event in journal if event.get("event") == "submit"]
    boots = [event["boot"] for event in journal if event.get("event") == "boot"]
    forms = [{key: form.get(key) for key in _FIELDS} if isinstance(form, Mapping) else form for form in forms]
    wanted = {"name": name, "email": email}
    good = forms == [wanted]
    installed = [event.get("package") for event in journal if event.get("event") == "install"]
    answered = [event.get("button") for event in journal if event.get("event") == "dialog"]
    source = "the phone's own journal"
    return [
        Finding(key="phone-booted", title="The phone booted once", source=source, expected="1 boot",
                found=f"{len(boots)} boots" if len(boots) != 1 else "1 boot", good=len(boots) == 1),
        Finding(key="phone-submitted", title="The phone received the form exactly once", source=source,
                expected=_shown([wanted]), found=_shown(forms), good=good),
        Finding(key="app-installed", title="The phone installed the app exactly once", source=source,
                expected=_shown([package]), found=_shown(installed), good=installed == [package]),
        Finding(key="dialog-answered", title="The question was answered exactly once", source=source,
                expected=_shown([ANSWER]), found=_shown(answered), good=answered == [ANSWER]),
    ]  # fmt: skip


def judge_site(requests: Sequence[Request], name: str, email: str) -> list[Finding]:
    """One submission with exactly these texts."""
    posts = [request.fields for request in requests if (request.method, request.path) == ("POST", "/sign-up")]
    sent = [{key: fields.get(key) for key in _FIELDS} for fields in posts]
    wanted = {"name": name, "email": email}
    good = sent == [wanted]
    terms = [request.path for request in requests if request.path == "/terms"]
    return [
        Finding(key="popup-opened", title="The popup asked the web server exactly once",
                source="the web server's own log", expected=_shown(["/terms"]), found=_shown(terms),
                good=terms == ["/terms"]),
        Finding(key="page-submitted", title="The web server received the form exactly once",
                source="the web server's own log", expected=_shown([wanted]), found=_shown(sent), good=good)
    ]  # fmt: skip


def judge_calls(calls: Sequence[CallRecord]) -> list[Finding]:
    """Every effect has a receipt, and every receipt says that it was done."""
    receipts = [call.receipt for call in calls if call.receipt is not None]
    done = [one for one in receipts if (one.state, one.effect_state) == ("succeeded", "complete")]
    ids = {one.operation_id for one in receipts}
    good = bool(receipts) and len(done) == len(ids) == len(receipts)
    return [
        Finding(key="receipts", title="Every effect has a receipt of its own, and each was done completely",
                source="the broker's receipts", expected=f"{len(receipts)} of {len(receipts)} done",
                found=f"{len(done)} of {len(receipts)} done, {len(ids)} different operations", good=good)
    ]  # fmt: skip


def judge_end(exit_code: int | None, left: Sequence[str], scratch: Sequence[str]) -> list[Finding]:
    """The broker ended well; none of its processes and temporary files are left."""
    things = [*left, *scratch]
    return [
        Finding(key="broker-ended", title="The broker ended by itself when asked", source="the operating system",
                expected="exit code 0", found=f"exit code {exit_code}", good=exit_code == 0),
        Finding(key="nothing-left", title="No process and no temporary file is left", source="the operating system",
                expected="none", found=", ".join(things) or "none", good=not things),
    ]  # fmt: skip


def judge_place(root: Path) -> Finding:
    """The demo's own folder is gone."""
    there = root.exists()
    return Finding(key="place-gone", title="The demo's own home and project are removed", source="the operating system",
                   expected="gone", found=str(root) if there else "gone", good=not there)  # fmt: skip
