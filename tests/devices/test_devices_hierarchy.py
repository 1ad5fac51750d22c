"""The hierarchy without a phone: hostile input, identity, outline, targets, focus and coordinates."""

import pytest

from devices import focus, state
from devices.actor.exits import cause_of
from devices.faults import PackageRefused, TargetRefused, TreeUnavailable
from devices.geometry import Screen, apply
from devices.hierarchy import outline
from devices.hierarchy.identity import Sight, find
from devices.hierarchy.targets import point_on
from devices.hierarchy.tree import Tree, read_dump
from devices.keys import code_of
from devices.packages import check_activity, check_package
from devices.spec import Display
from devices.text import keys_line, path_for

HEAD = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
SCREEN = Screen(Display(720, 1280, 320), 0)


def node(
    inner: str = "",
    *,
    cls: str = "android.widget.TextView",
    text: str = "",
    rid: str = "",
    bounds: str = "[0,0][720,100]",
    package: str = "app",
    **flags: str,
) -> str:
    more = " ".join(f'{key.replace("_", "-")}="{value}"' for key, value in flags.items())
    return (
        f'<node class="{cls}" text="{text}" resource-id="{rid}" package="{package}" bounds="{bounds}" {more}>'
        f"{inner}</node>"
    )


def tree(*nodes: str, rotation: int = 0) -> Tree:
    root = node("".join(nodes), cls="android.widget.FrameLayout", bounds="[0,0][720,1280]")
    return read_dump(f'{HEAD}<hierarchy rotation="{rotation}">{root}</hierarchy>'.encode())


def button(text: str, top: int, rid: str = "", **flags: str) -> str:
    return node(cls="android.widget.Button", text=text, rid=rid, bounds=f"[0,{top}][720,{top + 90}]",
                clickable="true", **flags)  # fmt: skip


def index_of(seen: Tree, label: str) -> int:
    return next(one.index for one in seen.nodes if seen.labels[one.index] == label)


def moved_to(before: Tree, label: str, after: Tree) -> str | None:
    found = find(Sight(before), index_of(before, label), Sight(after))
    return None if found is None else f"{after.labels[found]}@{(after.nodes[found].bounds or (0, 0, 0, 0))[1]}"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (f"{HEAD}<!DOCTYPE x [<!ENTITY a 'b'>]><hierarchy>&a;</hierarchy>", None),
        ("<hierarchy>" + "<node>" * 70 + "</node>" * 70 + "</hierarchy>", "tree_hostile"),
        ("<hierarchy>" + "<node/>" * 5000 + "</hierarchy>", "tree_hostile"),
        (f'<hierarchy><node text="{"x" * 20000}"/></hierarchy>', "tree_hostile"),
        ("<hierarchy><node " + " ".join(f'a{n}=""' for n in range(40)) + "/></hierarchy>", "tree_hostile"),
        ("<hierarchy>" + " " * 300_000 + "</hierarchy>", "tree_hostile"),
        ("<hierarchy rotation='0'></hierarchy>", "tree_unavailable"),
        ("<hierarchy><node></hierarchy>", "tree_unavailable"),
        ("ERROR: could not get idle state.", "tree_not_idle"),
        ("", "tree_unavailable"),
    ],
    ids=["entity", "deep", "many", "long", "attributes", "large", "empty", "broken", "idle", "nothing"],
)
def test_hostile_and_failed_dumps_are_refused(document: str, reason: str | None) -> None:
    """Entities, depth, floods and long values are hostile; no document and an empty one are unavailable."""
    with pytest.raises(TreeUnavailable) as refusal:
        read_dump(document.encode())
    assert refusal.value.reason == (reason or refusal.value.reason)


def test_a_button_is_found_again_beside_what_ticks() -> None:
    """A clock, a counter and a moved layout do not lose the button; its own number may tick too."""
    before = tree(node(text="12:01", rid="clock"), node(text="Title"), button("Save", 200), button("Cart (1)", 300))
    after = tree(node(text="12:02", rid="clock"), node(text="Title"), button("Save", 220), button("Cart (2)", 300))
    assert moved_to(before, "Save", after) == "Save@220"
    assert moved_to(before, "Cart (1)", after) == "Cart (2)@300"
    assert moved_to(before, "12:01", after) == "12:02@0"


def test_the_same_words_on_another_screen_are_another_node() -> None:
    """Same label, same place, another screen: refused; a row that was recycled for another entry: refused."""
    one = tree(node(text="Inbox"), node(text="Anna"), node(text="Write to her"), button("Delete", 300))
    other = tree(node(text="Payment"), node(text="Total"), node(text="Card"), button("Delete", 300))
    assert moved_to(one, "Delete", other) is None

    def scrolled(*names: str) -> Tree:
        rows = "".join(button(name, 100 * number) for number, name in enumerate(names))
        return tree(node(text="People"), node(rows, cls="ListView", bounds="[0,0][720,1280]", scrollable="true"))

    assert moved_to(scrolled("Anna", "Ben", "Cleo"), "Anna", scrolled("Ben", "Cleo", "Dora")) is None
    assert moved_to(scrolled("Anna", "Ben", "Cleo"), "Cleo", scrolled("Ben", "Cleo", "Dora")) == "Cleo@100"
    assert moved_to(scrolled("Row 1", "Row 2"), "Row 1", scrolled("Row 2", "Row 3")) is None


def test_namesakes_are_told_apart_by_their_row_or_not_at_all() -> None:
    """Delete in Ben's row stays Ben's when Anna's row goes; without rows, and moved, nobody can say which."""

    def rows(*names: str) -> Tree:
        inner = "".join(
            node(
                node(text=name) + button("Delete", 100 * number + 10),
                cls="Row",
                bounds=f"[0,{100 * number}][720,{100 * number + 100}]",
            )
            for number, name in enumerate(names)
        )
        return tree(node(text="People"), node(inner, cls="ListView", bounds="[0,0][720,1280]", scrollable="true"))

    before, after = rows("Anna", "Ben"), rows("Ben")
    second = [one.index for one in before.nodes if before.labels[one.index] == "Delete"][1]
    found = find(Sight(before), second, Sight(after))
    assert found is not None
    assert after.labels[found] == "Delete"
    first = index_of(before, "Delete")
    assert find(Sight(before), first, Sight(after)) is None
    loose = tree(node(text="T"), button("Go", 100), button("Go", 300))
    shifted = tree(node(text="T"), button("Go", 150), button("Go", 350))
    assert find(Sight(loose), 2, Sight(loose)) == 2
    assert find(Sight(loose), 2, Sight(shifted)) is None


def test_a_field_is_itself_whatever_was_typed() -> None:
    """Typing into a field changes its value, not who it is."""
    field = {"cls": "android.widget.EditText", "clickable": "true", "hint": "Name"}
    before = tree(node(text="Form"), node(text="", bounds="[0,200][720,290]", **field))
    after = tree(node(text="Form"), node(text="Ada", bounds="[0,200][720,290]", **field))
    assert find(Sight(before), 2, Sight(after)) == 2


FIELD = {"cls": "android.widget.EditText", "clickable": "true", "bounds": "[0,200][720,290]"}


@pytest.mark.parametrize(
    ("attributes", "line", "omitted"),
    [
        ({"text": "Name", "hint": "Name"}, 'field "Name" empty, hint "Name"', False),
        ({"text": "", "hint": "Name"}, 'field "Name" empty, hint "Name"', False),
        ({"text": "Ada", "hint": "Name"}, 'field "Name" filled', True),
        ({"text": "Ada", "hint": ""}, "field filled", True),
        ({"text": "", "hint": ""}, "field empty", False),
        ({"text": "PIN", "hint": "PIN", "password": "true"}, 'field "PIN" password empty, hint "PIN"', False),
        ({"text": "••••", "hint": "PIN", "password": "true"}, 'field "PIN" password filled', True),
        ({"text": "Name"}, "field filled or hint", True),
        ({"text": ""}, "field empty", False),
        ({"text": "PIN", "password": "true"}, "field password filled or hint", True),
        ({"text": "••••", "password": "true"}, "field password filled", True),
    ],
)
def test_a_hint_is_told_from_a_value_as_far_as_the_dump_does(
    attributes: dict[str, str], line: str, omitted: bool
) -> None:
    """Newer dumps name the hint, which an empty field repeats as its text; older ones have that text alone."""
    seen = tree(node(**FIELD, **attributes))
    assert outline.line_of(seen, 1, None) == line
    assert seen.nodes[1].value_omitted is omitted
    assert seen.values_unclear is line.endswith("or hint")


def test_an_outline_line_cannot_be_forged() -> None:
    """Line breaks, control, bidi and zero-width characters are escaped; long names are cut; quotes are escaped."""
    seen = tree(button("ok&#10;[9] button &quot;Pay&quot;", 0), button("a\u202eb\u200bc", 100), button("x" * 200, 200))
    lines = outline.render(seen, lambda index: index).lines
    assert len(lines) == 3
    assert all("\n" not in line and "\u202e" not in line and "\u200b" not in line for line in lines)
    assert '\\n[9] button \\"Pay\\"' in lines[0]
    assert "\\u202e" in lines[1]
    assert lines[2].endswith('…"')


def test_an_outline_prefers_what_can_be_acted_on() -> None:
    """When not everything fits, buttons stay and words are counted as omitted."""
    words = [node(text=f"words {number} " + "y" * 40, bounds=f"[0,{number}][9,99]") for number in range(40)]
    seen = tree(*words, button("Last", 900))
    shown = outline.render(seen, lambda index: index, limit=300)
    assert any("Last" in line for line in shown.lines)
    assert shown.omitted == 41 - len(shown.lines)
    assert len(shown.text.encode()) <= 300
    assert list(outline.render(seen, lambda _i: 7, query="role:button last").lines) == ['[7] button "Last"']


def test_targets_outside_or_covered_are_refused_and_partly_covered_ones_reached() -> None:
    """Below the fold: offscreen; under a sheet: covered; half under a floating button: the free half is tapped."""
    below = tree(button("Below", 1400))
    with pytest.raises(TargetRefused, match="offscreen"):
        point_on(below, 1, SCREEN)
    sheet = node(cls="android.view.View", bounds="[0,0][720,1280]", clickable="true", rid="scrim")
    covered = tree(button("Under", 300), sheet)
    with pytest.raises(TargetRefused, match="covered"):
        point_on(covered, 1, SCREEN)
    floating = node(cls="android.widget.ImageButton", bounds="[300,300][420,390]", clickable="true")
    partly = tree(button("Half", 300), floating)
    x, y = point_on(partly, 1, SCREEN)
    assert not 300 <= x < 420
    assert 300 <= y < 390
    clipped = tree(node(button("Row", 950), cls="ListView", bounds="[0,0][720,1000]", scrollable="true"))
    assert point_on(clipped, 2, SCREEN)[1] < 1000


@pytest.mark.parametrize(
    ("text", "kind", "package", "activity"),
    [
        ("mCurrentFocus=Window{1 u0 a.b/a.b.Main}", "activity", "a.b", "a.b.Main"),
        ("mCurrentFocus=Window{1 u0 a.b/.Main paused=false}", "activity", "a.b", "a.b.Main"),
        ("mCurrentFocus=null\nmCurrentFocus=Window{1 u0 a.b/a.b.C}}", "activity", "a.b", "a.b.C"),
        ("mCurrentFocus=Window{1 u0 Application Not Responding: a.b}", "anr_dialog", "a.b", None),
        ("mCurrentFocus=Window{1 u0 Application Error: a.b}", "crash_dialog", "a.b", None),
        ("mCurrentFocus=Window{1 u0 NotificationShade}", "window", None, None),
        ("mFocusedApp=ActivityRecord{1 u0 a.b/.M, isShadow:false t1}", "activity", "a.b", "a.b.M"),
        ("mCurrentFocus=null", "none", None, None),
        ("Window #1 Window{1 u0 a.b/.C}", "unknown", None, None),
        ("mCurrentFocus=Window{1 u0 com.android.permissioncontroller/x.Grant}", "permission_dialog",
         "com.android.permissioncontroller", "x.Grant"),
    ],
)  # fmt: skip
def test_focus_lines_of_many_androids(text: str, kind: str, package: str | None, activity: str | None) -> None:
    """Old and new dumps, several displays, dialogs and none at all."""
    seen = focus.parse(text)
    assert (seen.kind, seen.package, seen.activity) == (kind, package, activity)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("Running multiple emulators with the same AVD is an experimental feature.", "avd_locked"),
        ("qcow2: Image is corrupt; cannot be opened read/write", "avd_image_corrupt"),
        ("ProbeKVM: This user doesn't have permissions to use KVM (/dev/kvm).", "no_kvm"),
        ("write error: No space left on device", "no_space"),
        ("could not bind to port 5554: Address already in use", "port_taken"),
        ("It seems too many emulator instances are running on this machine. Aborting.", "port_taken"),
        ("Unknown AVD name [x], use -list-avds to see valid list.", "no_avd"),
        ("WARNING | unexpected system image feature string", "emulator_exited"),
    ],
)
def test_last_words_have_causes(words: str, cause: str) -> None:
    """Known ends get their name, unknown ones stay unknown."""
    assert cause_of(words) == cause


def test_contract_coordinates_in_all_rotations() -> None:
    """The contract's check vectors, and the way there and back for every corner."""
    display = Display(720, 1280, 320)
    expected = [(144, 384), (504, 256), (576, 896), (216, 1024)]
    for turns in range(4):
        screen = Screen(display, turns)
        assert apply(screen.image_to_hardware(360, 640), 72, 192, display) == expected[turns]
        for x, y in ((0, 0), (719, 0), (0, 1279), (719, 1279), (100, 200)):
            assert screen.to_hardware(*screen.to_rotated(x, y)) == (x, y)
            assert screen.holds(*screen.to_rotated(x, y))


def test_texts_choose_their_path_by_content() -> None:
    """Printable ASCII goes as keys with %s split; anything else is pasted or refused."""
    assert keys_line("a b%s'") == "input text 'a%sb%' && input text 's'\\'''"
    assert path_for("plain", can_paste=False) == "keys"
    assert path_for("ends\n", can_paste=False) is None
    assert path_for("é", can_paste=True) == "paste"
    assert path_for("two\nlines", can_paste=False) is None


def test_key_names_have_codes() -> None:
    """Named keys, letters with their shift, digits and signs; nothing for what has no key."""
    assert code_of("Enter") == (66, False)
    assert code_of("a") == (29, False)
    assert code_of("Z") == (54, True)
    assert code_of("0") == (7, False)
    assert code_of("%") == (12, True)
    assert code_of("?") == (76, True)
    assert code_of("é") is None
    assert code_of("NoSuch") is None


@pytest.mark.parametrize("name", ["a;b", "a", "a..b", "a.b c", "a.$(x)", "1a.b", "a.b\n", "", "a." + "b" * 300])
def test_names_that_are_none_are_refused(name: str) -> None:
    """Package and activity names are grammar, not text."""
    with pytest.raises(PackageRefused):
        check_package(name)
    assert check_package("a.b_c.D9") == "a.b_c.D9"
    assert check_activity(".ui.Main$Inner") == ".ui.Main$Inner"
    with pytest.raises(PackageRefused):
        check_activity(".Main;reboot")


def test_crash_logs_name_who_and_why() -> None:
    """Java, native and ANR entries of a crash log become who, pid and headline."""
    text = (
        "11-30 10:00:00.000  900  900 E AndroidRuntime: FATAL EXCEPTION: main\n"
        "11-30 10:00:00.000  900  900 E AndroidRuntime: Process: a.b, PID: 900\n"
        "11-30 10:00:00.000  900  900 E AndroidRuntime: java.lang.IllegalStateException: boom\n"
        "11-30 10:00:01.000  800  800 F DEBUG   : pid: 77, tid: 78, name: worker  >>> c.d <<<\n"
        "11-30 10:00:01.000  800  800 F DEBUG   : signal 11 (SIGSEGV), code 1\n"
    )
    first, second = state.crashes_in(text)
    assert (first.kind, first.package, first.pid, first.headline) == (
        "java", "a.b", 900, "java.lang.IllegalStateException: boom",
    )  # fmt: skip
    assert (second.kind, second.package, second.pid) == ("native", "c.d", 77)
    assert "SIGSEGV" in second.headline
