"""Draws what the phone shows, with Pillow, marked SIMULATED."""

import io
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from emulator_images.paper.screen.nodes import Bounds, Node

_PAPER, _INK, _FAINT, _LINE = "#fafafa", "#212121", "#9e9e9e", "#bdbdbd"
_MARK = "SIMULATED"


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


class Painter:
    """One picture being drawn; sizes follow the display's density."""

    def __init__(self, width: int, height: int, density: int) -> None:
        self.image = Image.new("RGB", (width, height), _PAPER)
        self._draw = ImageDraw.Draw(self.image)
        self._scale = density / 160

    def window(self, root: Node) -> None:
        """Draw a window's nodes, parents first."""
        for node in root.walk():
            self._node(node)

    def strokes(self, lines: list[tuple[tuple[int, int], ...]]) -> None:
        """Draw finger strokes of a canvas."""
        for line in lines:
            if len(line) == 1:
                x, y = line[0]
                self._draw.ellipse((x - 6, y - 6, x + 6, y + 6), fill="#d50000")
            else:
                self._draw.line(line, fill="#d50000", width=6)

    def status_bar(self, clock: str, *, notifications: int) -> None:
        """The system's bar at the top: clock, notification dots and the mark that this is no Android."""
        height = self._px(24)
        self._draw.rectangle((0, 0, self.image.width, height), fill="#37474f")
        self._text((self._px(8), 0, self.image.width, height), clock, "#ffffff", 14)
        for position in range(min(notifications, 5)):
            left = self._px(60 + 10 * position)
            self._draw.ellipse((left, height // 3, left + self._px(6), height // 3 + self._px(6)), fill="#ffffff")
        width = self._draw.textlength(_MARK, font=_font(self._px(14)))
        self._text((self.image.width - round(width) - self._px(8), 0, self.image.width, height), _MARK, "#ffeb3b", 14)

    def toast(self, text: str) -> None:
        """A short message near the bottom."""
        width, height = self.image.size
        box = (width // 8, height * 8 // 10, width * 7 // 8, height * 8 // 10 + self._px(40))
        self._draw.rounded_rectangle(box, self._px(16), fill="#424242")
        self._text((box[0] + self._px(12), *box[1:]), text, "#ffffff", 14)

    def png(self) -> bytes:
        """The picture as PNG bytes."""
        target = io.BytesIO()
        self.image.save(target, "PNG", compress_level=1)
        return target.getvalue()

    def _px(self, dp: float) -> int:
        return max(1, round(dp * self._scale))

    def _node(self, node: Node) -> None:
        box, look = node.bounds, node.look
        inner = (box[0] + self._px(8), box[1], box[2], box[3])
        if look == "bar":
            self._draw.rectangle(box, fill=node.colour)
        elif look == "heading":
            self._text(box, node.text, "#ffffff", 20)
        elif look in {"field", "hint"}:
            self._draw.rounded_rectangle(
                box, self._px(4), outline="#1565c0" if node.focused else _LINE, width=3 if node.focused else 2
            )
            self._text(inner, node.text, _FAINT if look == "hint" else _INK, 16)
            if node.focused:
                length = 0 if look == "hint" else self._draw.textlength(_plain(node.text), font=_font(self._px(16)))
                x = inner[0] + round(length) + 2
                self._draw.line((x, box[1] + self._px(8), x, box[3] - self._px(8)), fill="#1565c0", width=3)
        elif look in {"check", "switch"}:
            self._box(node)
        elif look == "button":
            self._draw.rounded_rectangle(box, self._px(8), fill=node.colour if node.enabled else _LINE)
            self._text(box, node.text, "#ffffff", 16, centred=True)
        elif look == "icon":
            side = self._px(48)
            left = (box[0] + box[2] - side) // 2
            self._draw.rounded_rectangle((left, box[1], left + side, box[1] + side), self._px(12), fill=node.colour)
            self._text((left, box[1], left + side, box[1] + side), node.text[:1], "#ffffff", 24, centred=True)
            self._text((box[0], box[1] + side, box[2], box[3]), node.text, _INK, 12, centred=True)
        elif look == "panel":
            self._draw.rounded_rectangle(box, self._px(8), fill="#eceff1", outline=_LINE, width=2)
        elif look == "shade":
            self._draw.rectangle(box, fill="#cfd8dc")
        elif look == "keyboard":
            self._draw.rectangle(box, fill="#cfd8dc")
        elif look == "key":
            self._draw.rounded_rectangle((box[0] + 3, box[1] + 3, box[2] - 3, box[3] - 3), self._px(4), fill="#ffffff")
            self._text(box, {"⇧": "Shift", "⌫": "Del"}.get(node.text, node.text), _INK, 14, centred=True)
        elif look == "canvas":
            self._draw.rectangle(box, fill="#fffde7", outline=_LINE, width=2)
        elif look == "image":
            self._draw.rectangle(box, fill=node.colour)
            self._draw.line((box[0], box[1], box[2], box[3]), fill="#ffffff", width=3)
        elif look == "row":
            self._draw.line((box[0], box[3], box[2], box[3]), fill=_LINE, width=2)
            self._text(inner, node.text, _INK, 16)
        elif look:
            self._text(box, node.text, _INK, {"title": 20, "clock": 28}.get(look, 14))

    def _box(self, node: Node) -> None:
        left, top, right, bottom = node.bounds
        side = self._px(20)
        middle = (top + bottom) // 2
        square = (left + self._px(4), middle - side // 2, left + self._px(4) + side, middle + side // 2)
        self._draw.rectangle(square, outline=_INK, width=3, fill="#1565c0" if node.checked else None)
        self._text((square[2] + self._px(8), top, right, bottom), node.text, _INK, 16)

    def _text(self, box: Bounds, text: str, colour: str, size: int, *, centred: bool = False) -> None:
        if not text or box[3] - box[1] < 4:
            return
        font = _font(self._px(size))
        shown = _plain(text)
        x: float = box[0]
        if centred:
            x = max(box[0], (box[0] + box[2] - self._draw.textlength(shown, font=font)) / 2)
        self._draw.text((x, (box[1] + box[3]) / 2), shown, fill=colour, font=font, anchor="lm")


def _plain(text: str) -> str:
    """One line of text that a font without shaping can draw; what it lacks becomes a box."""
    line = text.replace("\n", "⏎")[:200]
    return "".join(c if ord(c) < 0x250 or c in "•⏎…" else "□" for c in line)


def black(width: int, height: int) -> bytes:
    """A black picture: what Android gives for a secure window or a display that is off."""
    target = io.BytesIO()
    Image.new("RGB", (width, height)).save(target, "PNG", compress_level=1)
    return target.getvalue()
