"""The keys of a US keyboard: what each is called, its place, its code and the text it gives."""

from typing import NamedTuple


class Key(NamedTuple):
    """One key as pressed: `key` and `code` are the names of UI Events, `number` the Windows virtual key code."""

    key: str
    code: str
    number: int
    text: str = ""
    location: int = 0


_PLAIN = {
    "Escape": 27,
    "Backspace": 8,
    "Tab": 9,
    "CapsLock": 20,
    "ContextMenu": 93,
    "PrintScreen": 44,
    "ScrollLock": 145,
    "Pause": 19,
    "PageUp": 33,
    "PageDown": 34,
    "Insert": 45,
    "Delete": 46,
    "Home": 36,
    "End": 35,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "NumLock": 144,
    "AltGraph": 225,
    **{f"F{number}": 111 + number for number in range(1, 13)},
}
_MODIFIERS = {"Shift": 16, "Control": 17, "Alt": 18, "Meta": 91}
# Place, code, and what it gives without and with Shift.
_SIGNS = (
    ("Backquote", 192, "`~"),
    ("Minus", 189, "-_"),
    ("Equal", 187, "=+"),
    ("Backslash", 220, "\\|"),
    ("BracketLeft", 219, "[{"),
    ("BracketRight", 221, "]}"),
    ("Semicolon", 186, ";:"),
    ("Quote", 222, "'\""),
    ("Comma", 188, ",<"),
    ("Period", 190, ".>"),
    ("Slash", 191, "/?"),
    *((f"Digit{digit}", 48 + digit, f"{digit}{')!@#$%^&*('[digit]}") for digit in range(10)),
    *((f"Key{chr(code)}", code, f"{chr(code + 32)}{chr(code)}") for code in range(65, 91)),
)


def _keys() -> dict[str, Key]:
    keys = {name: Key(name, name, number) for name, number in _PLAIN.items()}
    keys |= {name: Key(name, f"{name}Left", number, location=1) for name, number in _MODIFIERS.items()}
    keys["Enter"] = keys["\n"] = keys["\r"] = Key("Enter", "Enter", 13, "\r")
    keys["Space"] = keys[" "] = Key(" ", "Space", 32, " ")
    for place, number, signs in _SIGNS:
        keys |= {sign: Key(sign, place, number, sign) for sign in signs}
    return keys


KEYS = _keys()
"""By name, or by the sign it gives."""

SHIFTED = {signs[0]: signs[1] for _, _, signs in _SIGNS}
"""What a sign becomes while Shift is held."""
