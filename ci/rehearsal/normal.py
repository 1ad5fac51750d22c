"""Makes two runs comparable: what differs by nature gets a symbol, and the same thing always the same symbol."""

import re
from collections.abc import Callable

ID_KEYS = {
    "artifactId": "artifact",
    "beforeTabId": "tab",
    "browserGeneration": "generation",
    "cursor": "cursor",
    "deviceId": "device",
    "generation": "generation",
    "instanceId": "instance",
    "leaseId": "lease",
    "nextCursor": "cursor",
    "operationId": "operation",
    "operation_id": "operation",
    "pairingRequestId": "pairing",
    "panelId": "panel",
    "pid": "pid",
    "port": "port",
    "processId": "pid",
    "projectId": "project",
    "retryEpoch": "epoch",
    "session": "session",
    "sessionId": "session",
    "sha256": "hash",
    "snapshotId": "snapshot",
    "tabId": "tab",
    "workspaceId": "workspace",
}
"""Fields whose value names one thing, with the word for its kind."""
TIME_KEYS = re.compile(r"(Millis|At|_at|Seconds|_s)$|^(uptime|since|age)")
IN_TEXT = re.compile(
    r"(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<hash>\b[0-9a-f]{64}\b)|(?P<hex>\b[0-9a-f]{32,63}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?)"
    r"|(?P<port>(?<=127\.0\.0\.1:)\d{2,5}\b|(?<=emulator-)\d{4,5}\b)"
    r"|(?P<pid>(?<=\bpid )\d+\b)"
)
LONG = 16
"""From this length on a value names one thing whatever the field is called; shorter ones are told apart by kind."""
SEEN_KEYS = ("nodes", "lines", "limitations", "text", "display", "hardwareDisplay")
"""Fields that show a device's screen and log: a real image's are left out."""


class Symbols:
    """The symbols of one run of one scenario, numbered in the order in which things are first seen."""

    def __init__(self, root: str, *, simulated: bool) -> None:
        self._root = root
        self._simulated = simulated
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def of(self, kind: str, value: str) -> str:
        """The symbol of a thing."""
        key = ("", value) if len(value) >= LONG else (kind, value)
        if key not in self._given:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._given[key] = f"<{kind} {self._counts[kind]}>"
        return self._given[key]

    def normal(self, value: object, *, key: str = "", exact: Callable[[str], bool] = lambda _: False) -> object:
        """A value with symbols for what differs by nature; dotted paths that are `exact` stay as they are."""
        return self._walk(value, key, key, exact)

    def _walk(self, value: object, key: str, path: str, exact: Callable[[str], bool]) -> object:
        if exact(path):
            return value
        if isinstance(value, dict):
            return {
                name: self._walk(item, name, f"{path}.{name}" if path else name, exact) for name, item in value.items()
            }
        if isinstance(value, list):
            if key in SEEN_KEYS and not self._simulated:
                return "<of the image>"
            return [self._walk(item, key, f"{path}.{number}", exact) for number, item in enumerate(value)]
        if value is None or isinstance(value, bool) or value == "":
            return value
        if key in ID_KEYS:
            return self.of(ID_KEYS[key], str(value))
        if TIME_KEYS.search(key):
            return "<time>"
        if isinstance(value, str):
            return "<of the image>" if key in SEEN_KEYS and not self._simulated else self._text(value)
        return value

    def _text(self, text: str) -> str:
        def symbol(match: re.Match[str]) -> str:
            kind = match.lastgroup or ""
            if kind == "time":
                return "<time>"
            return self.of({"uuid": "id", "hex": "id"}.get(kind, kind), match[0])

        return IN_TEXT.sub(symbol, text.replace(self._root, "<home>"))
