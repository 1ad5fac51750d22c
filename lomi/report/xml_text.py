"""Text that XML 1.0 can hold."""

import re

_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def legal(text: str) -> str:
    """The text with each character that XML can't hold replaced by U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)
