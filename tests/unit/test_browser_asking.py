"""What a page asks for, as a value and as a line: both say the same."""

import pytest

from browser.pending import Dialog, Download
from browser.port import asking


@pytest.mark.parametrize("length", [3, 80, 81, 160, 161, 500])
def test_a_value_that_was_cut_says_so_as_its_line_does(length: int) -> None:
    """Nobody who reads the value takes the beginning of a question, or of a file's name, for the whole."""
    text = "z" * length
    dialog = Dialog("d1", "confirm", text, 60.0)
    said = asking.dialog_object(dialog, 0.0).text
    assert said == (text if length <= 160 else "z" * 159 + "…")
    assert asking.dialog_line(dialog, 0.0).startswith(f'dialog d1 confirm "{said}": ')
    download = Download("x1", "http://a.test/", text, "running", 600.0)
    named = asking.download_object(download, 0.0).text
    assert named == (text if length <= 80 else "z" * 79 + "…")
    assert asking.download_line(download, 0.0).startswith(f'download x1 "{named}" running: ')
