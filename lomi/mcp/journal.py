"""What the pipe must remember to go on elsewhere: the opening of the session, and the requests under way."""

import json
import re

_ANSWER_ID = re.compile(rb'\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?[0-9]+)[,}]')
_MAX_READ = 256 << 10
"""Bytes of a line that the pipe looks into; a longer one is refused by the session anyway."""


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
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return
        self._note(message, line)

    def _note(self, message: dict[str, object], line: bytes) -> None:
        method = message["method"]
        if method == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, dict):
                self._under_way.pop(_key(params.get("requestId")), None)
        elif method == "notifications/initialized":
            self._initialized = line
        elif "id" in message:
            if method == "initialize":
                self._opening = message
            self._under_way[_key(message["id"])] = line

    def incoming(self, line: bytes | bytearray | memoryview) -> None:
        """Note a line of the session: the request that it answers is no longer under way."""
        found = _ANSWER_ID.match(line)
        if found is not None:
            self._under_way.pop(_key(json.loads(found[1])), None)

    def under_way(self) -> list[bytes]:
        """The lines of the requests without an answer, in order."""
        return list(self._under_way.values())

    def opening(self, replay_id: str) -> list[bytes]:
        """What brings another session into the state of this one; its answer to `replay_id` is not the client's.

        Empty in the era without a handshake, and while the handshake itself is under way.
        """
        if self._opening is None or _key(self._opening["id"]) in self._under_way:
            return []
        lines = [json.dumps({**self._opening, "id": replay_id}).encode()]
        if self._initialized is not None:
            lines.append(self._initialized)
        return lines


def answers(line: bytes | bytearray | memoryview, request_id: str) -> bool:
    """Whether `line` is the answer to the request `request_id`."""
    found = _ANSWER_ID.match(line)
    return found is not None and found[1] == json.dumps(request_id).encode()


def _key(request_id: object) -> str:
    """An id as sessions compare it: "7" and 7 are one."""
    return str(request_id)
