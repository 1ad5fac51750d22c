"""One input event of the contract as one call of the library."""

from contextlib import AbstractAsyncContextManager

from devices.hands import At, Hands, PointAt, RefAt, Typed
from lomi.contract.android import (
    AndroidInputInput,
    CommitText,
    HoldKey,
    Navigate,
    Place,
    Press,
    Rotate,
    Swipe,
    Tap,
    Touch,
)


def place_of(place: Place) -> At:
    """Where an event acts; the contract's rule has seen to it that exactly one form is given."""
    if place.snapshot_id is not None:
        return RefAt(place.snapshot_id, int(place.ref) if place.ref and place.ref.isdecimal() else -1)
    assert place.x is not None
    assert place.y is not None
    return PointAt(place.x, place.y)


async def send(hands: Hands, given: AndroidInputInput, effect: AbstractAsyncContextManager[None]) -> Typed | None:
    """Make the event happen; each is one operation. Answers with what became of a text, None for all others.

    Raises:
        DeviceFault: what the library refuses or loses.
    """
    generation = given.generation
    match given.event:
        case Tap(at=at, count=count, hold_ms=hold_ms):
            await hands.tap(place_of(at), count=count, hold_ms=hold_ms, generation=generation, effect=effect)
        case Swipe(from_=start, to=end, duration_ms=duration_ms):
            await hands.swipe(
                place_of(start), place_of(end), duration_ms=duration_ms, generation=generation, effect=effect
            )
        case Press(key=key, count=count):
            await hands.press(key, count=count, generation=generation, effect=effect)
        case CommitText(text=words):
            return await hands.type_text(words, generation=generation, effect=effect)
        case Navigate(key=button):
            await hands.navigate(button, generation=generation, effect=effect)
        case Rotate(quarter_turns=turns):
            await hands.rotate(turns, generation=generation, effect=effect)
        case HoldKey(key=key, down=down):
            await hands.key(key, down=down, generation=generation, effect=effect)
        case Touch(phase=phase, x=x, y=y, identifier=finger):
            await hands.touch(phase, x, y, identifier=finger, generation=generation, effect=effect)
    return None
