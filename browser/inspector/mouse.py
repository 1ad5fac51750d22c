"""A drag with the trusted mouse: the page's own drag and drop where it begins one, plain movement where not."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from browser.inspector.connection import Session, decoded

_DRAG_S = 2.0


class _Intercepted(msgspec.Struct):
    data: dict[str, object]


class Drag:
    """One press of the left button, from `down` to `up`.

    Headless, the engine can't run its own drag loop: it hands the dragged data to us, and we carry it.

    Args:
        arm: make the page's documents watch whether the next movement begins a drag.
        begun: whether it did, and the page did not decline.
    """

    def __init__(
        self, session: Session, arm: Callable[[], Awaitable[None]], begun: Callable[[], Awaitable[bool]]
    ) -> None:
        self._session = session
        self._arm = arm
        self._begun = begun
        self._carried: dict[str, object] | None = None
        self._arrived: asyncio.Future[dict[str, object]] = asyncio.get_running_loop().create_future()
        self._off = session.on("Input.dragIntercepted", self._intercepted)

    def _intercepted(self, raw: msgspec.Raw) -> None:
        if not self._arrived.done():
            self._arrived.set_result(decoded(raw, _Intercepted).data)

    async def _mouse(self, kind: str, x: float, y: float, *, held: bool = True) -> None:
        pressed = {"button": "left", "buttons": 1 if held else 0} if kind != "mouseMoved" or held else {}
        clicks = 0 if kind == "mouseMoved" else 1
        params = {"type": kind, "x": x, "y": y, "clickCount": clicks, "force": 0.5 if held else 0, **pressed}
        await self._session.call("Input.dispatchMouseEvent", params)

    async def _drag(self, kind: str, x: float, y: float) -> None:
        await self._session.call("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": self._carried})

    async def down(self, x: float, y: float) -> None:
        """Go there and press. Raises as `Session.call`."""
        await self._mouse("mouseMoved", x, y, held=False)
        await self._mouse("mousePressed", x, y)

    async def move(self, x: float, y: float) -> None:
        """Go on with the button held. Raises as `Session.call`."""
        if self._carried is not None:
            await self._drag("dragOver", x, y)
            return
        await self._arm()
        await self._session.call("Input.setInterceptDrags", {"enabled": True})
        try:
            await self._mouse("mouseMoved", x, y)
            if await self._begun():
                async with asyncio.timeout(_DRAG_S):
                    self._carried = await asyncio.shield(self._arrived)
        except TimeoutError:
            pass  # it ended by itself; the rest is plain movement
        finally:
            await self._session.call("Input.setInterceptDrags", {"enabled": False})
        if self._carried is not None:
            await self._drag("dragEnter", x, y)

    async def up(self, x: float, y: float) -> None:
        """Let go: a drop, where something is carried. Raises as `Session.call`."""
        self._off()
        if self._carried is not None:
            await self._drag("drop", x, y)
        else:
            await self._mouse("mouseReleased", x, y, held=False)
