"""What the simulated phone draws of text beyond ASCII."""

import pytest
from PIL import Image, ImageDraw, ImageFont

from emulator_images.paper.screen.lettering import plain, write


def drawn(text: str) -> bytes:
    """The pixels of one line."""
    image = Image.new("L", (400, 80), 255)
    write(ImageDraw.Draw(image), (10, 40), text, "#000000", ImageFont.load_default(40), 40)
    return image.tobytes()


@pytest.mark.parametrize(("text", "base"), [("Zoé", "Zoe"), ("ÀÇñÜ", "ACnU"), ("Don’t – “x”", 'Don\'t - "x"')])
def test_latin_text_is_drawn_as_letters(text: str, base: str) -> None:
    """Accented letters and typographic marks have no box, and take the room of their base letters."""
    assert plain(text) == base


def test_an_accent_is_seen() -> None:
    """Letters that differ in their accent only look different."""
    assert len({drawn(text) for text in ("e", "é", "è", "ê", "ë", "ē", "ě")}) == 7


def test_both_spellings_of_an_accent_look_the_same() -> None:
    """Composed and combining characters are one letter to a reader."""
    assert drawn("e\u0301") == drawn("é")


def test_what_the_font_lacks_is_one_box_each() -> None:
    """Chinese and emoji are marked as there, not left out."""
    assert plain("漢 🙂") == "□ □"
