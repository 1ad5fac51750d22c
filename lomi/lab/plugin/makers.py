"""Phones that a worker makes for itself, since those of the owner's policy are never wiped or replaced by a client."""

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from lomi.client import aio
from lomi.client.errors import BrokerFaultError, ToolError
from lomi.client.lab import Lab

if TYPE_CHECKING:
    from lomi.lab.phones import PhoneMaker


class Makers:
    """One made phone for each image that the tests of this process ask for; `delete_all` ends them."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[PhoneMaker, str]] = {}
        self._keys: dict[str, str] = {}

    def due(self, name: str, key: str) -> bool:
        """Whether a phone was not made as new for this key yet; true once for each."""
        was = self._keys.get(name)
        self._keys[name] = key
        return was is not None and was != key

    def ready(self, lab: Lab, image: str, key: str, how: Literal["wipe", "fresh"]) -> str:
        """The name of this process's phone of an image, made, or made as new where that is due.

        Raises:
            ToolError: refused; the grant needs `android.manage`, and somebody who decides.
        """
        if image not in self._made:
            maker = lab.run(lambda source: _maker(source, image))
            name = f"pytest-{os.getpid()}-{secrets.token_hex(3)}"
            lab.run(lambda _: maker.make(name))
            self._made[image] = (maker, name)
        maker, name = self._made[image]
        if self.due(name, key):
            _stopped(lab, name)
            lab.run(lambda _: maker.wipe(name) if how == "wipe" else maker.make_again(name))
        return name

    def delete_all(self, lab: Lab) -> None:
        """Stop and delete what was made; where the broker is gone, its home has them still."""
        for maker, name in self._made.values():
            with suppress(ToolError, BrokerFaultError, LookupError):
                _stopped(lab, name)
                lab.run(lambda _, maker=maker, name=name: maker.delete(name))  # type: ignore[misc]
        self._made.clear()
        self._keys.clear()


async def _maker(lab: aio.Lab, image: str) -> "PhoneMaker":
    from lomi.lab.phones import PhoneMaker  # noqa: PLC0415  most runs make no phone, and each process loads it

    return PhoneMaker(lab.session, image)


def _stopped(lab: Lab, name: str) -> None:
    phone = lab.phone(name, start=False, lease=False)
    if phone.running:
        phone.stop()
    lab.release(phone)
