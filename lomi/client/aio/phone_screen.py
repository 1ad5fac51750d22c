"""What a phone shows: snapshots, names in them, pictures, logs."""

from typing import Literal, TypedDict

from lomi.client.acts import Capture
from lomi.client.aio.filming import Filming
from lomi.client.aio.looking import TIMEOUT_S, Looking, again
from lomi.client.aio.phone_life import PhoneLife
from lomi.client.names import Name, Ref, Target, View, phone_view
from lomi.contract.android import (
    AndroidLogcat,
    AndroidLogcatInput,
    AndroidNode,
    AndroidScreenshotInput,
    AndroidSnapshot,
    AndroidSnapshotInput,
)
from lomi.contract.artifact import Artifact, ArtifactFound, VideoAction

Priority = Literal["V", "D", "I", "W", "E", "F"]
_MOST_NODES = 500
_MOST_BYTES = 49_152
_LOG_PAGE = 64
_MOST_LOG = 256


class _OnPhone(TypedDict):
    workspace_id: str
    panel_id: str
    device_id: str
    generation: str


class PhoneScreen(PhoneLife, Looking[AndroidNode], Filming):
    """A phone that can be looked at."""

    def _where(self) -> _OnPhone:
        return _OnPhone(
            workspace_id=self._session.workspace_id,
            panel_id=self.panel_id,
            device_id=self.device_id,
            generation=self.generation,
        )

    async def snapshot(self, query: str | None = None) -> AndroidSnapshot:
        """The hierarchy as it is; `query` finds by text, role or id in the whole tree."""
        return await self._session.read(
            "lomi_android_snapshot",
            AndroidSnapshotInput(
                **self._where(),
                max_nodes=_MOST_NODES,
                max_bytes=_MOST_BYTES,
                form="elements",
                query=query,
            ),
            AndroidSnapshot,
        )

    async def outline(self) -> str:
        """The screen in short lines with refs, as an agent reads it."""
        given = AndroidSnapshotInput(**self._where(), form="outline")
        return (await self._session.answer("lomi_android_snapshot", given)).text

    async def _view(self) -> View[AndroidNode]:
        return phone_view(self.name, await self.snapshot())

    async def wait_for(self, target: Name, timeout_s: float = TIMEOUT_S) -> AndroidNode:
        """The first thing with that name, as soon as there is one.

        Raises:
            NameAbsentError: none appeared in time.
        """

        async def once() -> AndroidNode:
            view = await self._view()
            found = view.matches(target)
            return view.items[found[0]] if found else view.one(target)[1]

        return await again(once, timeout_s)

    async def wait_gone(self, target: Name, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until nothing has that name any more.

        Raises:
            StillThereError: something still has it.
        """

        async def once() -> None:
            view = await self._view()
            view.none(target)

        await again(once, timeout_s)

    async def _resolve(self, target: Target) -> Ref:
        return target if isinstance(target, Ref) else (await self._view()).one(target)[0]

    async def capture(self) -> Capture:
        """The whole display as PNG.

        Raises:
            ToolError: no picture can be had, such as of a secure window.
        """
        return await self._session.capture("lomi_android_screenshot", AndroidScreenshotInput(**self._where()))

    async def _video(self, action: VideoAction) -> Artifact:
        given = AndroidScreenshotInput(**self._where(), video=action)
        return (await self._session.read("lomi_android_screenshot", given, ArtifactFound)).artifact

    async def log(self, package: str, min_priority: Priority = "V") -> tuple[str, ...]:
        """Recent lines of one app's main process, at most 256; what came before or between is never known.

        Args:
            package: an app of the grant that runs.
            min_priority: `V`, `D`, `I`, `W`, `E` or `F`.
        """
        lines: list[str] = []
        cursor: str | None = None
        while len(lines) < _MOST_LOG:
            page = await self._session.read(
                "lomi_android_logcat",
                AndroidLogcatInput(
                    **self._where(),
                    package_name=package,
                    min_priority=min_priority,
                    limit=_LOG_PAGE,
                    cursor=cursor,
                ),
                AndroidLogcat,
            )
            lines.extend(page.lines)
            cursor = page.next_cursor
            if cursor is None:
                break
        return tuple(lines)
