"""The soft keyboard: where its keys are and what each types."""

from dataclasses import dataclass

from emulator_images.paper.screen.nodes import Node

_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "⇧zxcvbnm⌫")
_BOTTOM = ("@", "Space", ".", "Enter")
SHARE_OF_HEIGHT = 0.4


@dataclass(frozen=True, slots=True)
class KeyPress:
    """What a touched key means: `text` to insert, or one of the `action`s shift, delete, enter."""

    text: str = ""
    action: str = ""


def keyboard_height(height: int) -> int:
    """Height of the shown keyboard on a display of this height, in pixels."""
    return round(height * SHARE_OF_HEIGHT)


def keyboard_node(width: int, height: int, *, shifted: bool) -> Node:
    """The keyboard's window at the bottom of the display."""
    top = height - keyboard_height(height)
    row_height = (height - top) // 5
    keys: list[Node] = []
    for number, row in enumerate(_ROWS):
        for place, label in enumerate(row):
            left, right = width * place // len(row), width * (place + 1) // len(row)
            shown = label.upper() if shifted else label
            bounds = (left, top + number * row_height, right, top + (number + 1) * row_height)
            keys.append(Node("key", bounds, text=shown, look="key", key=f"key:{shown}"))
    for place, label in enumerate(_BOTTOM):
        left, right = width * place // 4, width * (place + 1) // 4
        keys.append(
            Node("key", (left, top + 4 * row_height, right, height), text=label, look="key", key=f"key:{label}")
        )
    return Node("keyboard", (0, top, width, height), look="keyboard", children=tuple(keys))


def press(key: str) -> KeyPress:
    """The meaning of a key node's `key`."""
    label = key.removeprefix("key:")
    special = {
        "⇧": KeyPress(action="shift"),
        "⌫": KeyPress(action="delete"),
        "Enter": KeyPress(action="enter"),
        "Space": KeyPress(text=" "),
    }
    return special.get(label, KeyPress(text=label))
