"""Looking at a device: bounded dumps with retries, settling, and what appeared since the last look."""

import asyncio
from dataclasses import dataclass

from devices import focus, state
from devices.adb.shell import Answer, ShellLane
from devices.faults import TreeUnavailable
from devices.focus import Focus
from devices.hierarchy.diff import Diff
from devices.hierarchy.snapshots import Snapshot
from devices.hierarchy.tree import Tree, read_dump
from devices.state import Crash

_SPLIT = "~~"
_DUMP_LIMIT = 4 << 20
_IN_LOOP = 16384
_TTY = "uiautomator dump /dev/tty"
_FILE = "/data/local/tmp/lomi_window.xml"
_FRAMES = f"{state.FRAMES[0]} | grep -E '{state.FRAMES[1]}'"
_FRAMES_AND_FOCUS = f"{{ {state.FRAMES[0]}; {focus.FOCUS[0]}; }} | grep -E '{state.FRAMES[1]}|{focus.FOCUS[1]}'"
_BY_FILE = f"uiautomator dump {_FILE} && cat {_FILE}; rm -f {_FILE}"


@dataclass(frozen=True, slots=True)
class Seen:
    """One raw look: the tree or why there is none, the focused window, and the crash log entries.

    `frames` is how many frames the device had shown when it drew none while the tree was read and no view waited for
    one; None when it drew, or does not say. As long as that number stays, the screen is what was seen.
    """

    tree: Tree | None
    fault: TreeUnavailable | None
    focus: Focus
    crashes: tuple[Crash, ...]
    frames: int | None


@dataclass(frozen=True, slots=True)
class Observation:
    """What was seen after an action; it proves nothing about the action itself.

    `snapshot` is None when no hierarchy could be read, and `reason` says why: that is not an empty screen. `settled` is
    False when the screen still changed at the end of the time given. `crashes` are those that were not there before.
    """

    snapshot: Snapshot | None
    diff: Diff | None
    settled: bool
    focus: Focus
    crashes: tuple[Crash, ...]
    display_off: bool
    reason: str | None
    took_s: float

    @property
    def text(self) -> str:
        """A few lines for a reader: trouble first, then the diff."""
        lines = []
        if self.display_off:
            lines.append("display: off")
        lines += [f"{crash.kind} crash: {crash.package}: {crash.headline}" for crash in self.crashes]
        if self.focus.is_system_dialog:
            lines.append(f"system dialog: {self.focus.kind} {self.focus.package}")
        if self.diff is None:
            lines.append(f"no observation: {self.reason}")
        else:
            if self.diff.replaced:
                lines.append(f"screen: {self.focus.label}")
            lines.append(self.diff.text)
        if not self.settled:
            lines.append("settled: false")
        return "\n".join(lines)


class Looker:
    """Reads hierarchy, focus and crash log of one device over its looking lane, in one shell call."""

    def __init__(self) -> None:
        self._dump = _TTY
        self._read_last: tuple[bytes, Tree] | None = None

    async def look(self, lane: ShellLane, *, within: float) -> Seen:
        """One look.

        Raises:
            ChannelLost: the device did not answer.
        """
        line = f"; echo {_SPLIT}; ".join((_FRAMES, self._dump, _FRAMES_AND_FOCUS, state.CRASH_LINE))
        answer = await lane.run(line, within=within, limit=_DUMP_LIMIT)
        before, dump, *rest = [*answer.out.split(f"{_SPLIT}\n".encode()), b""]
        texts = [part.decode("utf-8", "replace") for part in rest] + [""] * 2
        shown = state.frames_when_idle(before.decode("utf-8", "replace"))
        frames = shown if shown == state.frames_when_idle(texts[0]) else None
        told = Answer(dump, answer.err, answer.code)
        tree, fault = await self._read(told)
        if fault is not None and b"<hierarchy" not in dump and self._dump == _TTY:
            by_file = await lane.run(_BY_FILE, within=within, limit=_DUMP_LIMIT)
            tree, retried = _read(by_file)
            if tree is not None:
                self._dump, fault = _BY_FILE, None
            else:
                fault = retried
        return Seen(tree, fault, focus.parse(texts[0]), state.crashes_in(texts[1]), frames)

    async def _read(self, told: Answer) -> tuple[Tree | None, TreeUnavailable | None]:
        """Read a dump; one that is the last one again, byte for byte, is the same tree."""
        if self._read_last is not None and self._read_last[0] == told.out:
            return self._read_last[1], None
        tree, fault = await asyncio.to_thread(_read, told) if len(told.out) > _IN_LOOP else _read(told)
        if tree is not None:
            self._read_last = told.out, tree
        return tree, fault


def _read(answer: Answer) -> tuple[Tree | None, TreeUnavailable | None]:
    try:
        return read_dump(answer.out), None
    except TreeUnavailable as fault:
        if fault.reason == "tree_unavailable" and b"idle state" in answer.err:
            return None, TreeUnavailable("tree_not_idle", "the screen never became idle", evidence=answer.words[:400])
        return None, fault


async def frames(lane: ShellLane, *, within: float) -> int | None:
    """How many frames the device has shown, None while it draws or when it does not say.

    Raises:
        ChannelLost: the device did not answer.
    """
    return state.frames_when_idle((await lane.run(_FRAMES, within=within)).text)


async def display_is_off(lane: ShellLane, *, within: float) -> bool:
    """Whether the display is known to be off.

    Raises:
        ChannelLost: the device did not answer.
    """
    return state.display_is_off((await lane.run(state.POWER_LINE, within=within)).text) is True


async def rotation(lane: ShellLane, *, within: float) -> int:
    """Quarter turns the display is shown with now.

    Raises:
        ChannelLost: the device did not answer.
    """
    return state.rotation_of((await lane.run(state.ROTATION_LINE, within=within)).text)
