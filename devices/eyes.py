"""The looking half of a phone: snapshots, settled observations, verified targets, pictures."""

import asyncio
import itertools
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from devices import observing, readback, state
from devices.actor.actor import DeviceActor
from devices.actor.life import Host, Lanes
from devices.adb.shell import ShellLane
from devices.app_processes import AppProcesses
from devices.capture import Capture, Picture, bounded, check_png, grab
from devices.faults import CaptureFailed, ChannelLost, TargetRefused, TreeUnavailable
from devices.geometry import Screen
from devices.hierarchy import diff
from devices.hierarchy.snapshots import Snapshot, SnapshotBook, locate
from devices.hierarchy.targets import point_on
from devices.observing import Looker, Observation, Seen
from devices.spec import Running
from devices.state import Crash

_T = TypeVar("_T")
_SETTLE_MIN_S = 0.12
_TYPED_S, _TYPED_AGAIN_S = 0.5, 0.1
_FRAME_S = 0.016
"""Two looks that begin this far apart have a frame between them."""
_SLOW_LOOK_S = 0.1
"""A dump that took this long has itself waited for the screen to be idle."""


@dataclass(frozen=True, slots=True)
class Target:
    """A point of the rotated display that was verified, and the ref that stood for it."""

    x: int
    y: int
    screen: Screen


class Eyes:
    """Reads one phone. Everything here may be retried: nothing is dispatched."""

    def __init__(self, actor: DeviceActor, host: Host, processes: AppProcesses) -> None:
        self._actor = actor
        self._host = host
        self._ids = itertools.count(1)
        self._book = SnapshotBook("", self._ids)
        self._looker = Looker()
        self._processes = processes
        self._crashes: frozenset[Crash] = frozenset()
        self._acted_at = 0.0

    def acted(self) -> None:
        """Something was dispatched: what was seen before no longer vouches for anything."""
        self._acted_at = self._host.world.monotonic()

    def kept(self, snapshot_id: str) -> Snapshot:
        """A snapshot that is still kept.

        Raises:
            TargetRefused: reason unknown_snapshot.
        """
        return self._book.get(snapshot_id)

    @property
    def newest(self) -> Snapshot | None:
        """The latest snapshot of the running generation, None before the first."""
        running = self._actor.running
        if running is None or running.identity.generation != self._book.generation:
            return None
        return self._book.newest

    async def snapshot(self, *, generation: str | None = None, within: float = 12.0, shown: bool = True) -> Snapshot:
        """A fresh look at the hierarchy; a failed one is retried once. Refs of one that is not `shown` cannot be used.

        Raises:
            NotRunning: the device does not run that generation.
            TreeUnavailable: no hierarchy could be read; that is not an empty screen.
            ChannelLost: the device did not answer.
        """
        running, lanes = self._actor.usable(generation)
        fault: TreeUnavailable | None = None
        try:
            async with asyncio.timeout(within):
                for _ in range(2):
                    seen = await self._look(running, lanes, within)
                    if seen.tree is not None:
                        return self._keep(running, seen, settled=True, shown=shown)
                    fault = seen.fault
                    if fault is not None and fault.reason == "tree_hostile":
                        break
        except TimeoutError:
            raise fault or TreeUnavailable("tree_unavailable", "the hierarchy took too long") from None
        assert fault is not None
        raise fault

    async def observe(
        self, before: Snapshot | None, *, generation: str | None = None, within: float = 1.5
    ) -> Observation:
        """Look until the screen has settled, at most `within` seconds and one look more; never raises for a bad tree.

        Settled is a screen that two looks a frame apart show alike, or of which the device itself says so: its dump
        waited until nothing moved, or its compositor showed no frame during the look and no view waits for another.

        Raises:
            NotRunning: the device does not run that generation.
            ChannelLost: the device did not answer.
        """
        running, lanes = self._actor.usable(generation)
        world = self._host.world
        start = world.monotonic()
        known = self._crashes
        last: Seen | None = None
        settled = False
        while True:
            began = world.monotonic()
            seen = await self._look(running, lanes, 12.0)
            now = world.monotonic()
            changed = before is None or seen.tree is None or not diff.same_picture(before.tree, seen.tree)
            repeated = (
                last is not None
                and last.tree is not None
                and seen.tree is not None
                and diff.same_picture(last.tree, seen.tree)
            )
            slow = now - began >= _SLOW_LOOK_S
            last = seen
            still = seen.tree is not None and (repeated or slow or seen.frames is not None)
            if still and (changed or now - start >= _SETTLE_MIN_S):
                settled = True
                break
            if now - start >= within:
                break
            # The first look counts from the act: what that set off shows with the next frame.
            frame = min(began, self._acted_at or began) if began - start < _FRAME_S else began
            await world.sleep(max(0.0, frame + _FRAME_S - now))
        dark = (last.tree is None or not changed) and await observing.display_is_off(lanes.look, within=5.0)
        snapshot = None if last.tree is None else self._keep(running, last, settled=settled)
        self._crashes = known | frozenset(last.crashes)
        return Observation(
            snapshot=snapshot,
            diff=None if snapshot is None else diff.between(before, snapshot),
            settled=settled,
            focus=last.focus,
            crashes=tuple(crash for crash in last.crashes if crash not in known),
            display_off=dark,
            reason=None if last.fault is None else last.fault.reason,
            took_s=world.monotonic() - start,
        )

    async def _look(self, running: Running, lanes: Lanes, within: float) -> Seen:
        """One look; whoever crashed is noted with its process, whose log is asked for next."""
        seen = await self._looker.look(lanes.look, within=within)
        for crash in seen.crashes:
            if crash.pid:
                self._processes.note(running.identity.generation, crash.package, crash.pid)
        return seen

    async def present(self, *, generation: str | None = None, within: float = 12.0) -> Snapshot:
        """What is there now.

        The newest look is as good as a new one while the device has shown no frame since and nothing was dispatched;
        otherwise the hierarchy is read again.

        Raises:
            NotRunning, TreeUnavailable, ChannelLost: as for `snapshot`.
        """
        _, lanes = self._actor.usable(generation)
        now = self.newest
        if now is None or not await self._vouches(now, lanes.look):
            now = await self.snapshot(generation=generation, within=within, shown=False)
        return now

    async def typed(
        self, before: Snapshot, words: str, *, generation: str | None = None, within: float
    ) -> readback.Verdict:
        """What became of words that were typed after `before`; an app that is slow to show them gets a moment.

        Raises:
            NotRunning, TreeUnavailable, ChannelLost: as for `snapshot`.
        """
        world = self._host.world
        end = world.monotonic() + _TYPED_S
        while True:
            began = world.monotonic()
            after = await self.snapshot(generation=generation, within=within, shown=False)
            verdict = readback.judged(before, after, words)
            if verdict == "held" or world.monotonic() >= end:
                return verdict
            await world.sleep(max(0.0, began + _TYPED_AGAIN_S - world.monotonic()))

    async def target(self, snapshot_id: str, ref: int, *, generation: str | None = None) -> Target:
        """Where the node of a ref is now.

        Raises:
            TargetRefused: unknown_snapshot, unknown_ref, stale_ref, offscreen or covered; nothing was sent.
            TreeUnavailable: the present hierarchy could not be read.
        """
        self._actor.usable(generation)
        past = self._book.get(snapshot_id)
        if past.generation != self._book.generation:
            raise TargetRefused("stale_ref", "the snapshot is of an earlier generation")
        now = await self.present(generation=generation)
        index = locate(past, ref, now)
        x, y = point_on(now.tree, index, now.screen)
        return Target(x, y, now.screen)

    async def screen(self, lane: ShellLane) -> Screen:
        """The display as it is shown now.

        Raises:
            ChannelLost: the device did not answer.
        """
        return Screen(self._actor.spec.display, await observing.rotation(lane, within=5.0))

    async def capture(
        self, *, max_edge: int = 1280, max_bytes: int = 1 << 20, generation: str | None = None, within: float = 5.0
    ) -> Capture:
        """A checked picture of the screen; a broken one is taken again once.

        Raises:
            CaptureFailed: see its reasons; no picture is made up.
            ChannelLost: the device did not answer.
        """
        _, lanes = self._actor.usable(generation)
        for last in (False, True):
            async with asyncio.TaskGroup() as group:
                turned = group.create_task(_or_fault(observing.rotation(lanes.look, within=within)))
                taken = group.create_task(_or_fault(self._grab(lanes, within)))
            raw, rotation = _value(taken.result()), _value(turned.result())
            try:
                picture = check_png(raw)
                screen = self._fitting(rotation, picture)
                result = await bounded(picture, screen, max_edge=max_edge, max_bytes=max_bytes)
            except CaptureFailed as fault:
                if last or fault.reason not in {"capture_invalid", "capture_truncated"}:
                    raise
            else:
                if result.uniform:
                    await self._explain(lanes.look)
                return result
        raise AssertionError("the second try returns or raises")

    async def _grab(self, lanes: Lanes, within: float) -> bytes:
        """The picture over the emulator's own channel, or over adb where there is none or it fails."""
        if lanes.engine is not None:
            try:
                taken = (await lanes.engine.picture()).data
            except ChannelLost:
                taken = b""
            if taken:  # it sends none of a display that is off, and adb tells why
                return taken
        return await grab(lanes.film, within=within)

    def _fitting(self, rotation: int, picture: Picture) -> Screen:
        """The screen a picture shows: when the display turned while it was taken, the picture's shape decides."""
        screen = Screen(self._actor.spec.display, rotation)
        wide, tall = screen.size
        if (wide > tall) != (picture.width > picture.height) and picture.width != picture.height:
            return Screen(self._actor.spec.display, (rotation + 1) % 4)
        return screen

    async def _explain(self, lane: ShellLane) -> None:
        """Say why a picture is uniform where the device tells.

        Raises:
            CaptureFailed: display_off, renderer_disabled or capture_secure.
        """
        parts = (state.POWER_LINE, state.DRAWING_LINE, state.SECURE_LINE)
        answer = await lane.run("; echo ~~; ".join(parts), within=5.0)
        power, drawing, windows = [*answer.text.split("~~\n"), "", ""][:3]
        if state.display_is_off(power):
            raise CaptureFailed("display_off", "the display is off")
        if drawing.strip() in {"0", "false"}:
            raise CaptureFailed("renderer_disabled", "this image draws nothing")
        if state.is_secure(windows):
            raise CaptureFailed("capture_secure", "the focused window forbids capture")

    async def _vouches(self, snapshot: Snapshot, lane: ShellLane) -> bool:
        if snapshot.frames is None or snapshot.at <= self._acted_at:
            return False
        return snapshot.frames == await observing.frames(lane, within=5.0)

    def _keep(self, running: Running, seen: Seen, *, settled: bool, shown: bool = True) -> Snapshot:
        assert seen.tree is not None
        world = self._host.world
        if self._book.generation != running.identity.generation:
            self._book = SnapshotBook(running.identity.generation, self._ids)
            self._crashes = frozenset(seen.crashes)
        now = world.monotonic()
        return self._book.add(
            seen.tree,
            seen.focus,
            Screen(self._actor.spec.display, seen.tree.rotation),
            taken_ms=int(world.wall() * 1000),
            at=now,
            frames=seen.frames,
            settled=settled,
            shown=shown,
        )


async def _or_fault(work: Awaitable[_T]) -> _T | ChannelLost:
    """A task group would wrap the fault; answers with it instead."""
    try:
        return await work
    except ChannelLost as fault:
        return fault


def _value(result: _T | ChannelLost) -> _T:
    if isinstance(result, ChannelLost):
        raise result
    return result
