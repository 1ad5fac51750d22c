"""What a page asks for, as refs that the acting tools take: no tool of its own, and no modal state.

A dialog `d1` is answered by a click on `d1-accept` or `d1-dismiss`, a prompt by filling `d1`, either by the keys Enter
and Escape on `d1`. A file chooser `c1` takes an upload; a click on `c1-dismiss` lets it go, one on `x1-dismiss` gives a
download up.
"""

import re
from collections.abc import Container
from typing import Literal, NamedTuple

from browser.errors import NoSuchThingError, RefusedError
from browser.page import Page
from browser.pending import Chooser, Dialog, Download, Pending
from browser.port.acts import Effect
from browser.snapshot.outline import quoted, shortened
from browser.values import Acted
from lomi.contract.browser import BrowserClickInput, BrowserFillInput, BrowserKeyInput, PageAction
from lomi.contract.model import PendingObject

_REF = re.compile(r"([dcx][1-9][0-9]{0,8})(?:-(accept|dismiss))?")
_MOST_SAID = 160
_MOST_NAME = 80
_KEYS: dict[str, Literal["accept", "dismiss"]] = {"Enter": "accept", "Escape": "dismiss"}


class Asked(NamedTuple):
    """A ref of something that a page asked for, and the answer that the ref itself stands for."""

    id: str
    answer: Literal["accept", "dismiss"] | None


def asked_of(ref: str | None) -> Asked | None:
    """The thing that a ref names; None for a ref of an element."""
    found = _REF.fullmatch(ref or "")
    return None if found is None else Asked(found[1], found[2])  # type: ignore[arg-type]


def chooser_of(ref: str) -> str | None:
    """The file chooser that a ref names."""
    asked = asked_of(ref)
    return asked.id if asked is not None and asked.id.startswith("c") and asked.answer is None else None


def _held(pending: Pending) -> dict[str, tuple[str, Container[str]]]:
    return {
        "d": ("dialog", pending.dialogs),
        "c": ("chooser", pending.choosers),
        "x": ("download", pending.downloads),
    }


def require_asked(page: Page, asked: Asked) -> None:
    """Raises NoSuchThingError when the page no longer asks for it."""
    page.require_live()
    kind, held = _held(page.pending)[asked.id[0]]
    if asked.id not in held:
        raise NoSuchThingError(f"no_such_{kind}")


async def answer(page: Page, given: PageAction, asked: Asked, effect: Effect) -> Acted:
    """Answer it once.

    Raises:
        NoSuchThingError: it is gone; nothing was done.
        RefusedError: such an action does not answer it.
    """
    require_asked(page, asked)
    said, text = _answer_in(given, asked)
    if asked.id.startswith("d"):
        return await page.pending.answer(asked.id, accept=said == "accept", text=text, effect=effect)
    if said != "dismiss":
        raise RefusedError("not_answerable", ref=asked.id)
    return await page.pending.let_go(asked.id, effect=effect)


def _answer_in(given: PageAction, asked: Asked) -> tuple[str, str | None]:
    match given:
        case BrowserClickInput() if asked.answer is not None:
            return asked.answer, None
        case BrowserFillInput(text=text, also_select=()) if asked.answer is None and asked.id.startswith("d"):
            return "accept", text
        case BrowserKeyInput(key=key, modifiers=()) if asked.answer is None and key in _KEYS:
            return _KEYS[key], None
        case _:
            raise RefusedError("not_answerable", ref=asked.id)


def dialog_object(dialog: Dialog, now: float) -> PendingObject:
    """An open dialog."""
    said = shortened(dialog.message, _MOST_SAID)
    return PendingObject(
        kind="dialog", id=dialog.id, type=dialog.kind, text=said, expires_in_ms=_left(dialog.deadline, now)
    )


def chooser_object(chooser: Chooser, now: float) -> PendingObject:
    """An open file chooser."""
    return PendingObject(
        kind="chooser",
        id=chooser.id,
        multiple=chooser.multiple,
        frame_id=chooser.frame,
        expires_in_ms=_left(chooser.deadline, now),
    )


def download_object(download: Download, now: float) -> PendingObject:
    """A download that the page began."""
    return PendingObject(
        kind="download",
        id=download.id,
        text=shortened(download.file_name, _MOST_NAME),
        state=download.state,
        reason=download.reason,
        byte_length=download.byte_length,
        expires_in_ms=_left(download.deadline, now),
    )


def _left(deadline: float, now: float) -> int:
    return max(0, round((deadline - now) * 1000))


def dialog_line(dialog: Dialog, now: float) -> str:
    """An open dialog, and how it is answered."""
    how = f"click {dialog.id}-accept or {dialog.id}-dismiss"
    if dialog.kind == "prompt":
        how = f"fill {dialog.id} with the text, or click {dialog.id}-dismiss"
    elif dialog.kind == "alert":
        how = f"click {dialog.id}-accept"
    default = "accepted" if dialog.kind == "alert" else "dismissed"
    seconds = max(0, round(dialog.deadline - now))
    said = quoted(dialog.message, _MOST_SAID)
    return f"dialog {dialog.id} {dialog.kind} {said}: {how}; {default} by itself in {seconds} s"


def chooser_line(chooser: Chooser, now: float) -> str:
    """An open file chooser, and how it is answered."""
    seconds = max(0, round(chooser.deadline - now))
    return (
        f"file chooser {chooser.id}{' for several files' if chooser.multiple else ''}: upload to elementRef "
        f"{chooser.id}, frameId {chooser.frame}, or click {chooser.id}-dismiss; lapses in {seconds} s"
    )


def download_line(download: Download, now: float) -> str:
    """A download that the page began, and how its bytes are had."""
    size = "" if download.byte_length is None else f" {download.byte_length} bytes"
    failed = f" {download.reason}" if download.reason else ""
    seconds = max(0, round(download.deadline - now))
    return (
        f"download {download.id} {quoted(download.file_name, _MOST_NAME)} {download.state}{size}{failed}: "
        f"downloadId {download.id} of lomi_browser_download; kept {seconds} s"
    )
