"""What keys do: navigation, editing and text."""

from emulator_images.paper.screen.stage import LAUNCHER, Stage
from emulator_images.paper.screen.state import Editor, placed_items

HOME, BACK, POWER, ENTER, DELETE, FORWARD_DELETE, TAB, SPACE, MENU = 3, 4, 26, 66, 67, 112, 61, 62, 82
NOTIFICATION, ESCAPE, MOVE_HOME, MOVE_END = 83, 111, 122, 123
APP_SWITCH, SLEEP, WAKEUP, CUT, COPY, PASTE = 187, 223, 224, 277, 278, 279
DPAD_LEFT, DPAD_RIGHT = 21, 22
_SELECT_ALL = -1  # no key of its own: Ctrl+A
CTRL_LEFT, CTRL_RIGHT, SHIFT_LEFT, SHIFT_RIGHT = 113, 114, 59, 60

NAMES = {
    "HOME": 3, "BACK": 4, "CALL": 5, "ENDCALL": 6, "STAR": 17, "POUND": 18, "DPAD_UP": 19, "DPAD_DOWN": 20,
    "DPAD_LEFT": 21, "DPAD_RIGHT": 22, "DPAD_CENTER": 23, "VOLUME_UP": 24, "VOLUME_DOWN": 25, "POWER": 26,
    "CAMERA": 27, "CLEAR": 28, "COMMA": 55, "PERIOD": 56, "ALT_LEFT": 57, "ALT_RIGHT": 58, "SHIFT_LEFT": 59,
    "SHIFT_RIGHT": 60, "TAB": 61, "SPACE": 62, "ENTER": 66, "DEL": 67, "GRAVE": 68, "MINUS": 69, "EQUALS": 70,
    "LEFT_BRACKET": 71, "RIGHT_BRACKET": 72, "BACKSLASH": 73, "SEMICOLON": 74, "APOSTROPHE": 75, "SLASH": 76, "AT": 77,
    "PLUS": 81, "MENU": 82, "NOTIFICATION": 83, "SEARCH": 84, "PAGE_UP": 92, "PAGE_DOWN": 93, "ESCAPE": 111,
    "FORWARD_DEL": 112, "CTRL_LEFT": 113, "CTRL_RIGHT": 114, "MOVE_HOME": 122, "MOVE_END": 123, "VOLUME_MUTE": 164,
    "APP_SWITCH": 187, "BRIGHTNESS_DOWN": 220, "BRIGHTNESS_UP": 221, "SLEEP": 223, "WAKEUP": 224, "CUT": 277,
    "COPY": 278, "PASTE": 279, "ALL_APPS": 284,
    **{str(digit): 7 + digit for digit in range(10)},
    **{chr(ord("A") + n): 29 + n for n in range(26)},
}  # fmt: skip
_CHARACTERS = {
    55: ",", 56: ".", 62: " ", 68: "`", 69: "-", 70: "=", 71: "[", 72: "]", 73: "\\", 74: ";", 75: "'", 76: "/",
    77: "@", 81: "+", 17: "*", 18: "#",
}  # fmt: skip


def code_of(word: str) -> int | None:
    """The key code of a number or a name with or without `KEYCODE_`; None when there is no such key."""
    if word.isdecimal():
        return int(word)
    return NAMES.get(word.upper().removeprefix("KEYCODE_"))


def press_keys(stage: Stage, codes: tuple[int, ...]) -> None:
    """Press keys together: the last one with the ones before it held."""
    held, code = set(codes[:-1]), codes[-1]
    if _system_key(stage, code):
        return
    if not stage.awake or stage.dialog is not None or stage.shade_open:
        return
    editor = stage.editor()
    if editor is None:
        return
    shift = bool(held & {SHIFT_LEFT, SHIFT_RIGHT})
    if held & {CTRL_LEFT, CTRL_RIGHT}:
        code = {29: _SELECT_ALL, 31: COPY, 50: PASTE, 52: CUT}.get(code, 0)
    if code in {ENTER, TAB}:
        editor_action(stage, wrap=code == TAB)
    elif code in {COPY, CUT, PASTE}:
        _clipboard_key(stage, editor, code)
    elif not _caret_key(editor, code, extend=shift) and (typed := character(code, shift=shift)) is not None:
        enter(stage, typed)


def enter(stage: Stage, text: str) -> None:
    """Put text into the field with the focus, all at once, and let the app do to it what its description says."""
    editor = stage.editor()
    if editor is None:
        return
    editor.insert(text)
    item = next((one.item for one in placed_items(stage.activity.screen) if one.key == stage.activity.focused), None)
    if item is None:
        return
    if item.most and len(editor.text) > item.most:
        editor.text = editor.text[: item.most]
        editor.move(editor.end)
    if item.form == "upper":
        editor.text = editor.text.upper()
    elif item.form == "groups":
        digits = "".join(character for character in editor.text if character.isdigit())
        editor.text = "-".join(digits[at : at + 3] for at in range(0, len(digits), 3))
        editor.move(len(editor.text))
    if item.full and len(editor.text) >= item.full:
        editor_action(stage, wrap=True)


def _clipboard_key(stage: Stage, editor: Editor, code: int) -> None:
    if code == PASTE:
        enter(stage, stage.clipboard)
        return
    stage.clipboard = editor.selected
    if code == CUT and editor.selected:
        editor.delete()


def _caret_key(editor: Editor, code: int, *, extend: bool) -> bool:
    if code == _SELECT_ALL:
        editor.select_all()
    elif code in {DELETE, FORWARD_DELETE}:
        editor.delete(forward=code == FORWARD_DELETE)
    elif code in {MOVE_HOME, MOVE_END}:
        editor.move(0 if code == MOVE_HOME else len(editor.text), extend=extend)
    elif code in {DPAD_LEFT, DPAD_RIGHT}:
        editor.move(editor.end + (1 if code == DPAD_RIGHT else -1), extend=extend)
    else:
        return False
    return True


def character(code: int, *, shift: bool) -> str | None:
    """What a printing key types."""
    if 29 <= code <= 54:
        letter = chr(ord("a") + code - 29)
        return letter.upper() if shift else letter
    if 7 <= code <= 16:
        return str(code - 7)
    return _CHARACTERS.get(code)


def _system_key(stage: Stage, code: int) -> bool:
    if code == POWER:
        stage.awake = not stage.awake
    elif code in {SLEEP, WAKEUP}:
        stage.awake = code == WAKEUP
    elif not stage.awake:
        return False
    elif code == HOME:
        stage.shade_open = False
        if stage.dialog is not None and stage.dialog.kind not in {"anr", "crash"}:
            stage.dialog = None
        stage.home()
    elif code in {BACK, ESCAPE}:
        _back(stage)
    elif code == APP_SWITCH:
        _switch(stage)
    elif code == NOTIFICATION:
        stage.shade_open = not stage.shade_open
    else:
        return False
    return True


def _back(stage: Stage) -> None:
    if stage.dialog is not None:
        if stage.dialog.kind not in {"anr", "crash"}:
            stage.dialog = None
    elif stage.shade_open:
        stage.shade_open = False
    elif stage.keyboard_shown:
        stage.hide_keyboard()
    elif stage.activity.app.package not in stage.frozen:
        stage.leave()


def _switch(stage: Stage) -> None:
    others = [task for task in stage.tasks if task[0].app.package != LAUNCHER]
    if others and others[-1] is stage.tasks[-1]:
        others.pop()
    if others:
        stage.start(others[-1][0].app)


def editor_action(stage: Stage, *, wrap: bool = False) -> None:
    """What the keyboard's Enter does in a one-line field: on to the next field, after the last one done."""
    activity = stage.activity
    fields = [placed.key for placed in placed_items(activity.screen) if placed.item.kind == "field"]
    place = fields.index(activity.focused) if activity.focused in fields else -1
    if place + 1 < len(fields) or (wrap and fields):
        activity.focused = fields[(place + 1) % len(fields)]
        editor = activity.editor(activity.focused)
        editor.move(len(editor.text))
        stage.show_keyboard()
    else:
        stage.hide_keyboard()
