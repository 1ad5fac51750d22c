"""Trusted key input: single keys, chords with their default actions, and text key by key."""

from browser.inspector.connection import Session
from browser.inspector.layout import KEYS, SHIFTED, Key

_BITS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
_KEYPAD = 3


def parts_of(chord: str) -> list[str]:
    """The keys of ``Control+Shift+A``; the plus sign is a key too."""
    head, plus, last = chord.rpartition("+")
    if plus and not last:
        head, last = head.removesuffix("+"), "+"
    return [*(part for part in head.split("+") if part), last]


class Keyboard:
    """The keys of one page, and which are held down."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: set[str] = set()
        self._modifiers: set[str] = set()

    @property
    def modifiers(self) -> int:
        """The modifiers that are held, as the protocol's bits."""
        return sum(_BITS[name] for name in self._modifiers)

    def _key(self, name: str) -> Key:
        name = "Control" if name == "ControlOrMeta" else name
        if "Shift" in self._modifiers:
            name = SHIFTED.get(name, name)
        key = KEYS[name]
        # With any other modifier held a key gives no text; Shift alone gives the other sign.
        return key._replace(text="") if self._modifiers - {"Shift"} else key

    async def down(self, name: str) -> None:
        """Press a key and hold it. Raises KeyError for an unknown one, else as `Session.call`."""
        key = self._key(name)
        again = key.code in self._held
        self._held.add(key.code)
        if key.key in _BITS:
            self._modifiers.add(key.key)
        await self._session.call(
            "Input.dispatchKeyEvent",
            {
                "type": "keyDown" if key.text else "rawKeyDown",
                "text": key.text,
                "unmodifiedText": key.text,
                "autoRepeat": again,
                **self._common(key),
            },
        )

    async def up(self, name: str) -> None:
        """Let a key go. Raises as `down`."""
        key = self._key(name)
        if key.key in _BITS:
            self._modifiers.discard(key.key)
        self._held.discard(key.code)
        await self._session.call("Input.dispatchKeyEvent", {"type": "keyUp", **self._common(key)})

    def _common(self, key: Key) -> dict[str, object]:
        return {
            "modifiers": self.modifiers,
            "windowsVirtualKeyCode": key.number,
            "code": key.code,
            "key": key.key,
            "location": key.location,
            "isKeypad": key.location == _KEYPAD,
        }

    async def press(self, chord: str) -> None:
        """A key or a chord, pressed and let go, whatever happens in between. Raises as `down`."""
        *modifiers, last = parts_of(chord)
        held: list[str] = []
        try:
            for name in (*modifiers, last):
                held.append(name)
                await self.down(name)
        finally:
            for name in reversed(held):
                await self.up(name)

    async def type(self, text: str) -> None:
        """Text key by key; what no key gives comes as an input method would give it. Raises as `down`."""
        for sign in text:
            if sign in KEYS:
                await self.press_sign(sign)
            else:
                await self._session.call("Input.insertText", {"text": sign})

    async def press_sign(self, sign: str) -> None:
        """One sign's key, pressed and let go. Raises as `down`."""
        try:
            await self.down(sign)
        finally:
            await self.up(sign)
