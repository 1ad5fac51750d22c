"""What a terminal sends, taken apart: text without control sequences, and the marks of our shell.

The marks are OSC 133 with our nonce, by the "semantic prompt" convention: A prompt start, B input start, C output
start, D;code command end.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lomi.terminals.ring import Ring

MOST_OSC = 512
MOST_CSI = 64
_ESC, _BEL, _ST = 0x1B, 0x07, 0x5C
_STRING_STARTS = frozenset({0x5D, 0x50, 0x5E, 0x5F, 0x58})


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of our shell, at a position of the text ring. `exit_code` is there with D."""

    kind: Literal["A", "B", "C", "D"]
    position: int
    exit_code: int | None = None


class Stream:
    """Parses bytes as they come, however they are split. Sequences longer than their bound are dropped, never kept."""

    def __init__(self, nonce: str, marked: Callable[[Mark], None]) -> None:
        self.text = Ring()
        self.raw = Ring()
        self.bracketed_paste = False
        self._nonce = nonce
        self._marked = marked
        self._state: Literal["text", "escape", "csi", "string", "string_escape", "skip"] = "text"
        self._held = bytearray()
        self._is_osc = False
        self._return_held = False

    def feed(self, content: bytes) -> None:
        """Take in what was read from the PTY."""
        self.raw.append(content)
        out = bytearray()
        for byte in content:
            if self._state == "text":
                self._take_text(byte, out)
            else:
                self._take_sequence(byte, out)
        self._flush(out)

    def _flush(self, out: bytearray) -> None:
        if out:
            self.text.append(bytes(out))
            out.clear()

    def _take_text(self, byte: int, out: bytearray) -> None:
        if byte == _ESC:
            self._state = "escape"
            return
        if self._return_held:
            self._return_held = False
            # A bare return begins the line anew; after an empty line that is nothing to show.
            if byte != 0x0A and not self._at_line_start(out):
                out.append(0x0A)
        if byte == 0x0D:
            self._return_held = True
        elif byte == 0x08:
            if out and out[-1] != 0x0A:
                out.pop()
        elif (byte >= 0x20 and byte != 0x7F) or byte in (0x09, 0x0A):
            out.append(byte)

    def _at_line_start(self, out: bytearray) -> bool:
        if out:
            return out[-1] == 0x0A
        last = self.text.read(self.text.end - 1, 1).content
        return last in (b"", b"\n")

    def _take_sequence(self, byte: int, out: bytearray) -> None:
        match self._state:
            case "escape":
                self._begin_sequence(byte)
            case "skip":
                self._state = "text"
            case "csi":
                self._take_csi(byte)
            case "string":
                self._take_string(byte, out)
            case "string_escape" if byte == _ST:
                self._end_string(out)
            case "string_escape":
                self._begin_sequence(byte)
            case "text":
                self._take_text(byte, out)

    def _begin_sequence(self, byte: int) -> None:
        self._held.clear()
        self._is_osc = byte == 0x5D
        if byte == 0x5B:
            self._state = "csi"
        elif byte in _STRING_STARTS:
            self._state = "string"
        elif 0x20 <= byte <= 0x2F:
            self._state = "skip"
        else:
            self._state = "text"

    def _take_string(self, byte: int, out: bytearray) -> None:
        if byte == _BEL:
            self._end_string(out)
        elif byte == _ESC:
            self._state = "string_escape"
        elif len(self._held) <= MOST_OSC:
            self._held.append(byte)

    def _take_csi(self, byte: int) -> None:
        if 0x40 <= byte <= 0x7E:
            if self._held == b"?2004" and byte in (0x68, 0x6C):
                self.bracketed_paste = byte == 0x68
            self._state = "text"
        elif len(self._held) <= MOST_CSI:
            self._held.append(byte)

    def _end_string(self, out: bytearray) -> None:
        self._state = "text"
        if not self._is_osc or len(self._held) > MOST_OSC:
            return
        words = bytes(self._held).decode("ascii", "replace").split(";")
        if len(words) < 3 or words[0] != "133" or words[-1] != self._nonce:
            return
        self._flush(out)
        match words[1:-1]:
            case ["A" | "B" | "C" as kind]:
                self._marked(Mark(kind, self.text.end))
            case ["D", code] if code.isdecimal():
                self._marked(Mark("D", self.text.end, int(code)))
