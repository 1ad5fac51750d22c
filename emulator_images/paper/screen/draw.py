"""Draws what the phone shows, with Pillow, marked SIMULATED."""

import io
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from emulator_images.paper.screen.lettering import plain, write
from emulator_images.paper.screen.nodes import Bounds, Node

_PAPER, _INK, _FAINT, _LINE = "#fafafa", "#212121", "#9e9e9e", "#bdbdbd"
_MARK = "SIMULATED"
_FILLS = {  # fill and outline; an empty fill is the node's own colour
    "bar": ("", ""),
    "panel": ("#eceff1", _LINE),
    "shade": ("#cfd8dc", ""),
    "keyboard": ("#cfd8dc", ""),
    "canvas": ("#fffde7", _LINE),
}


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
        special = {
            "field": self._field,
            "hint": self._field,
            "check": self._box,
            "switch": self._box,
            "button": self._button,
            "icon": self._icon,
            "key": self._key,
            "image": self._image,
            "row": self._row,
        }.get(node.look)
        if special is not None:
            special(node)
        elif node.look in _FILLS:
            fill, outline = _FILLS[node.look]
            self._draw.rectangle(node.bounds, fill=fill or node.colour, outline=outline or None, width=2)
        elif node.look == "heading":
            self._text(node.bounds, node.text, "#ffffff", 20)
        elif node.look:
            self._text(node.bounds, node.text, _INK, self._fitting(node, {"title": 20, "clock": 28}.get(node.look, 14)))

    def _fitting(self, node: Node, size: int) -> int:
        """The size, or a smaller one at which the text stays inside its node; 10 at the least."""
        room, text = node.bounds[2] - node.bounds[0], plain(node.text)
        while size > 10 and self._draw.textlength(text, font=_font(self._px(size))) > room:
            size -= 2
        return size

    def _inner(self, node: Node) -> Bounds:
        left, top, right, bottom = node.bounds
        return (left + self._px(8), top, right, bottom)

    def _field(self, node: Node) -> None:
        line, width = ("#1565c0", 3) if node.focused else (_LINE, 2)
        self._draw.rounded_rectangle(node.bounds, self._px(4), outline=line, width=width)
        inner, empty = self._inner(node), node.look == "hint"
        self._text(inner, node.text, _FAINT if empty else _INK, 16)
        if node.focused:
            length = 0 if empty else self._draw.textlength(plain(node.text), font=_font(self._px(16)))
            x = inner[0] + round(length) + 2
            self._draw.line((x, inner[1] + self._px(8), x, inner[3] - self._px(8)), fill=line, width=3)

    def _button(self, node: Node) -> None:
        self._draw.rounded_rectangle(node.bounds, self._px(8), fill=node.colour if node.enabled else _LINE)
        self._text(node.bounds, node.text, "#ffffff", 16, centred=True)

    def _icon(self, node: Node) -> None:
        left, top, right, bottom = node.bounds
        side = self._px(48)
        x = (left + right - side) // 2
        self._draw.rounded_rectangle((x, top, x + side, top + side), self._px(12), fill=node.colour)
        self._text((x, top, x + side, top + side), node.text[:1], "#ffffff", 24, centred=True)
        self._text((left, top + side, right, bottom), node.text, _INK, 12, centred=True)

    def _key(self, node: Node) -> None:
        left, top, right, bottom = node.bounds
        self._draw.rounded_rectangle((left + 3, top + 3, right - 3, bottom - 3), self._px(4), fill="#ffffff")
        self._text(node.bounds, {"⇧": "Shift", "⌫": "Del"}.get(node.text, node.text), _INK, 14, centred=True)

    def _image(self, node: Node) -> None:
        self._draw.rectangle(node.bounds, fill=node.colour)
        self._draw.line(node.bounds, fill="#ffffff", width=3)

    def _row(self, node: Node) -> None:
        left, _, right, bottom = node.bounds
        self._draw.line((left, bottom, right, bottom), fill=_LINE, width=2)
        self._text(self._inner(node), node.text, _INK, 16)

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
        pixels = self._px(size)
        font = _font(pixels)
        x: float = box[0]
        if centred:
            x = max(box[0], (box[0] + box[2] - self._draw.textlength(plain(text), font=font)) / 2)
        write(self._draw, (x, (box[1] + box[3]) / 2), text, colour, font, pixels)


def black(width: int, height: int) -> bytes:
    """A black picture: what Android gives for a secure window or a display that is off."""
    target = io.BytesIO()
    Image.new("RGB", (width, height)).save(target, "PNG", compress_level=1)
    return target.getvalue()
