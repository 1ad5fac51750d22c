"""Recent log lines of one package's main process: a bounded page of a snapshot that may have gaps.

Of a process that has ended by itself the log is what people want most: its last lines, and what the crash log has of
it, are given as long as its number is known and no other process has taken that.
"""

import re
from collections import OrderedDict
from dataclasses import dataclass

from devices.actor.actor import DeviceActor
from devices.actor.life import Host
from devices.adb.shell import ShellLane
from devices.app_processes import AppProcesses
from devices.faults import PackageRefused
from devices.packages import check_package
from devices.state import CRASH_LINE, crash_entry

_MAX_LINES, _MAX_LINE, _MAX_TOTAL = 256, 2048, 65536
_KEPT, _KEPT_S = 8, 60.0
PRIORITIES = ("V", "D", "I", "W", "E", "F")


@dataclass(frozen=True, slots=True)
class LogPage:
    """Lines oldest first; `next_cursor` continues in the same snapshot; `truncated`: lines were cut or left out.

    Of a process that has `ended` the crash log's lines follow the others, and the last line says so.
    """

    package: str
    process_id: int
    ended: bool
    lines: tuple[str, ...]
    next_cursor: str | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Kept:
    package: str
    priority: str
    process_id: int
    ended: bool
    lines: tuple[str, ...]
    truncated: bool
    taken: float


class Logs:
    """Log pages of one phone; a snapshot is kept for a minute so that a cursor pages through one truth."""

    def __init__(self, actor: DeviceActor, host: Host, processes: AppProcesses) -> None:
        self._actor = actor
        self._host = host
        self._processes = processes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def page(
        self, package: str, *, priority: str, limit: int, cursor: str | None = None, generation: str | None = None
    ) -> LogPage:
        """A page of at most `limit` lines of at least `priority` (one of V D I W E F).

        Raises:
            PackageRefused: bad_name, not_installed, shared_uid, bad_priority, no_process where none runs and none that
                ended by itself is known, or bad_cursor for one that is not kept.
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
            package=package,
            process_id=kept.process_id,
            ended=kept.ended,
            lines=kept.lines[start:end],
            next_cursor=f"{key}.{end}" if more else None,
            truncated=kept.truncated,
        )

    async def _read(self, package: str, priority: str, generation: str | None) -> _Kept:
        running, lanes = self._actor.usable(generation)
        about = f"dumpsys package {package} | grep -E 'userId=|sharedUser=|stopped='"
        told = f"{about}; echo ~~; pidof {package}; echo ~~; {CRASH_LINE}"
        about, _, rest = (await lanes.look.run(told, within=8.0)).text.partition("~~\n")
        pids, _, crashes = rest.partition("~~\n")
        if "sharedUser=" in about:
            raise PackageRefused("shared_uid", f"{package} shares its user id with other packages")
        life = running.identity.generation
        wanted = PRIORITIES[PRIORITIES.index(priority) :]
        last_words: list[str] = []
        if pids.split():
            process_id = int(pids.split()[0])
            self._processes.note_living(life, package, process_id, crashes)
        else:
            process_id, crash = await self._ended(lanes.look, package, life, stopped=_STOPPED.search(about) is not None)
            last_words = [one for one in crash if (match := _THREADTIME.match(one)) and match["priority"] in wanted]
            last_words = ["--------- beginning of crash", *last_words] if last_words else []
            last_words.append(f"--------- process {process_id} has ended")
        line = f"logcat -d -b main -v threadtime -t 2000 --pid={process_id} '*:{priority}'"
        answer = await lanes.look.run(line, within=8.0, limit=4 << 20)
        lines = [one for one in answer.text.splitlines() if _belongs(one, process_id, wanted)]
        kept, truncated = _bounded(lines + last_words)
        now = self._host.world.monotonic()
        return _Kept(package, priority, process_id, bool(last_words), kept, truncated, now)

    async def _ended(
        self, lane: ShellLane, package: str, generation: str, *, stopped: bool
    ) -> tuple[int, tuple[str, ...]]:
        """The process that a package had last, and what the crash log has of it.

        Raises:
            PackageRefused: not_installed; no_process where none is known, a person stopped it, or its number is taken.
        """
        if not (await lane.run(f"pm path {package}", within=8.0)).text.startswith("package:"):
            raise PackageRefused("not_installed", f"{package} is not installed")
        crashes, _, alive = (await lane.run(f"{CRASH_LINE}; echo ~~; ps -A", within=8.0)).text.partition("~~\n")
        self._processes.note_crashes(generation, package, crashes)
        process_id = self._processes.last(generation, package)
        taken = {words[1] for row in alive.splitlines() if len(words := row.split()) > 1}
        if stopped or process_id is None or str(process_id) in taken:
            raise PackageRefused("no_process", f"{package} has no main process")
        return process_id, crash_entry(crashes, process_id)


_STOPPED = re.compile(r"User 0:.*\bstopped=true\b")
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
