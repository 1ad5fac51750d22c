"""What the pipe must remember to go on elsewhere: the opening of the session, and the requests under way."""

import json
import re
from contextlib import suppress

import msgspec

_ANSWER_ID = re.compile(rb'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[0-9]+)[,}]')
_REPLAY_ID = "lomi-replayed-opening"
_REPLAY_KEY = json.dumps(_REPLAY_ID).encode()
_MAX_READ = 256 << 10
"""Bytes of a line that the pipe looks into; a longer one is refused by the session anyway."""

_MOST_UNDER_WAY = 2048
"""Twice what a session takes: of a line that it refuses without a name for it no answer ever takes it out."""


class _Cancelled(msgspec.Struct):
    request_id: int | str | None = msgspec.field(name="requestId", default=None)


class _Message(msgspec.Struct):
    method: str
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")


_message = msgspec.json.Decoder(_Message)


class Journal:
    """Reads along with both directions of the pipe. Lines it can't read are the session's to refuse."""

    def __init__(self) -> None:
        self._under_way: dict[str, bytes] = {}
        self._opening: dict[str, object] | None = None
        self._initialized: bytes | None = None

    def outgoing(self, line: bytes) -> None:
        """Note a line of the client."""
        if len(line) > _MAX_READ:
            return
        try:
            message = _message.decode(line)
            opening = json.loads(line) if message.method == "initialize" else None
        except (ValueError, RecursionError):
            return
        if message.method == "notifications/cancelled":
            self._under_way.pop(_key(_cancelled(message.params)), None)
        elif message.method == "notifications/initialized":
            self._initialized = line
        elif message.id is not None:
            if opening is not None:
                self._opening = opening
            if len(self._under_way) < _MOST_UNDER_WAY:
                self._under_way[_key(message.id)] = line

    def incoming(self, line: bytes | bytearray | memoryview) -> bool:
        """Note a line of the session: the request that it answers is no longer under way.

        Whether it is the client's: it is not where it answers an opening that was repeated.
        """
        found = _ANSWER_ID.match(line)
        if found is None:
            return True
        if found[1] == _REPLAY_KEY:
            return False
        with suppress(ValueError):  # no id that was ever noted
            self._under_way.pop(_key(json.loads(found[1])), None)
        return True

    def under_way(self) -> list[bytes]:
        """The lines of the requests without an answer, in order."""
        return list(self._under_way.values())

    def opening(self) -> list[bytes]:
        """What brings another session into the state of this one; the answer to it is not the client's.

        Empty in the era without a handshake, and while the handshake itself is under way.
        """
        if self._opening is None or _key(self._opening["id"]) in self._under_way:
            return []
        lines = [json.dumps({**self._opening, "id": _REPLAY_ID}).encode()]
        if self._initialized is not None:
            lines.append(self._initialized)
        return lines


def _cancelled(params: msgspec.Raw) -> int | str | None:
    try:
        return msgspec.json.decode(params, type=_Cancelled).request_id
    except (msgspec.DecodeError, RecursionError):
        return None


def _key(request_id: object) -> str:
    """An id as sessions compare it: "7" and 7 are one."""
    return str(request_id)
