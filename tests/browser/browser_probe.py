"""The page's own script world, read and driven past the library."""

import json
import re
from typing import Any

import msgspec

from browser.page import Page
from browser.wire import send

_WAIT = """async (wanted) => {
  while (!await wanted()) await new Promise((next) => requestAnimationFrame(next));
}"""


class _Result(msgspec.Struct):
    value: Any = None


class _Answer(msgspec.Struct, rename="camel"):
    result: _Result = msgspec.field(default_factory=_Result)
    exception_details: dict[str, Any] | None = None


class Probe:
    """What a test asks of the page itself; a frame of another process by its key."""

    def __init__(self, page: Page, frame: str = "main") -> None:
        self._page = page
        self._frame = frame

    async def evaluate(self, script: str, argument: object = None) -> Any:
        """An expression, or a function called with one argument, where page script runs."""
        given = script if not _is_function(script) else f"({script})({json.dumps(argument)})"
        return await self._run(given)

    async def _run(self, expression: str) -> Any:
        frame = self._page.frames.frame_of(self._frame)
        world = self._page.frames.world(frame or "")
        session = world.session if world is not None else self._page.session
        params: dict[str, object] = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        if frame is not None and self._frame != "main" and world is not None:
            params["contextId"] = world.context_id
        raw = await send(session, "Runtime.evaluate", params, deadline_s=10)
        answer = msgspec.json.decode(raw, type=_Answer)
        assert answer.exception_details is None, answer.exception_details
        return answer.result.value

    async def until(self, function: str) -> None:
        """Wait until a function of the page says yes."""
        await self._run(f"({_WAIT})({function})")

    async def value(self, selector: str) -> str:
        """What a field holds."""
        return str(await self._run(f"document.querySelector({json.dumps(selector)}).value"))

    async def inner_text(self, selector: str) -> str:
        """What a person reads there."""
        return str(await self._run(f"document.querySelector({json.dumps(selector)}).innerText"))


def _is_function(script: str) -> bool:
    return re.match(r"\w+ =>|\([\w, \[\]]*\) =>", script) is not None
