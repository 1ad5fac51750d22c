"""What was seen after an act, with all that an agent needs to go on: popups, and what the page asks for."""

from collections.abc import Awaitable, Callable, Iterable

import msgspec

from browser.page import Page
from browser.port import asking, views
from browser.port.lives import Lives
from browser.values import Observation as Seen
from lomi.contract.model import Observation


def asked_lines(page: Page, downloads: Iterable[str] = ()) -> tuple[str, ...]:
    """What the page asks for now: every dialog and chooser, and of its downloads these and those that still run."""
    pending, now = page.pending, page.clock()
    named = frozenset(downloads)
    kept = [one for one in pending.downloads.values() if one.id in named or one.state == "running"]
    return (
        *(asking.dialog_line(one, now) for one in pending.dialogs.values()),
        *(asking.chooser_line(one, now) for one in pending.choosers.values()),
        *(asking.download_line(one, now) for one in kept),
    )


class Seeing:
    """Observations of the library as the contract's."""

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def seen(self, page: Page, seen: Seen, *, released_on: str | None = None) -> Observation:
        """What was seen; a click that the page let come down elsewhere is said to be none.

        While a dialog is open it names a snapshot all the same, for the call that answers it.
        """
        told = views.observation(msgspec.structs.replace(seen, dialog=None, choosers=(), downloads=(), opened=()))
        popups = self._lives.popup_lines(page, told=True)
        asked = asked_lines(page, seen.downloads)
        missed = (f"no click: the element moved under the press, released on {released_on}",) if released_on else ()
        snapshot = told.snapshot_id
        if snapshot is None and asked:
            snapshot = page.refs.name(observation=True)
        return msgspec.structs.replace(told, lines=(*missed, *popups, *asked, *told.lines), snapshot_id=snapshot)


def already(seen: Observation) -> Callable[[], Awaitable[Observation]]:
    """An observation that was taken with the act."""

    async def observe() -> Observation:
        return seen

    return observe
