"""The acting half of a phone: every call is one dispatched effect, never sent twice."""

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

from devices import keys, readback, text
from devices.actor.actor import DeviceActor
from devices.actor.life import Lanes
from devices.adb.shell import Answer, ShellLane
from devices.engine.channel import EmulatorChannel
from devices.engine.codec import Finger
from devices.eyes import Eyes, Target
from devices.faults import ChannelLost, DeviceFault, InputFailed, TargetRefused, TextRefused, TreeUnavailable
from devices.geometry import Screen
from devices.hierarchy.snapshots import Snapshot
from devices.keys import PASTE
from devices.spec import Running

Effect = AbstractAsyncContextManager[None]
_MARGIN_S = 20.0
_FIELDS_S = 3.0
"""How long a look at the fields may take, before a text and after it."""


@dataclass(frozen=True, slots=True)
class RefAt:
    """A node by the ref of a kept snapshot."""

    snapshot_id: str
    ref: int


@dataclass(frozen=True, slots=True)
class PointAt:
    """A pixel of the unrotated hardware display."""

    x: int
    y: int


At = RefAt | PointAt


@dataclass(frozen=True, slots=True)
class Typed:
    """A text that was sent; `confirmed` says it was read back from the field, None that it cannot be read back."""

    path: text.Path
    confirmed: bool | None


class Hands:
    """Acts on one phone over its acting lane, in arrival order."""

    def __init__(self, actor: DeviceActor, eyes: Eyes) -> None:
        self._actor = actor
        self._eyes = eyes
        self._fingers: dict[int, tuple[PointAt, Target]] = {}
        self._modifiers: list[str] = []
        self._held: list[str] = []
        self._paste_known: tuple[str, bool] | None = None

    async def tap(
        self,
        at: At,
        *,
        count: int = 1,
        hold_ms: int = 0,
        generation: str | None = None,
        effect: Effect | None = None,
    ) -> None:
        """Tap a node or a point, `count` times, each held for `hold_ms`.

        Raises:
            TargetRefused: nothing was sent.
            InputFailed: the device refused it.
            ChannelLost: effect none before the first byte, unknown after it.
        """
        point = await self._point(at, generation)
        one = f"input tap {point.x} {point.y}"
        if hold_ms:
            one = f"input swipe {point.x} {point.y} {point.x} {point.y} {hold_ms}"
        await self._send(" && ".join([one] * count), generation, effect, extra_s=count * hold_ms / 1000)

    async def swipe(
        self, start: At, end: At, *, duration_ms: int = 300, generation: str | None = None, effect: Effect | None = None
    ) -> None:
        """Drag one finger from one place to another.

        Raises:
            TargetRefused, InputFailed, ChannelLost: as for `tap`.
        """
        first = await self._point(start, generation)
        last = await self._point(end, generation)
        line = f"input swipe {first.x} {first.y} {last.x} {last.y} {duration_ms}"
        await self._send(line, generation, effect, extra_s=duration_ms / 1000)

    async def press(
        self, key: str, *, count: int = 1, generation: str | None = None, effect: Effect | None = None
    ) -> None:
        """Press and release a key `count` times.

        Raises:
            InputFailed: bad_key for a key that has no code, before anything is sent.
            ChannelLost: as for `tap`.
        """
        await self._send(" && ".join([self._key_line(key)] * count), generation, effect)

    async def key(self, key: str, *, down: bool, generation: str | None = None, effect: Effect | None = None) -> None:
        """Hold or let go of a key.

        A modifier goes with the presses that follow. Any other key is held over the emulator's own channel; over adb,
        which cannot, it is pressed when it goes down.

        Raises:
            InputFailed: bad_key for a key that has no code, before anything is sent.
            ChannelLost: as for `tap`.
        """
        line = self._key_line(key)
        if key in keys.MODIFIERS:
            held = [one for one in self._modifiers if one != key]
            self._modifiers = [*held, key] if down else held
            line = ":"
        _, lanes = self._actor.usable(generation)
        if lanes.engine is not None and key not in keys.MODIFIERS:
            await self._hold(lanes.engine, key, down=down, effect=effect)
            return
        await self._send(line if down else ":", generation, effect)

    async def _hold(self, engine: EmulatorChannel, key: str, *, down: bool, effect: Effect | None = None) -> None:
        self._eyes.acted()
        self._held = [*(one for one in self._held if one != key), *((key,) if down else ())]
        await engine.key(" " if key == "space" else key, down=down, effect=effect)
        self._eyes.acted()

    async def navigate(
        self,
        key: Literal["back", "home", "overview", "power"],
        *,
        generation: str | None = None,
        effect: Effect | None = None,
    ) -> None:
        """Press a system key.

        Raises:
            InputFailed, ChannelLost: as for `tap`.
        """
        await self._send(f"input keyevent {keys.NAVIGATION[key]}", generation, effect)

    async def touch(
        self,
        phase: Literal["down", "move", "up"],
        x: int,
        y: int,
        *,
        identifier: int = 0,
        generation: str | None = None,
        effect: Effect | None = None,
    ) -> None:
        """Put down, move or lift a finger, 0 or 1, at a hardware pixel.

        Raises:
            InputFailed: bad_input for a phase out of order, or a second finger where there is only adb.
            TargetRefused, ChannelLost: as for `tap`.
        """
        if (phase == "down") == (identifier in self._fingers):
            raise InputFailed("bad_input", f"{phase} does not follow what the finger did before")
        point = await self._point(PointAt(x, y), generation)
        _, lanes = self._actor.usable(generation)
        if lanes.engine is not None:
            self._eyes.acted()
            await lanes.engine.touch((Finger(identifier, x, y, 0 if phase == "up" else 1),), effect=effect)
            self._eyes.acted()
        elif identifier == 0:
            await self._send(f"input motionevent {phase.upper()} {point.x} {point.y}", generation, effect)
        else:
            raise InputFailed("bad_input", "a second finger needs the emulator's own channel")
        if phase == "up":
            del self._fingers[identifier]
        else:
            self._fingers[identifier] = (PointAt(x, y), point)

    async def release(self) -> None:
        """Let go of everything held: at a takeover, a lost lease, a failed gesture. Nothing to do when nothing is held.

        Raises:
            InputFailed, ChannelLost: as for `tap`.
        """
        self._modifiers = []
        held, self._fingers = self._fingers, {}
        pressed = tuple(self._held)
        if not held and not pressed:
            return
        _, lanes = self._actor.usable(None)
        for key in pressed:
            if lanes.engine is not None:
                await self._hold(lanes.engine, key, down=False)
        if not held:
            return
        if lanes.engine is not None:
            await lanes.engine.touch(tuple(Finger(number, at.x, at.y, 0) for number, (at, _) in held.items()))
            return
        for _, point in held.values():
            await self._send(f"input motionevent UP {point.x} {point.y}", None, None)

    async def rotate(self, quarter_turns: int, *, generation: str | None = None, effect: Effect | None = None) -> None:
        """Fix the display's rotation to 0..3 quarter turns.

        Raises:
            InputFailed, ChannelLost: as for `tap`.
        """
        line = (
            "settings put system accelerometer_rotation 0 && "
            f"settings put system user_rotation {quarter_turns} && settings get system user_rotation"
        )
        answer = await self._send(line, generation, effect)
        if answer.text.strip() != str(quarter_turns):
            raise InputFailed("input_failed", "the rotation was not taken", effect="unknown")

    async def type_text(self, words: str, *, generation: str | None = None, effect: Effect | None = None) -> Typed:
        """Type a text into what has the focus.

        Raises:
            TextRefused: text_too_long or text_needs_ime before a byte is sent. After it text_differs, effect partial
                where a part of the text is seen, or where it is seen altered or in another field, and else unknown;
                text_not_confirmed, effect unknown, when what is there proves nothing.
            InputFailed, ChannelLost: as for `tap`.
        """
        if len(words.encode()) > text.MAX_BYTES:
            raise TextRefused("text_too_long", f"more than {text.MAX_BYTES} bytes")
        if "\0" in words:
            raise TextRefused("text_needs_ime", "NUL cannot be typed")
        running, lanes = self._actor.usable(generation)
        path = text.path_for(words, can_paste=not text.is_plain(words) and await self._can_paste(running, lanes))
        if path is None:
            raise TextRefused("text_needs_ime", "this text cannot be typed exactly on this device")
        if not words:
            return Typed(path, confirmed=True)
        earlier = await self._fields(generation)
        clip = await _clipboard_of(lanes.engine) if path == "paste" and lanes.engine is not None else None
        if lanes.engine is not None and clip is not None:
            await self._paste(lanes.engine, words, clip, generation, effect)
        else:
            if path == "paste" and not await self._adb_pastes(running, lanes):
                raise TextRefused("text_needs_ime", "the emulator's clipboard does not answer")
            line = text.keys_line(words) if path == "keys" else await text.paste_line(lanes.look, words)
            await self._send(line, generation, effect, extra_s=len(words) / 100)
        return Typed(path, await self._read_back(earlier, words, generation))

    async def _paste(
        self, engine: EmulatorChannel, words: str, before: str, generation: str | None, effect: Effect | None
    ) -> None:
        """Set the emulator's clipboard, paste, and put back what was in it before whatever happens."""
        async with effect or nullcontext():
            await engine.set_clipboard(words)
            try:
                await self._send(f"input keyevent {PASTE}", generation, None)
            finally:
                await engine.set_clipboard(before)

    async def _can_paste(self, running: Running, lanes: Lanes) -> bool:
        return lanes.engine is not None or await self._adb_pastes(running, lanes)

    async def _adb_pastes(self, running: Running, lanes: Lanes) -> bool:
        if self._paste_known is None or self._paste_known[0] != running.boot_id:
            self._paste_known = (running.boot_id, await text.has_clipboard(lanes.look))
        return self._paste_known[1]

    async def _fields(self, generation: str | None) -> Snapshot | None:
        """What the fields hold before anything is typed; None where that cannot be read.

        Raises:
            NotRunning, ChannelLost: nothing was typed.
        """
        try:
            return await self._eyes.present(generation=generation, within=_FIELDS_S)
        except TreeUnavailable:
            return None

    async def _read_back(self, before: Snapshot | None, words: str, generation: str | None) -> bool | None:
        """True when the field took the words; None when that cannot be read.

        Raises:
            TextRefused: text_differs or text_not_confirmed, see `type_text`.
        """
        verdict: readback.Verdict = "unreadable"
        if before is not None and readback.can_be_read(before):
            try:
                verdict = await self._eyes.typed(before, words, generation=generation, within=_FIELDS_S)
            except DeviceFault:
                return None
        if verdict == "partly":
            raise TextRefused("text_differs", "not all of the text, or not as it is, is there", effect="partial")
        if verdict == "other":
            raise TextRefused("text_differs", "the field holds something else", effect="unknown")
        if verdict == "unclear":
            raise TextRefused("text_not_confirmed", "what is there proves nothing", effect="unknown")
        return True if verdict == "held" else None

    async def _point(self, at: At, generation: str | None) -> Target:
        if isinstance(at, RefAt):
            return await self._eyes.target(at.snapshot_id, at.ref, generation=generation)
        display = self._actor.spec.display
        if not (0 <= at.x < display.width and 0 <= at.y < display.height):
            raise TargetRefused("outside_display", f"{at.x},{at.y} is not on the display")
        _, lanes = self._actor.usable(generation)
        screen: Screen = await self._eyes.screen(lanes.look)
        x, y = screen.to_rotated(at.x, at.y)
        return Target(x, y, screen)

    def _key_line(self, key: str) -> str:
        code = keys.code_of(key)
        if code is None:
            raise InputFailed("bad_key", f"no key code for {key[:32]!r}")
        number, shift = code
        held = [str(found[0]) for one in self._modifiers if (found := keys.code_of(one)) is not None]
        if shift and "59" not in held:
            held.append("59")
        return f"input keycombination {' '.join(held)} {number}" if held else f"input keyevent {number}"

    async def _send(self, line: str, generation: str | None, effect: Effect | None, *, extra_s: float = 0.0) -> Answer:
        _, lanes = self._actor.usable(generation)
        lane: ShellLane = lanes.act
        self._eyes.acted()
        try:
            answer = await lane.run(line, within=_MARGIN_S + extra_s, effect=effect, check=_check)
        finally:
            self._eyes.acted()
        return answer


async def _clipboard_of(engine: EmulatorChannel) -> str | None:
    """What the emulator's clipboard holds; None when it does not say, and adb must do."""
    try:
        return await engine.clipboard()
    except ChannelLost:
        return None


def _check(answer: Answer) -> None:
    """Raise for a refused input while its effect is still open, so that the evidence counts."""
    if answer.code == 0 and b"Exception" not in answer.err:
        return
    nothing = answer.code == 127 or b"Can't find service" in answer.err + answer.out
    raise InputFailed(
        "input_failed",
        f"the device answered {answer.code}",
        effect="none" if nothing else "unknown",
        evidence=answer.words[-2000:],
    )
