"""The keys and chords that can be pressed.

Checked before the effect: for an unknown key the driver would leave the modifiers held.
"""

from browser.errors import RefusedError

MODIFIERS = frozenset({"Alt", "AltGraph", "Control", "ControlOrMeta", "Meta", "Shift"})
NAMED = frozenset(
    {
        "Enter",
        "Tab",
        "Escape",
        "Backspace",
        "Delete",
        "Insert",
        "Home",
        "End",
        "PageUp",
        "PageDown",
        "ArrowUp",
        "ArrowDown",
        "ArrowLeft",
        "ArrowRight",
        "Space",
        "ContextMenu",
        "CapsLock",
        "NumLock",
        "ScrollLock",
        "Pause",
        "PrintScreen",
        *(f"F{number}" for number in range(1, 13)),
    }
)


def require_known(chord: str) -> None:
    """Raises RefusedError (``unknown_key``) unless it is a key, or modifiers and a key, such as ``Control+Shift+A``."""
    head, plus, last = chord.rpartition("+")
    if last == "" and head.endswith("+"):  # the plus key itself, alone or after modifiers
        head, last = head[:-1], "+"
    elif last == "" and not head and plus:
        last = "+"
    known = last in NAMED or last in MODIFIERS or (len(last) == 1 and last.isascii() and last.isprintable())
    if not known or any(part not in MODIFIERS for part in head.split("+") if head):
        raise RefusedError("unknown_key", key=chord[:64])
