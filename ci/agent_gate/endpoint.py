"""The endpoint of a model: one request at a time, again after a pause where the server says that it is busy."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable

import httpx2

from agent_gate.talk import Ask, BadAnswerError, Dialect, Turn

BUSY = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
TRIES = 6
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
ANSWER_S = 300.0
MOST_ANSWER = 32 << 20
"""Bytes of an answer, unpacked; a model's turn is a small part of it."""


class EndpointError(Exception):
    """Raised when an endpoint gives no usable answer.

    `fatal` where it would refuse every other task as well; `silent` where it did not answer at any try.
    """

    def __init__(self, text: str, *, fatal: bool = False, silent: bool = False) -> None:
        super().__init__(text)
        self.fatal = fatal
        self.silent = silent


def without_key(text: str, key: str) -> str:
    """A text without the key, however JSON or Python may have written it there."""
    written = {json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1], repr(key)[1:-1], key}
    for one in sorted(written | {one.replace("/", "\\/") for one in written}, key=len, reverse=True):
        text = text.replace(one, "[key]") if key else text
    return text


class Endpoint:
    """A model behind a URL. `retries` counts the requests that had to be sent again."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        base_url: str,
        dialect: Dialect,
        key: str,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._url = base_url.rstrip("/") + dialect.path
        self._dialect = dialect
        self._key = key
        self._sleep = sleep
        self.retries = 0

    async def ask(self, ask: Ask) -> Turn:
        """Send a request until it is answered.

        Raises:
            EndpointError: it was refused, or busy at every try.
            BadAnswerError: the answer is not in the API's form, or longer than any.
        """
        content = json.dumps(self._dialect.body(ask), ensure_ascii=False).encode()
        problem = ""
        for number in range(TRIES):
            if number:
                self.retries += 1
            try:
                answer, body = await self._sent(content)
            except (httpx2.TransportError, httpx2.DecodingError) as error:
                problem, wait = without_key(f"{type(error).__name__}: {error}", self._key), None
            else:
                if answer.status_code == httpx2.codes.OK:
                    return self._dialect.turn(body)
                said = without_key(body.decode("utf-8", "replace"), self._key)[:400]
                problem = f"status {answer.status_code}: {said}"
                if answer.status_code not in BUSY:
                    raise EndpointError(problem, fatal=answer.status_code in (401, 403, 404))
                wait = _seconds(answer.headers.get("retry-after"))
            if number + 1 < TRIES:
                await self._sleep(_pause(number, wait))
        raise EndpointError(f"no answer in {TRIES} tries; the last: {problem}", silent=True)

    async def _sent(self, content: bytes) -> tuple[httpx2.Response, bytes]:
        headers = {"Content-Type": "application/json", **self._dialect.headers(self._key)}
        body = bytearray()
        async with self._client.stream("POST", self._url, content=content, headers=headers, timeout=ANSWER_S) as answer:
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MOST_ANSWER:
                    raise BadAnswerError(f"an answer of more than {MOST_ANSWER} bytes")
        return answer, bytes(body)


def _seconds(header: str | None) -> float | None:
    try:
        return float(header) if header is not None else None
    except ValueError:
        return None


def _pause(number: int, wait: float | None) -> float:
    """What the server asks for, else twice as long each time, with some chance in it; bounded."""
    if wait is not None:
        return max(0.0, min(wait, LONGEST_PAUSE_S))
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**number) * random.uniform(0.5, 1.0)
