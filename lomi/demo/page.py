"""A page as the agent drives it: find by role and name, act, look again."""

import re
from collections.abc import Mapping

from lomi.demo.agent import Agent
from lomi.demo.record import DemoFailedError
from lomi.demo.reply import Reply

_OPEN_WAIT_MS = 15_000
_POPUP = re.compile(r"popup: panelId (\S+), browserGeneration (\S+), leaseId (\S+)")


class Page:
    """One page with its lease."""

    def __init__(self, agent: Agent, panel_id: str, generation: str, lease_id: str, navigation_id: str) -> None:
        self._agent = agent
        self.panel = panel_id
        self._generation = generation
        self._lease = lease_id
        self._navigation = navigation_id

    @classmethod
    async def open(cls, agent: Agent, url: str) -> "Page":
        """Open a page in a context of its own; its lease comes along."""
        opened = await agent.revised("lomi_browser_open", url=url, waitMs=_OPEN_WAIT_MS)
        if opened.at("result", "ready") is not True:
            raise DemoFailedError(f"the page {url} did not load: {' | '.join(opened.observed)}")
        return cls(
            agent,
            opened.word("result", "panelId"),
            opened.word("result", "browserGeneration"),
            opened.word("result", "leaseId"),
            opened.word("result", "navigationId"),
        )

    @property
    def _target(self) -> dict[str, object]:
        return {"panelId": self.panel, "browserGeneration": self._generation}

    async def snapshot(self) -> Reply:
        """What the page offers now."""
        seen = await self._agent.read("lomi_browser_snapshot", **self._target, form="elements")
        self._navigation = seen.word("navigationId")
        return seen

    async def _act(self, tool: str, role: str, name: str, **more: object) -> Reply:
        seen = await self.snapshot()
        element = _found(seen, role, name)
        return await self._agent.keyed(
            tool,
            **self._target,
            leaseId=self._lease,
            navigationId=self._navigation,
            snapshotId=seen.word("snapshotId"),
            elementRef=element["elementRef"],
            **more,
        )

    async def fill(self, role: str, name: str, text: str) -> Reply:
        """Replace a field's value, or choose an option."""
        return await self._act("lomi_browser_fill", role, name, text=text)

    async def click(self, role: str, name: str) -> Reply:
        """Click an element."""
        return await self._act("lomi_browser_click", role, name)

    async def check(self, name: str) -> Reply:
        """Set a checkbox."""
        return await self._act("lomi_browser_click", "checkbox", name, checked=True)

    async def wait_for(self, text: str) -> Reply:
        """Wait until the page shows a text.

        Raises:
            DemoFailedError: it is not there after the tool's 5 s.
        """
        waited = await self._agent.read(
            "lomi_browser_wait", **self._target, condition={"type": "text", "text": text}, form="elements"
        )
        if waited.at("matched") is not True:
            raise DemoFailedError(f"the page did not show {text!r}")
        self._navigation = waited.word("snapshot", "navigationId")
        return waited

    async def picture(self) -> bytes:
        """The viewport as PNG."""
        taken = await self._agent.read("lomi_browser_screenshot", **self._target, navigationId=self._navigation)
        if not taken.pictures:
            raise DemoFailedError("the page's picture did not come along")
        return taken.pictures[0]

    async def popup(self, clicked: Reply) -> "Page":
        """The page that a click opened: its panel, generation and lease stand in what was seen after the click."""
        for line in clicked.observed:
            named = _POPUP.fullmatch(line)
            if named is not None:
                opened = Page(self._agent, named[1], named[2], named[3], "")
                await opened.snapshot()
                await self._agent.reread()
                return opened
        raise DemoFailedError("no popup was seen after the click")

    async def close(self) -> None:
        """Close the panel; the page ends with it."""
        await self._agent.revised("lomi_panel_close", **self._target)


def _found(seen: Reply, role: str, name: str) -> Mapping[str, object]:
    for element in seen.rows("elements"):
        if (element.get("role"), element.get("name")) == (role, name):
            return element
    offered = ", ".join(f"{row.get('role')} {row.get('name')!r}" for row in seen.rows("elements"))
    raise DemoFailedError(f"the page has no {role} {name!r}; it has {offered[:400]}")
