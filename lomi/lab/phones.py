"""Phones of a broker as the pool sees them, and phones that a run makes for itself."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from lomi.client.aio import Lab, Phone
from lomi.client.aio.session import Session
from lomi.client.errors import (
    AppUnavailableError,
    BrokerFaultError,
    ConnectionLostError,
    DeadlineExceededError,
    StaleGenerationError,
    ToolError,
)
from lomi.client.names import NameAbsentError
from lomi.contract.android import AndroidDevices, AndroidListInput, Devices, DeviceView
from lomi.contract.android_setup import (
    AndroidManagement,
    CreateDevice,
    DeleteDevice,
    DeviceManageInput,
    Hardware,
    WipeDevice,
)
from lomi.lab.plan import Recycle
from lomi.lab.pool import PhoneFailedError

_PROFILE = "small_phone"
_HARDWARE = Hardware(ram_mib=2048, cpu_count=2, data_gib=8, gpu="auto", quick_boot=False)
_MANAGE_S = 300.0
_LOOK_S = 20.0
_TRIES = 16
_PAUSE_S = 0.1
_PASSING = frozenset({"devices_changed", "management_busy"})
"""Refusals that another's change explains; nothing was done."""


class BrokerPhone:
    """One phone of the grant, or one that the run made; its own user comes to it through a session of its own.

    Args:
        lab: the session through which the pool looks after it.
        name: its name.
        lost: told when the broker is gone.
        maker: makes it again; None for a phone of the grant.
    """

    def __init__(self, lab: Lab, name: str, lost: Callable[[], None], maker: "PhoneMaker | None" = None) -> None:
        self._lab = lab
        self._lost = lost
        self._maker = maker
        self.name = name
        self.generation: str | None = None

    async def boot(self) -> None:
        """Start it and take a look at its screen.

        Raises:
            PhoneFailedError: it did not start, or shows nothing.
        """
        self.generation = None
        with self._failing():
            phone = await self._lab.phone(self.name, lease=False)
            await phone.snapshot()
            self.generation = phone.generation

    async def alive(self) -> bool:
        """Whether it runs, in whatever life, and shows something; a screen that it may not show is an answer too."""
        self.generation = None
        with suppress(PhoneFailedError, TimeoutError), self._failing():
            device = await self._device()
            if device is None or device.phase != "running" or not device.process_alive:
                return False
            phone = await self._lab.phone(self.name, start=False, lease=False)
            phone.noticed(device)
            async with asyncio.timeout(_LOOK_S):
                await _looked(phone)
            self.generation = device.generation
        return self.generation is not None

    async def renew(self, how: Recycle) -> None:
        """Stop it, and make it as new.

        Raises:
            PhoneFailedError: it could not be stopped, or not be made as new.
        """
        self.generation = None
        with self._failing():
            await self._stop()
            if how == "wipe" and self._maker is not None:
                await self._maker.wipe(self.name)
            elif how == "fresh" and self._maker is not None:
                await self._maker.make_again(self.name)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn what the broker answers into the pool's own error; a broker that is gone is told on."""
        try:
            yield
        except (ToolError, BrokerFaultError, NameAbsentError) as error:
            if isinstance(error, ConnectionLostError):
                self._lost()
            raise PhoneFailedError(_line(error)) from error

    async def _device(self) -> DeviceView | None:
        return next((device for device in await self._lab.phones() if device.name == self.name), None)

    async def _stop(self) -> None:
        phone = await self._lab.phone(self.name, start=False, lease=False)
        device = await self._device()
        if device is not None:
            phone.noticed(device)
        if phone.running:
            await phone.stop()
        await self._lab.release(phone)


async def _looked(phone: Phone) -> None:
    """Take a picture, to see whether the phone answers; what else keeps a picture from being taken says that it does.

    Raises:
        ToolError: it does not.
    """
    try:
        await phone.capture()
    except (AppUnavailableError, StaleGenerationError, DeadlineExceededError, ConnectionLostError):
        raise
    except ToolError:
        return


def _line(error: Exception) -> str:
    """The error in one line, with the reason that the broker gave."""
    return " ".join(str(error).split())[:500]


class PhoneMaker:
    """Makes, wipes and deletes phones through one session, one change at a time: each names what it was decided on."""

    def __init__(self, session: Session, image: str) -> None:
        self._session = session
        self._image = image
        self._turn = asyncio.Lock()

    async def make(self, name: str) -> None:
        """Make a phone.

        Raises:
            ToolError: refused; the grant needs `android.manage`, and somebody who decides.
        """
        await self._change(
            lambda devices: CreateDevice(
                expected_devices_revision=devices.devices_revision,
                name=name,
                image=self._image,
                profile=_PROFILE,
                hardware=_HARDWARE,
            )
        )

    async def wipe(self, name: str) -> None:
        """Erase what a stopped phone stored."""
        await self._change(
            lambda devices: WipeDevice(
                expected_devices_revision=devices.devices_revision,
                device_id=_id_of(devices, name),
                confirmation=name,
            )
        )

    async def delete(self, name: str) -> None:
        """Delete a stopped phone."""
        await self._change(
            lambda devices: DeleteDevice(
                expected_devices_revision=devices.devices_revision,
                device_id=_id_of(devices, name),
                confirmation=name,
            )
        )

    async def make_again(self, name: str) -> None:
        """Delete a stopped phone and make one of that name."""
        await self.delete(name)
        await self.make(name)

    async def _change(self, action: Callable[[Devices], CreateDevice | WipeDevice | DeleteDevice]) -> None:
        async with self._turn:
            for _ in range(_TRIES - 1):
                try:
                    await self._once(action(await self._devices()))
                except ToolError as error:
                    if error.reason not in _PASSING:
                        raise
                    await asyncio.sleep(_PAUSE_S)
                else:
                    return
            await self._once(action(await self._devices()))

    async def _once(self, action: CreateDevice | WipeDevice | DeleteDevice) -> None:
        await self._session.act(
            "lomi_android_device_manage",
            lambda: DeviceManageInput(**self._session.keyed(), action=action),
            AndroidManagement,
            timeout_s=_MANAGE_S,
        )

    async def _devices(self) -> Devices:
        given = AndroidListInput(workspace_id=self._session.workspace_id)
        return (await self._session.read("lomi_android_list", given, AndroidDevices)).devices


def _id_of(devices: Devices, name: str) -> str:
    """The id of a phone.

    Raises:
        NameAbsentError: it is gone.
    """
    for device in devices.items:
        if device.name == name:
            return device.device_id
    raise NameAbsentError(name, "The grant", f"has no phone {name!r} any more", (), 0)


@asynccontextmanager
async def made_phones(
    lab: Lab, image: str, count: int, lost: Callable[[], None]
) -> AsyncIterator[tuple[BrokerPhone, ...]]:
    """Make phones of an image; with the context they are stopped and deleted.

    Raises:
        ToolError: refused.
    """
    maker = PhoneMaker(lab.session, image)  # its acts are to be among the session's receipts
    mark = secrets.token_hex(3)
    names = [f"lab-{mark}-{number}" for number in range(1, count + 1)]
    made: list[BrokerPhone] = []
    try:
        for name in names:
            await maker.make(name)
            made.append(BrokerPhone(lab, name, lost, maker))
        yield tuple(made)
    finally:
        for phone in made:
            with suppress(PhoneFailedError, ToolError, BrokerFaultError, NameAbsentError):
                await phone.renew("reuse")
                await maker.delete(phone.name)
