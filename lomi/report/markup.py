"""HTML from untrusted text: whatever a page, a phone or a log says becomes plain characters, never markup."""

import html
import re

# Characters that draw nothing, or draw what follows in another order: a reader must see that they are there.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with unseen characters written out by number, as Python writes them; tabs and line ends stay."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def inert(text: object) -> str:
    """Text for an element or a quoted attribute."""
    return html.escape(visible(str(text)), quote=True)


def element(name: str, inside: str = "", /, **attributes: object) -> str:
    """One element around inert markup; attributes are escaped here, None is left out, `class_` is class."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{inert(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{shown}>{inside}</{name}>"


def listed(name: str, rows: list[str], /, **attributes: object) -> str:
    """One element around several, a line each."""
    return element(name, "\n" + "\n".join(rows) + "\n", **attributes)
