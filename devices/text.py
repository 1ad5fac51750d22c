"""How a text can be typed exactly: chosen from its content before anything is sent."""

import base64
import re
from typing import Literal

from devices.adb.shell import ShellLane, quote
from devices.keys import PASTE

MAX_BYTES = 16384
_SAFE = re.compile(r"^[\x20-\x7e]*$")

Path = Literal["keys", "paste"]


def is_plain(text: str) -> bool:
    """Whether key events can say it: printable ASCII."""
    return _SAFE.fullmatch(text) is not None


def path_for(text: str, *, can_paste: bool) -> Path | None:
    """`keys` for printable ASCII, `paste` for everything else where the device can; None when it cannot be typed."""
    if is_plain(text):
        return "keys"
    return "paste" if can_paste else None


def keys_line(text: str) -> str:
    """One shell line that types printable ASCII.

    `input text` reads %s as a space and has no way to say %s itself, so a text is cut between the two characters.
    """
    pieces = re.split(r"(?<=%)(?=s)", text)
    return " && ".join(f"input text {quote(piece.replace(' ', '%s'))}" for piece in pieces if piece)


async def has_clipboard(lane: ShellLane) -> bool:
    """Whether the device lets its clipboard be set exactly over adb; only simulated phones do.

    Raises:
        ChannelLost: the device did not answer.
    """
    return (await lane.run("getprop ro.lomi.agent", within=5.0)).text.strip() == "1"


async def paste_line(lane: ShellLane, text: str) -> str:
    """One shell line that sets the clipboard, pastes, and puts the clipboard back as it is now.

    Raises:
        ChannelLost: the clipboard could not be read.
    """
    before = (await lane.run("cmd lomi_agent clipboard get-base64", within=5.0)).text.strip()
    after = base64.b64encode(text.encode()).decode("ascii")
    agent = "cmd lomi_agent clipboard set-base64"
    return f"{agent} {quote(after)} && input keyevent {PASTE} && {agent} {quote(before)}"
