"""What is on the screen, and what touching, typing and turning it does: through real adb, judged by the journal."""

import base64
import hashlib
import re
from types import SimpleNamespace
from typing import cast
from xml.etree import ElementTree as ET

import pytest

from emulator_images.paper.screen.frames import Frames
from emulator_images.paper.screen.stage import Stage
from paper.lab import Lab, RunningPhone, phone

FORM = "lomi.paper.form/.FormActivity"
CORPUS = [
    "plain ascii",
    "שלום עולם",
    "漢字かな交じり",
    "👩‍👩‍👧‍👦 ZWJ",
    "e\u0301 combining",
    "%s %d $HOME `id` ;&|",
    "quote ' and \" and \\",
    "two\nlines\ttab",
    "\u202ertl\u200b",
]


def tree(running: RunningPhone) -> ET.Element:
    raw = running.adb("exec-out", "uiautomator dump /dev/tty", check=True).out
    document, _, tail = raw.rpartition("UI hierchary dumped to: /dev/tty")
    assert tail == "\n"
    return ET.fromstring(document)


def node(running: RunningPhone, identifier: str) -> ET.Element:
    return next(n for n in tree(running).iter("node") if n.get("resource-id", "").endswith(f"id/{identifier}"))


def centre(found: ET.Element) -> tuple[int, int]:
    left, top, right, bottom = map(int, re.findall(r"\d+", found.get("bounds", "")))
    return (left + right) // 2, (top + bottom) // 2


def tap(running: RunningPhone, identifier: str) -> None:
    x, y = centre(node(running, identifier))
    running.shell(f"input tap {x} {y}")


def start(running: RunningPhone, component: str) -> None:
    running.shell(f"am start -W -n {component}")


def picture(running: RunningPhone) -> bytes:
    return running.adb("exec-out", "screencap", "-p", check=True).raw


def focus(running: RunningPhone) -> str:
    return running.shell("dumpsys window | grep mCurrentFocus")


def clipboard(running: RunningPhone, text: str) -> None:
    encoded = base64.b64encode(text.encode()).decode()
    running.shell(f"cmd lomi_agent clipboard set-base64 {encoded}")


def test_a_form_is_filled_and_submitted(lab: Lab) -> None:
    """Tapping fields, typing, ticking and submitting shows 'Submitted' and journals the exact values."""
    with phone(lab) as running:
        start(running, FORM)
        tap(running, "name")
        running.shell("input text 'Ada%sLovelace'")
        tap(running, "email")
        running.shell("input text ada@example.org")
        running.shell("input keyevent 66")
        running.shell("input text s3cret")
        running.shell("input keyevent BACK")
        assert node(running, "password").get("text") == "••••••"
        tap(running, "agree")
        assert node(running, "agree").get("checked") == "true"
        tap(running, "submit")
        assert node(running, "status").get("text") == "Submitted"
        (submitted,) = running.journal("submit")
        assert submitted["fields"] == {"name": "Ada Lovelace", "email": "ada@example.org", "password": "s3cret"}
        assert submitted["checks"] == {"agree": "on"}
        assert [tapped["hit"] for tapped in running.journal("input")] == ["name", "email", "agree", "submit"]


def test_any_unicode_arrives_exactly(lab: Lab) -> None:
    """Both exact text paths, clipboard with paste and the text bridge keyboard, keep every character of the corpus."""
    with phone(lab) as running:
        start(running, FORM)
        tap(running, "name")
        for text in CORPUS:
            clipboard(running, text)
            running.shell("input keycombination 113 29; input keyevent KEYCODE_PASTE")
            encoded = base64.b64encode(text.encode()).decode()
            running.shell("ime set com.android.adbkeyboard/.AdbIME; am broadcast -a ADB_CLEAR_TEXT")
            running.shell(f"am broadcast -a ADB_INPUT_B64 --es msg {encoded}; input keycombination 113 29")
            running.shell("input keyevent 277; ime reset")
            read = running.shell("cmd lomi_agent clipboard get-base64").strip()
            assert base64.b64decode(read).decode() == text
            clipboard(running, text)
            running.shell("input keyevent 279")
            running.shell("input keyevent 4")
            tap(running, "submit")
            assert running.journal("submit")[-1]["fields"]["name"] == text
            tap(running, "name")


def test_input_text_fails_whole_on_what_it_cannot_type(lab: Lab) -> None:
    """`input text` with a character that no key has fails as on Android and types nothing at all."""
    with phone(lab) as running:
        start(running, FORM)
        tap(running, "name")
        result = running.adb("shell", "input text 'abc é'")
        assert result.code == 255
        assert "NullPointerException: Attempt to get length of null array" in result.err
        assert node(running, "name").get("text") == "Name"


def test_the_text_bridge_hears_only_while_it_is_chosen(lab: Lab) -> None:
    """A broadcast to the text bridge is lost unless that keyboard is selected."""
    with phone(lab) as running:
        start(running, FORM)
        tap(running, "name")
        running.shell("am broadcast -a ADB_INPUT_TEXT --es msg lost")
        assert node(running, "name").get("text") == "Name"
        assert "com.android.adbkeyboard/.AdbIME" in running.shell("ime list -s")


def test_the_soft_keyboard_types_and_hides(lab: Lab) -> None:
    """A focused field brings the keyboard; its keys type where they are drawn; BACK hides it before it leaves."""
    with phone(lab) as running:
        start(running, FORM)
        before = picture(running)
        tap(running, "name")
        assert "mInputShown=true" in running.shell("dumpsys input_method")
        assert picture(running) != before
        running.shell("input tap 36 920; input tap 108 1024; input tap 36 1128; input tap 36 920")  # q s shift Q
        assert node(running, "name").get("text") == "qsQ"
        running.shell("input keyevent BACK")
        assert "mInputShown=false" in running.shell("dumpsys input_method")
        assert "lomi.paper.form" in focus(running)
        running.shell("input keyevent BACK")
        assert "launcher3" in focus(running)


def test_editing_keys(lab: Lab) -> None:
    """Caret, selection, delete, cut and paste keys edit as a person expects."""
    with phone(lab) as running:
        start(running, FORM)
        tap(running, "name")
        running.shell("input text abcd; input keyevent 122 112; input keyevent 123 67; input keyevent 21")
        running.shell("input text X")
        assert node(running, "name").get("text") == "bXc"
        running.shell("input keycombination 113 29; input keyevent 277; input keyevent 279 279")
        assert node(running, "name").get("text") == "bXcbXc"


def test_rotation_turns_hierarchy_picture_and_touch(lab: Lab) -> None:
    """Turned by a quarter, the display reports it everywhere and taps land by the turned coordinates."""
    with phone(lab) as running:
        start(running, FORM)
        running.shell("settings put system accelerometer_rotation 0; settings put system user_rotation 1")
        assert tree(running).get("rotation") == "1"
        assert tree(running)[0].get("bounds") == "[0,0][1280,720]"
        assert "orientation=1" in running.shell("dumpsys display")
        raw = picture(running)
        assert (int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")) == (1280, 720)
        tap(running, "name")
        assert running.journal("input")[-1]["hit"] == "name"
        running.adb("emu", "rotate", check=True)
        assert tree(running).get("rotation") == "0"


def test_long_list_scrolls(lab: Lab) -> None:
    """A thousand rows show a screenful; swiping moves them, and the row tapped is the row shown."""
    with phone(lab) as running:
        start(running, "lomi.paper.list/.ListActivity")
        assert len([n for n in tree(running).iter("node") if n.get("text", "").startswith("Row ")]) < 12
        running.shell("input swipe 360 1200 360 200 300")
        rows = [n for n in tree(running).iter("node") if n.get("text", "").startswith("Row ")]
        assert rows[0].get("text") != "Row 1"
        x, y = centre(rows[2])
        running.shell(f"input tap {x} {y}")
        assert f"You chose {rows[2].get('text', '').lower()}" in ET.tostring(tree(running), "unicode")
        assert "mCurrentFocus=Window{" in focus(running)


def test_canvas_shows_no_hierarchy_but_takes_strokes(lab: Lab) -> None:
    """The canvas app has only its root in dumps; strokes reach it and change the picture."""
    with phone(lab) as running:
        start(running, "lomi.paper.canvas/.CanvasActivity")
        assert len(list(tree(running).iter("node"))) == 1
        before = picture(running)
        running.shell("input motionevent DOWN 100 300; input motionevent MOVE 300 500; input motionevent UP 300 500")
        assert running.journal("stroke")[-1]["points"] == 3
        assert picture(running) != before


def test_secure_window_is_black_and_says_so(lab: Lab) -> None:
    """A secure window gives a black picture, its window says SECURE, and its hierarchy can still be read."""
    with phone(lab) as running:
        plain = picture(running)
        start(running, "lomi.paper.secure/.SecureActivity")
        assert len(picture(running)) < len(plain) // 2
        assert " SECURE" in running.shell("dumpsys window windows")
        assert node(running, "pin").get("password") == "true"


def test_crash_and_anr_are_seen(lab: Lab) -> None:
    """A crash leaves its lines in logcat and a dialog in front; an app that stops answering takes no taps."""
    with phone(lab) as running:
        start(running, "lomi.paper.trouble/.TroubleActivity")
        tap(running, "crash")
        assert "Application Error: lomi.paper.trouble" in focus(running)
        log = running.adb("logcat", "-b", "crash", "-d").out
        assert "FATAL EXCEPTION: main" in log
        assert re.search(r"Process: lomi.paper.trouble, PID: \d+", log)
        tap(running, "aerr_close")
        start(running, "lomi.paper.trouble/.TroubleActivity")
        tap(running, "anr")
        assert "Application Not Responding: lomi.paper.trouble" in focus(running)
        tap(running, "aerr_wait")
        assert "TroubleActivity" in focus(running)
        assert [line["button"] for line in running.journal("dialog")] == ["Close app", "Wait"]


def test_permission_dialog_and_shade(lab: Lab) -> None:
    """A permission is asked once, the answer is kept; a notification waits in the shade until touched."""
    with phone(lab) as running:
        start(running, "lomi.paper.permissions/.PermissionsActivity")
        tap(running, "camera")
        assert "GrantPermissionsActivity" in focus(running)
        tap(running, "permission_allow_button")
        assert "android.permission.CAMERA: granted=true" in running.shell("dumpsys package lomi.paper.permissions")
        tap(running, "camera")
        assert "PermissionsActivity}" in focus(running)
        tap(running, "notify")
        running.shell("input swipe 300 2 300 900 200")
        assert "NotificationShade" in focus(running)
        assert "You asked for it" in ET.tostring(tree(running), "unicode")
        tap(running, "clear_all")
        assert "NotificationShade" not in focus(running)


def test_clock_stands_still_unless_moved(lab: Lab) -> None:
    """Pictures repeat byte for byte until the clock is moved; then the clock's node changes and no other."""
    with phone(lab) as running:
        first = picture(running)
        assert picture(running) == first
        texts = [n.get("text") for n in tree(running).iter("node")]
        running.shell("cmd lomi_agent clock advance 60")
        changed = [n.get("text") for n in tree(running).iter("node")]
        assert [(a, b) for a, b in zip(texts, changed, strict=True) if a != b] == [("09:00", "09:01")]
        assert picture(running) != first


def test_a_late_change_is_awaited_until_it_is_made() -> None:
    """Its time may be up before its turn comes: until then a view says that it waits for a frame."""
    stage = SimpleNamespace(
        focused_window=lambda: "window", rotation=0, keyboard_shown=False, shifted=False, toast="", awake=True,
        notifications=[], tasks=[],
    )  # fmt: skip
    frames = Frames(lambda: cast("Stage", stage), lambda: 1000.0, 0.0)
    assert frames.look() == (1, False)
    frames.announce()
    frames.announce()
    frames.made()
    assert frames.look() == (1, True)
    frames.made()
    assert frames.look() == (1, False)


def test_same_seed_same_frames(lab: Lab) -> None:
    """Two phones with the same seed and the same input show the same hierarchy and picture, hash for hash."""
    shown: list[tuple[str, str]] = []
    for name in ("one", "two"):
        with phone(lab, name, PAPER_SEED="5") as running:
            start(running, FORM)
            tap(running, "name")
            running.shell("input text abc; cmd lomi_agent clock advance 30")
            document = ET.tostring(tree(running))
            shown.append((hashlib.sha256(document).hexdigest(), hashlib.sha256(picture(running)).hexdigest()))
    assert shown[0] == shown[1]


def test_display_off(lab: Lab) -> None:
    """With the display off, taps do nothing, pictures are black and the hierarchy is refused, not empty."""
    with phone(lab) as running:
        start(running, FORM)
        running.shell("input keyevent POWER; input tap 300 230")
        assert "mWakefulness=Asleep" in running.shell("dumpsys power")
        assert running.journal("input")[-1]["hit"] == ""
        assert "null root node" in running.adb("shell", "uiautomator dump").err
        running.shell("input keyevent WAKEUP")
        assert node(running, "name") is not None


@pytest.mark.parametrize("extra", ["", 'items = [{ kind = "nonsense" }]\n'])
def test_apps_of_ones_own(lab: Lab, extra: str) -> None:
    """A test brings an app as data; one that is not valid stops the emulator with the file's name."""
    apps = lab.root / "apps"
    apps.mkdir()
    (apps / "mine.toml").write_text(
        'package = "my.app"\nlabel = "Mine"\n[[screens]]\nactivity = ".Main"\n'
        + (extra or '[[screens.items]]\nkind = "button"\nid = "go"\ntext = "Go"\ntap = [{ do = "crash" }]\n')
    )
    with phone(lab, wait=not extra, PAPER_APPS=str(apps)) as running:
        if extra:
            assert running.process.wait(10) == 1
            assert "mine.toml" in running.stderr()
        else:
            start(running, "my.app/.Main")
            tap(running, "go")
            assert running.journal("crash")[-1]["package"] == "my.app"


def test_apps_do_to_their_fields_what_apps_do(lab: Lab) -> None:
    """A field cuts, rewrites, loses its content on focus, and hands the focus on; a keyboard swallows and strays."""
    apps = lab.root / "apps"
    apps.mkdir()
    (apps / "fields.toml").write_text(
        'package = "lomi.test.fields"\nlabel = "Fields"\n[[screens]]\nactivity = ".Main"\nitems = [\n'
        '{ kind = "field", id = "short", most = 3 }, { kind = "field", id = "upper", form = "upper" },\n'
        '{ kind = "field", id = "groups", form = "groups" }, { kind = "field", id = "clears", clears = true },\n'
        '{ kind = "field", id = "code", full = 2 }, { kind = "field", id = "last" },\n]\n'
    )
    with phone(lab, PAPER_APPS=str(apps)) as running:
        start(running, "lomi.test.fields/.Main")

        def typed(identifier: str, text: str) -> None:
            tap(running, identifier)
            running.shell(f"input text {text}")

        typed("short", "abcdef")
        typed("upper", "loud")
        typed("groups", "5551234")
        typed("clears", "old")
        typed("code", "123456")
        running.shell("cmd lomi_agent fault add dropped_keys times=1 value=2")
        typed("clears", "abcd")
        running.shell("cmd lomi_agent fault add moved_focus times=1 value=1 text=last")
        typed("short", "xyz")
        found = {
            name: node(running, name).get("text") for name in ("short", "upper", "groups", "clears", "code", "last")
        }
    assert found == {
        "short": "abc", "upper": "LOUD", "groups": "555-123-4", "clears": "ac", "code": "12", "last": "3456yz"
    }  # fmt: skip
