"""How a text can be typed exactly: chosen from its content before anything is sent."""

import re
from typing import Literal

from devices.adb.shell import quote

MAX_BYTES = 16384
_SAFE = re.compile(r"^[\x20-\x7e]*$")

Path = Literal["keys", "paste"]


def path_for(text: str, *, can_paste: bool) -> Path | None:
    """`keys` for printable ASCII, `paste` for everything else where the device can; None when it cannot be typed."""
    if _SAFE.match(text):
        return "keys"
    return "paste" if can_paste else None


def keys_line(text: str) -> str:
    """One shell line that types printable ASCII.

    `input text` reads %s as a space and has no way to say %s itself, so a text is cut between the two characters.
    """
    pieces = re.split(r"(?<=%)(?=s)", text)
    return " && ".join(f"input text {quote(piece.replace(' ', '%s'))}" for piece in pieces if piece)
