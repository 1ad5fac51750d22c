"""The scripts of the phone's tasks, with Lomi's tools."""

import re

from agent_gate.standin.lomi_hand import GoneError, Phone, Session, Steps
from agent_gate.standin.part import LostError, Part, Script
from agent_gate.standin.sight import bands
from agent_gate.talk import Picture


def started(session: Session, app: str) -> Steps[Phone]:
    """A claimed phone that shows an app, opened by its icon."""
    yield from session.begin()
    phone = Phone(session)
    yield from phone.begin()
    if app:
        yield from phone.tap(app)
    return phone


def settings_toggle(part: Part) -> Script:
    """Two screens deep, one switch."""
    phone = yield from started(Session(), "Settings")
    if part.saboteur == "decoy":
        yield from phone.tap("Network & internet")
        yield from phone.tap("Wi-Fi")
        return "The dark theme is on."
    yield from phone.tap("Display")
    for _ in part.times:
        yield from phone.tap("Dark theme")
    return "The dark theme is on."


def long_list(part: Part) -> Script:
    """Swipe until the row is there."""
    phone = yield from started(Session(), "Long list")
    row = part.pick("decoy", "Row 24", "Row 42")
    for _ in range(40):
        seen = yield from phone.look()
        if f'"{row}"' in seen.text:
            break
        low, high = ({"space": "hardware_display", "x": 360, "y": y} for y in (1000, 500))
        yield from phone.act({"type": "swipe", "from": low, "to": high, "durationMs": 300})
    for _ in part.times:
        yield from phone.tap(row)
        yield from phone.tap("OK")
    return "Row 42 is confirmed."


def phone_form(part: Part) -> Script:
    """Fields, a box, a button."""
    phone = yield from started(Session(), "Form")
    yield from phone.write("Name", part.pick("wrong", "Zoe Luk 🙂", "Zoé Łuk 漢字 🙂"))
    yield from phone.write("Email", "zoe@example.org")
    yield from phone.tap("I agree")
    for _ in part.times:
        yield from phone.tap("Submit")
    return "The form is sent."


def permission(part: Part) -> Script:
    """A question of the system."""
    phone = yield from started(Session(), "Permissions")
    for _ in part.times:
        yield from phone.tap("Use camera")
        yield from phone.tap(part.pick("decoy", "While using the app", "Don’t allow"))
    return "The camera is refused."


def crash_report(part: Part) -> Script:
    """What the observation says of a crash."""
    phone = yield from started(Session(), "Trouble")
    message = ""
    for _ in part.times:
        crashed = yield from phone.tap("Crash")
        found = re.search(r"RuntimeException: (.+)", crashed.text)
        if found is None:
            raise LostError("no exception was seen")
        message = found[1]
        yield from phone.tap(part.pick("decoy", "Open app again", "Close app"))
        if part.saboteur == "twice":
            yield from phone.tap("Trouble")
    return f"It crashed.\n\nANSWER: {part.pick('wrong', 'null pointer', message)}"


def rotate(part: Part) -> Script:
    """Turn first, then press."""
    phone = yield from started(Session(), "")
    turns = 2 if part.saboteur == "decoy" else 1
    yield from phone.act({"type": "rotate", "quarterTurns": turns})
    yield from phone.tap("Clock")
    for _ in part.times:
        yield from phone.tap("Lap")
    return "One lap is taken in landscape."


def no_hierarchy(part: Part) -> Script:
    """Only a picture tells where the buttons are: coloured bands, the day's above the year's."""
    phone = yield from started(Session(), "Tickets")
    seen = yield from phone.picture()
    if not seen.pictures:
        raise LostError("no picture came")
    found = _buttons(seen.pictures[0])
    if len(found) < 2:
        raise LostError(f"{len(found)} buttons seen")
    x, y = found[1 if part.saboteur == "decoy" else 0]
    scale = _scale(seen.text)
    for _ in part.times:
        yield from phone.tap_at(round(x * scale), round(y * scale))
    return "The day ticket is bought."


def _buttons(picture: Picture) -> list[tuple[int, int]]:
    return bands(picture, (0xC2, 0x18, 0x5B))


def _scale(text: str) -> float:
    """Hardware pixels for each of the picture's, upright."""
    found = re.search(r"hardware x = (-?[\d.]+)\*u", text)
    if found is None:
        raise LostError("the picture came without its transform")
    return float(found[1])


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
