"""Key names of the wire and the Android key codes they stand for."""

_NAMED = {
    "Alt": 57,
    "AltGraph": 58,
    "Control": 113,
    "Shift": 59,
    "Meta": 117,
    "Escape": 111,
    "Enter": 66,
    "Tab": 61,
    "Backspace": 67,
    "Delete": 112,
    "ArrowLeft": 21,
    "ArrowRight": 22,
    "ArrowUp": 19,
    "ArrowDown": 20,
    "Home": 122,
    "End": 123,
    "PageUp": 92,
    "PageDown": 93,
    " ": 62,
    "space": 62,
}
MODIFIERS = frozenset(("Alt", "AltGraph", "Control", "Shift", "Meta"))
NAVIGATION = {"back": 4, "home": 3, "overview": 187, "power": 26}
PASTE = 279

_PLAIN = {
    ",": 55, ".": 56, "`": 68, "-": 69, "=": 70, "[": 71, "]": 72, "\\": 73, ";": 74, "'": 75, "/": 76, "@": 77,
    "#": 18, "*": 17, "+": 81, "(": 162, ")": 163,
}  # fmt: skip
_SHIFTED = dict(zip('~!$%^&_{}|:"<>?', "`1456" + "7-[]\\;',./", strict=True))


def code_of(key: str) -> tuple[int, bool] | None:
    """The key code and whether Shift goes with it; None for a key that has no name here."""
    if key in _NAMED:
        return _NAMED[key], False
    if len(key) != 1:
        return None
    if key.isascii() and key.isalpha():
        return 29 + ord(key.lower()) - ord("a"), key.isupper()
    if key.isascii() and key.isdigit():
        return 7 + int(key), False
    if key in _PLAIN:
        return _PLAIN[key], False
    if key in _SHIFTED:
        base = code_of(_SHIFTED[key])
        return None if base is None else (base[0], True)
    return None
