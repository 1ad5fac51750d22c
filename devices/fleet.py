"""All managed devices of one broker: the adb server, the port pairs, the launch turn and the actors."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from devices.actor.actor import DeviceActor
from devices.actor.life import Host, NextGeneration, OnIdentity
from devices.actor.ports import PortPairs
from devices.actor.stopping import end_orphan
from devices.adb.server import AdbServer, serve
from devices.phone import Phone
from devices.processes import carriers
from devices.spec import UNBORN, DeviceSpec, Identity
from devices.tasks import background
from devices.world import World
from lomi.core.processes import ProcessName


class Fleet:
    """Gives one `Phone` per device id for as long as the fleet is open; made by `open_fleet`."""

    def __init__(self, host: Host, group: asyncio.TaskGroup, changed: Callable[[Phone], None]) -> None:
        self._host = host
        self._group = group
        self._changed = changed
        self._phones: dict[str, Phone] = {}

    @property
    def server(self) -> AdbServer:
        """Our adb server."""
        return self._host.server

    def phone(self, spec: DeviceSpec) -> Phone:
        """The phone of `spec.device_id`; the first call decides its spec, `forget` lets it change."""
        phone = self._phones.get(spec.device_id)
        if phone is None:
            actor = DeviceActor(spec, self._host, self._group, lambda _actor: self._notify(spec.device_id))
            phone = self._phones[spec.device_id] = Phone(actor, self._host, self._group)
        return phone

    def forget(self, device_id: str) -> None:
        """Drop a stopped device.

        Raises:
            ValueError: the device is still owned.
        """
        phone = self._phones.get(device_id)
        if phone is not None and phone.process_alive:
            raise ValueError("a device that is still owned cannot be forgotten")
        self._phones.pop(device_id, None)

    async def processes_of(self, identities: tuple[Identity, ...]) -> frozenset[ProcessName]:
        """Every process that is known of these lives: the stored ones, and those that carry a marker of theirs."""
        carrying = [await asyncio.to_thread(carriers, one.marker) for one in identities]
        return frozenset({one.process for one in identities} - {UNBORN}).union(*carrying)

    async def sweep(self, identities: tuple[Identity, ...]) -> tuple[Identity, ...]:
        """After a crash: end what earlier lives left behind; answers with those not observed gone."""
        async with asyncio.TaskGroup() as group:
            tasks = [(one, group.create_task(end_orphan(one, world=self._host.world))) for one in identities]
        return tuple(one for one, task in tasks if not task.result())

    async def stop_all(self) -> None:
        """Ask every device to stop and wait; what cannot be confirmed is left to `sweep`."""
        async with asyncio.TaskGroup() as group:
            for phone in self._phones.values():
                group.create_task(phone.stop_quietly())

    def _notify(self, device_id: str) -> None:
        phone = self._phones.get(device_id)
        if phone is not None:
            self._changed(phone)


@asynccontextmanager
async def open_fleet(
    state: Path,
    *,
    next_generation: NextGeneration,
    on_identity: OnIdentity,
    world: World | None = None,
    ports: PortPairs | None = None,
    changed: Callable[[Phone], None] = lambda _phone: None,
    adb: Path | None = None,
) -> AsyncIterator[Fleet]:
    """Run our adb server and own devices while inside; everything is stopped on leaving.

    `next_generation(device_id)` answers with a fresh stored generation, `on_identity` stores an identity before the
    device is used; whatever they raise fails that start. `changed` is called, in the loop, on every change of phase.

    Raises:
        ChannelLost: our adb server does not start.
    """
    outside = world or World()
    async with serve(state, world=outside, binary=adb) as server:
        host = Host(
            server, outside, ports or PortPairs(), asyncio.Lock(), asyncio.Semaphore(2), next_generation, on_identity
        )
        async with background() as group:
            fleet = Fleet(host, group, changed)
            try:
                yield fleet
            finally:
                await fleet.stop_all()
