"""Letters beyond ASCII for a font that has none: base letter and accent of Latin text; the rest becomes boxes."""

import unicodedata
from collections.abc import Iterator

from PIL import ImageDraw, ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Line = tuple[tuple[float, float], ...]
_LONGEST = 200
_BOX = "□"
_LIKE = {
    "\n": " ",
    "’": "'",
    "‘": "'",
    "“": '"',
    "”": '"',
    "–": "-",
    "—": "-",
    "•": "*",
    "…": ".",
    "×": "x",
    "Ø": "O",
    "ø": "o",
}
# Strokes of an accent as parts of the letter's size, around the middle of the letter's top (y grows downwards).
_STROKES: dict[str, tuple[Line, ...]] = {
    "\u0300": (((-0.14, -0.12), (0.06, 0.0)),),
    "\u0301": (((-0.06, 0.0), (0.14, -0.12)),),
    "\u0302": (((-0.12, 0.0), (0.0, -0.1), (0.12, 0.0)),),
    "\u0303": (((-0.15, -0.02), (-0.06, -0.08), (0.06, -0.02), (0.15, -0.08)),),
    "\u0304": (((-0.13, -0.04), (0.13, -0.04)),),
    "\u0308": (((-0.12, -0.06), (-0.09, -0.06)), ((0.09, -0.06), (0.12, -0.06))),
    "\u030a": (((-0.06, -0.05), (0.0, -0.11), (0.06, -0.05), (0.0, 0.0), (-0.06, -0.05)),),
    "\u030c": (((-0.12, -0.1), (0.0, 0.0), (0.12, -0.1)),),
    "\u0327": (((0.0, 0.72), (0.06, 0.8), (-0.06, 0.86)),),
}


def _parts(letter: str) -> tuple[str, str]:
    """Base letter and accent of one character; a box where the font can't help."""
    if " " <= letter <= "~":
        return letter, ""
    if letter in _LIKE:
        return _LIKE[letter], ""
    apart = unicodedata.normalize("NFD", letter)
    if len(apart) == 2 and apart[0].isascii() and apart[1] in _STROKES:
        return apart[0], apart[1]
    return _BOX, ""


def _letters(text: str) -> Iterator[tuple[str, str]]:
    return map(_parts, unicodedata.normalize("NFC", text)[:_LONGEST])


def plain(text: str) -> str:
    """One line of text in the font's own letters; as wide as what `write` draws."""
    return "".join(base for base, _ in _letters(text))


def write(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, colour: str, font: Font, size: int) -> None:
    """Draw a line with its left end and middle at `at`; `size` is the font's, in pixels."""
    shown = plain(text)
    draw.text(at, shown, fill=colour, font=font, anchor="lm")
    for place, (base, accent) in enumerate(_letters(text)):
        if accent:
            before, after = draw.textlength(shown[:place], font=font), draw.textlength(shown[: place + 1], font=font)
            tall = base.isupper() or base in "bdfhklt"
            middle, top = at[0] + (before + after) / 2, at[1] - size * (0.46 if tall else 0.28)
            for stroke in _STROKES[accent]:
                points = [(middle + x * size, top + y * size) for x, y in stroke]
                draw.line(points, fill=colour, width=max(1, size // 12))
