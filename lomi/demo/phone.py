"""The phone as the agent drives it: find by what is shown, act, look again."""

import asyncio
from collections.abc import Callable, Mapping

from lomi.demo.agent import Agent
from lomi.demo.record import DemoFailedError
from lomi.demo.reply import Reply

SHOWN_S = 15.0
_AGAIN_S = 0.1
_BOOT_WAIT_MS = 15_000

Node = Mapping[str, object]


def shows(words: str) -> Callable[[Node], bool]:
    """Nodes whose text or description is exactly this."""
    return lambda node: words in (node.get("text"), node.get("description"))


def named(resource: str) -> Callable[[Node], bool]:
    """Nodes with this resource name (the part after `:id/`)."""
    return lambda node: str(node.get("resourceId", "")).rpartition("/")[2] == resource


class Phone:
    """One phone with a panel; after `start` and `claim` it has a generation and a lease."""

    def __init__(self, agent: Agent, device_id: str, panel_id: str) -> None:
        self._agent = agent
        self._device = device_id
        self._panel = panel_id
        self._generation = ""
        self._lease = ""
        self._sequence = 0

    @classmethod
    async def open(cls, agent: Agent) -> "Phone":
        """Open a panel for the first granted phone."""
        listed = await agent.read("lomi_android_list")
        rows = listed.rows("devices", "items")
        if not rows:
            raise DemoFailedError("no phone is granted")
        device_id = str(rows[0]["deviceId"])
        opened = await agent.revised("lomi_android_open", deviceId=device_id)
        return cls(agent, device_id, opened.word("result", "panelId"))

    @property
    def _target(self) -> dict[str, object]:
        return {"panelId": self._panel, "deviceId": self._device, "generation": self._generation}

    async def start(self) -> None:
        """Boot it, then claim the right to touch it."""
        booted = await self._agent.revised(
            "lomi_android_start", panelId=self._panel, deviceId=self._device, waitMs=_BOOT_WAIT_MS
        )
        self._generation = booted.word("result", "generation")
        claimed = await self._agent.revised("lomi_panel_control", **self._target, action="claim")
        self._lease = claimed.word("result", "leaseId")

    async def stop(self) -> None:
        """Give the lease back and end this generation."""
        await self._agent.revised("lomi_panel_control", **self._target, action="release")
        await self._agent.revised("lomi_android_stop", **self._target, waitMs=_BOOT_WAIT_MS)

    async def launch(self, package: str) -> Reply:
        """Launch an app by its package name."""
        return await self._agent.revised("lomi_android_launch", **self._target, packageName=package)

    async def install(self, artifact_id: str, sha256: str) -> Reply:
        """Install an imported APK by id and hash."""
        return await self._agent.keyed(
            "lomi_android_install_apk", **self._target, artifactId=artifact_id, sha256=sha256, waitMs=_BOOT_WAIT_MS
        )

    async def log(self, package: str) -> Reply:
        """Read recent lines of one app's log."""
        return await self._agent.read(
            "lomi_android_logcat", **self._target, packageName=package, minPriority="V", limit=32
        )

    async def look(self, wanted: Callable[[Node], bool], what: str) -> tuple[str, Node]:
        """Take snapshots until a node is there; the snapshot's id, and the node.

        Raises:
            DemoFailedError: it did not appear in 15 s.
        """
        try:
            async with asyncio.timeout(SHOWN_S):
                while True:
                    seen = await self._agent.read("lomi_android_snapshot", **self._target, form="elements")
                    for node in seen.rows("nodes"):
                        if wanted(node):
                            return seen.word("snapshotId"), node
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError as error:
            raise DemoFailedError(f"the phone did not show {what} within {SHOWN_S:.0f} s") from error

    async def tap(self, wanted: Callable[[Node], bool], what: str) -> Reply:
        """Look for a node and tap it."""
        snapshot_id, node = await self.look(wanted, what)
        return await self._input({"type": "tap", "at": {"snapshotId": snapshot_id, "ref": str(node["id"])}})

    async def type(self, text: str) -> Reply:
        """Type into the focused field."""
        return await self._input({"type": "text", "text": text})

    async def go(self, key: str) -> Reply:
        """Press a system button: back, home, overview, power."""
        return await self._input({"type": "navigation", "key": key})

    async def picture(self) -> bytes:
        """The whole display as PNG."""
        taken = await self._agent.read("lomi_android_screenshot", **self._target)
        if not taken.pictures:
            raise DemoFailedError("the phone's picture did not come along")
        return taken.pictures[0]

    async def _input(self, event: Mapping[str, object]) -> Reply:
        self._sequence += 1
        return await self._agent.sequenced(
            "lomi_android_input",
            **self._target,
            leaseId=self._lease,
            inputSequence=str(self._sequence),
            event=event,
        )
