"""What was seen after an act, with all that an agent needs to go on: popups, and what the page asks for."""

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from browser.page import Page
from browser.pending import Download
from browser.port import asking, views
from browser.port.lives import Lives
from browser.values import Observation as Seen
from lomi.contract.model import Observation, PendingObject

_MOST_PENDING = 32


def asked_lines(page: Page, downloads: Iterable[str] = ()) -> tuple[str, ...]:
    """What the page asks for now: every dialog and chooser, and of its downloads these and those that still run."""
    pending, now = page.pending, page.clock()
    return (
        *(asking.dialog_line(one, now) for one in pending.dialogs.values()),
        *(asking.chooser_line(one, now) for one in pending.choosers.values()),
        *(asking.download_line(one, now) for one in _shown_downloads(page, downloads)),
    )


def pending_objects(
    page: Page, popups: tuple[PendingObject, ...], downloads: Iterable[str] = ()
) -> tuple[PendingObject, ...]:
    """The same as `asked_lines`, and popups, as values."""
    pending, now = page.pending, page.clock()
    asked = (
        *(asking.dialog_object(one, now) for one in pending.dialogs.values()),
        *(asking.chooser_object(one, now) for one in pending.choosers.values()),
        *popups,
        *(asking.download_object(one, now) for one in _shown_downloads(page, downloads)),
    )
    return asked[:_MOST_PENDING]


def _shown_downloads(page: Page, downloads: Iterable[str]) -> list[Download]:
    named = frozenset(downloads)
    return [one for one in page.pending.downloads.values() if one.id in named or one.state == "running"]


class Seeing:
    """Observations of the library as the contract's."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def seen(self, page: Page, seen: Seen, *, released_on: str | None = None) -> Observation:
        """What was seen; a click that the page let come down elsewhere is said to be none.

        While a dialog is open it names a snapshot all the same, for the call that answers it.
        """
        told = views.observation(msgspec.structs.replace(seen, dialog=None, choosers=(), downloads=(), opened=()))
        pending = pending_objects(page, self._lives.popup_objects(page), seen.downloads)
        popups = self._lives.popup_lines(page, told=True)
        asked = asked_lines(page, seen.downloads)
        missed = (f"no click: the element moved under the press, released on {released_on}",) if released_on else ()
        snapshot = told.snapshot_id
        if snapshot is None and asked:
            snapshot = page.refs.name(observation=True)
        lines = (*missed, *popups, *asked, *told.lines)
        return msgspec.structs.replace(told, lines=lines, snapshot_id=snapshot, pending=pending)


def already(seen: Observation) -> Callable[[], Awaitable[Observation]]:
    """An observation that was taken with the act."""

    async def observe() -> Observation:
        return seen

    return observe
