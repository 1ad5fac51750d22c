"""Recent log lines of one package's main process: a bounded page of a snapshot that may have gaps."""

import re
from collections import OrderedDict
from dataclasses import dataclass

from devices.actor.actor import DeviceActor
from devices.actor.life import Host
from devices.faults import PackageRefused
from devices.packages import check_package

_MAX_LINES, _MAX_LINE, _MAX_TOTAL = 256, 2048, 65536
_KEPT, _KEPT_S = 8, 60.0
PRIORITIES = ("V", "D", "I", "W", "E", "F")


@dataclass(frozen=True, slots=True)
class LogPage:
    """Lines oldest first; `next_cursor` continues in the same snapshot; `truncated`: lines were cut or left out."""

    package: str
    process_id: int
    lines: tuple[str, ...]
    next_cursor: str | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    package: str
    priority: str
    process_id: int
    lines: tuple[str, ...]
    truncated: bool
    taken: float


class Logs:
    """Log pages of one phone; a snapshot is kept for a minute so that a cursor pages through one truth."""

    def __init__(self, actor: DeviceActor, host: Host) -> None:
        self._actor = actor
        self._host = host
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def page(
        self, package: str, *, priority: str, limit: int, cursor: str | None = None, generation: str | None = None
    ) -> LogPage:
        """A page of at most `limit` lines of at least `priority` (one of V D I W E F).

        Raises:
            PackageRefused: bad_name, not_installed, shared_uid, no_process, bad_priority, or bad_cursor for one that is
                not kept.
            NotRunning, ChannelLost: the device cannot be asked.
        """
        check_package(package)
        if priority not in PRIORITIES:
            raise PackageRefused("bad_priority", "one of V D I W E F")
        if cursor is None:
            key, start = self._host.world.token(), 0
            kept = await self._read(package, priority, generation)
            self._kept[key] = kept
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._actor.usable(generation)
            key, _, offset = cursor.partition(".")
            kept_before = self._kept.get(key)
            if (
                kept_before is None
                or self._host.world.monotonic() - kept_before.taken > _KEPT_S
                or not offset.isdigit()
            ):
                raise PackageRefused("bad_cursor", "this log snapshot is not kept any more")
            if (kept_before.package, kept_before.priority) != (package, priority):
                raise PackageRefused("bad_cursor", "the cursor belongs to another question")
            kept, start = kept_before, int(offset)
        end = start + limit
        more = end < len(kept.lines)
        return LogPage(
            package, kept.process_id, kept.lines[start:end], f"{key}.{end}" if more else None, kept.truncated
        )

    async def _read(self, package: str, priority: str, generation: str | None) -> _Kept:
        _, lanes = self._actor.usable(generation)
        uid_line = f"dumpsys package {package} | grep -E 'userId=|sharedUser='; echo ~~; pidof {package}"
        uids, _, pids = (await lanes.look.run(uid_line, within=8.0)).text.partition("~~\n")
        if "sharedUser=" in uids:
            raise PackageRefused("shared_uid", f"{package} shares its user id with other packages")
        if not pids.split():
            installed = await lanes.look.run(f"pm path {package}", within=8.0)
            reason = "no_process" if installed.text.startswith("package:") else "not_installed"
            raise PackageRefused(reason, f"{package} has no main process")
        process_id = int(pids.split()[0])
        line = f"logcat -d -b main -v threadtime -t 2000 --pid={process_id} '*:{priority}'"
        answer = await lanes.look.run(line, within=8.0, limit=4 << 20)
        wanted = PRIORITIES[PRIORITIES.index(priority) :]
        lines = [one for one in answer.text.splitlines() if _belongs(one, process_id, wanted)]
        kept, truncated = _bounded(lines)
        return _Kept(package, priority, process_id, kept, truncated, self._host.world.monotonic())


_THREADTIME = re.compile(r"^\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +(?P<pid>\d+) +\d+ (?P<priority>[VDIWEFA]) ")


def _belongs(line: str, process_id: int, wanted: tuple[str, ...]) -> bool:
    match = _THREADTIME.match(line)
    return match is not None and int(match["pid"]) == process_id and match["priority"] in wanted


def _bounded(lines: list[str]) -> tuple[tuple[str, ...], bool]:
    """The newest lines within every bound."""
    kept: list[str] = []
    used, truncated = 0, len(lines) > _MAX_LINES
    for line in reversed(lines[-_MAX_LINES:]):
        raw = line.encode()
        if len(raw) > _MAX_LINE:
            raw, truncated = raw[:_MAX_LINE], True
        if used + len(raw) > _MAX_TOTAL:
            truncated = True
            break
        used += len(raw)
        kept.append(raw.decode("utf-8", "ignore"))
    return tuple(reversed(kept)), truncated
