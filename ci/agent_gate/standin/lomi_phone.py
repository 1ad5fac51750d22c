"""The scripts of the phone's tasks, with Lomi's tools."""

import re
from collections.abc import Callable

from agent_gate.standin import phone_tasks
from agent_gate.standin.lomi_hand import GoneError, Phone, Session
from agent_gate.standin.part import LostError, Part, Script, Steps
from agent_gate.standin.phone_tasks import Play


def started(session: Session, app: str) -> Steps[Phone]:
    """A claimed phone that shows an app, opened by its icon."""
    yield from session.begin()
    phone = Phone(session)
    yield from phone.begin()
    if app:
        yield from phone.tap(app)
    return phone


def in_app(app: str, play: Play) -> Callable[[Part], Script]:
    """A script played in an app of a phone that was claimed."""

    def script(part: Part) -> Script:
        phone = yield from started(Session(), app)
        return (yield from play(phone, part))

    return script


def crash_report(part: Part) -> Script:
    """What the observation says of a crash."""
    phone = yield from started(Session(), "Parcels")
    message = ""
    for _ in part.times:
        crashed = yield from phone.tap("Sort")
        found = re.search(r"RuntimeException: (.+)", crashed.text)
        if found is None:
            raise LostError("no exception was seen")
        message = found[1]
        yield from phone.tap(part.pick("decoy", "Open app again", "Close app"))
        if part.saboteur == "twice":
            yield from phone.tap("Parcels")
    return f"It crashed.\n\nANSWER: {part.pick('wrong', 'null pointer', message)}"


def rotate(part: Part) -> Script:
    """Turn first, then press."""
    phone = yield from started(Session(), "")
    turns = 2 if part.saboteur == "decoy" else 1
    yield from phone.act({"type": "rotate", "quarterTurns": turns})
    return (yield from phone_tasks.lap(phone, part))


def no_hierarchy(part: Part) -> Script:
    """Only a picture tells where the buttons are; its transform tells hardware pixels for each of its own, upright."""
    phone = yield from started(Session(), "Tickets")
    seen = yield from phone.picture()
    return (yield from phone_tasks.day_ticket(phone, part, seen, r"hardware x = (-?[\d.]+)\*u"))


def install_app(part: Part) -> Script:
    """Import by hash, install, start."""
    session = Session()
    phone = yield from started(session, "")
    size, digest = re.search(r"(\d+) bytes", part.prompt), re.search(r"SHA-256 ([0-9a-f]{64})", part.prompt)
    if size is None or digest is None:
        raise LostError("the prompt names no size or hash")
    imported = yield from session.revised(
        "lomi_artifact_import",
        relativePath="tiny.apk",
        kind="android_apk",
        expectedByteLength=int(size[1]),
        expectedSha256=digest[1],
    )
    artifact = re.search(r"artifactId (\w+)", imported.text)
    if artifact is None:
        raise LostError(f"not imported: {imported.text[:200]}")
    for _ in part.times:
        yield from session.keyed("lomi_android_install_apk", **phone.target, artifactId=artifact[1], sha256=digest[1])
    yield from phone.launch("org.example.lomi.tiny")
    return "It is installed and started."


def lease_lost(part: Part) -> Script:
    """An input that is refused for want of a lease is sent again once the phone is given back and claimed."""
    return (yield from _stubborn_form(part, "Milk and bread", "shop@example.org"))


def generation_change(part: Part) -> Script:
    """A phone that died is started again, and everything begun anew."""
    return (yield from _stubborn_form(part, "Rain", "rain@example.org"))


def _stubborn_form(part: Part, name: str, email: str) -> Script:
    phone = yield from started(Session(), "")
    for _ in range(4):
        try:
            yield from phone.tap("Form")
            yield from phone.write("Name", part.pick("wrong", "Snow", name))
            yield from phone.write("Email", email)
            for _ in part.times:
                yield from phone.tap("Submit")
        except GoneError:
            yield from phone.start()
            yield from phone.claim()
        else:
            return "The form is sent."
    return "It could not be done."
