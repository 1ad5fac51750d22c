"""Our script in the isolated world of every document.

Checks, walks and watches with the engine's own, unforgeable prototypes.
"""

import asyncio
from pathlib import Path
from typing import TypeVar, cast

import msgspec

from browser.errors import WorldFaultError
from browser.inspector.connection import Session
from browser.wire import DOM_DEADLINE_S, Returned, ask

T = TypeVar("T")

WORLD_NAME = "lomi"
_PARTS = ("tree", "names", "walk", "settle", "act", "drag", "fetch", "exports")


def _source() -> str:
    parts = "\n".join((Path(__file__).parent / f"{part}.js").read_text(encoding="utf-8") for part in _PARTS)
    return f"globalThis.lomi = (() => {{ 'use strict';\n{parts}\n}})();"


SOURCE = _source()

_BY_TEXT = "function (...given) { return lomi.inText(lomi.%s(...given)); }"
_FOR_NOTHING = "function (...given) { lomi.%s(...given); }"
_BY_OBJECT = "function (...given) { return lomi.%s(...given); }"


class World:
    """One document's isolated world. It dies with the document; `unique` tells two documents of one frame apart."""

    def __init__(self, session: Session, context_id: int, unique: str, frame_id: str) -> None:
        self.session = session
        self.context_id = context_id
        self.unique = unique
        self.frame_id = frame_id
        self.gone = asyncio.Event()

    async def call(self, function: str, *arguments: object, shape: type[T], deadline_s: float = DOM_DEADLINE_S) -> T:
        """Call one function of our script with plain values; the answer is decoded into `shape`.

        Raises:
            ContextGoneError: the document is gone.
            PageEndedError: the page is gone.
            UnresponsiveError: the page did not answer.
            WorldFaultError: our script failed.
        """
        given: list[dict[str, object]] = [{"value": value} for value in arguments]
        answer = await self._apply(_BY_TEXT % function, given, by_value=True, deadline_s=deadline_s)
        try:
            # As one string: the protocol and its driver walk an object's every value several times over.
            return msgspec.json.decode(cast("str", answer.result.value), type=shape, strict=False)
        except (msgspec.DecodeError, TypeError) as error:
            raise WorldFaultError("world_fault", said=str(error)[:300]) from error

    async def run(self, function: str, *arguments: object) -> None:
        """Call one function of our script for what it does. Raises as `call`."""
        given: list[dict[str, object]] = [{"value": value} for value in arguments]
        await self._apply(_FOR_NOTHING % function, given, by_value=True, deadline_s=DOM_DEADLINE_S)

    async def handle(self, function: str, *object_ids: str, by_value: bool = False) -> str | None:
        """Call one function with page objects; the id of the object it returns. Raises as `call`."""
        given: list[dict[str, object]] = [{"objectId": object_id} for object_id in object_ids]
        answer = await self._apply(_BY_OBJECT % function, given, by_value=by_value, deadline_s=DOM_DEADLINE_S)
        return answer.result.object_id

    async def node(self, number: int) -> str | None:
        """The object id of the node behind a ref's number. Raises as `call`."""
        return await self.held("nodeOf", number)

    async def held(self, function: str, number: int) -> str | None:
        """The id of the object that one function gives for a number. Raises as `call`."""
        given: list[dict[str, object]] = [{"value": number}]
        answer = await self._apply(_BY_OBJECT % function, given, by_value=False, deadline_s=DOM_DEADLINE_S)
        return answer.result.object_id

    async def _apply(
        self, declaration: str, arguments: list[dict[str, object]], *, by_value: bool, deadline_s: float
    ) -> Returned:
        params = {
            "functionDeclaration": declaration,
            "executionContextId": self.context_id,
            "arguments": arguments,
            "returnByValue": by_value,
            "awaitPromise": True,
            "objectGroup": WORLD_NAME,
        }
        answer = await ask(self.session, "Runtime.callFunctionOn", params, Returned, deadline_s=deadline_s)
        if answer.exception_details is not None:
            thrown = answer.exception_details.exception
            said = (thrown.description if thrown else None) or answer.exception_details.text
            raise WorldFaultError("world_fault", said=said[:300])
        return answer
