"""Short names for what tests do all the time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from browser_probe import Probe

from browser import navigate
from browser.page import Page
from browser.values import Node, Snapshot

LONG_S = 10.0
"""For what must be in an answer: its usual 1.5 s pass while a busy machine has the engine wait."""


async def visit(page: Page, url: str) -> Snapshot:
    """Go there and take a snapshot."""
    await navigate.navigate(page, url)
    return await page.snapshot()


def node(snapshot: Snapshot, role: str, name: str | None = None) -> Node:
    """The one node of this role (and name)."""
    found = [n for n in snapshot.nodes if n.role == role and (name is None or n.name == name)]
    assert len(found) == 1, [(n.role, n.name) for n in snapshot.nodes]
    return found[0]


async def text(page: Page, selector: str = "#out") -> str:
    """What the page itself says, read past the library."""
    return str(await Probe(page).inner_text(selector))


class Effects:
    """An effect that remembers how often it was entered and how it ended."""

    def __init__(self) -> None:
        self.entered = 0
        self.errors: list[str] = []

    @asynccontextmanager
    async def effect(self) -> AsyncIterator[None]:
        self.entered += 1
        try:
            yield
        except BaseException as error:
            self.errors.append(type(error).__name__)
            raise
