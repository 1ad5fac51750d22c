"""Phones against generations: each boot is a life that the ledger knows from its birth to its observed end."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from devices.faults import DeviceFault
from devices.fleet import Fleet
from devices.phone import Phone
from devices.port.faults import acting, refusal_of
from devices.port.sdk_room import SdkRoom
from devices.spec import DeviceSpec, Identity
from lomi.contract.android import AndroidInputInput, Place, Swipe, Tap
from lomi.contract.codes import ErrorCode
from lomi.contract.definition import ResourceKind
from lomi.contract.panel import RuntimeState
from lomi.core.ids import GenerationId, LeaseId
from lomi.core.own_ports import OwnPorts
from lomi.core.port import Call, Ledger, Permit, ResourceKey
from lomi.core.refusal import Refusal

_STATES: dict[str, RuntimeState] = {
    "stopped": "not_started",
    "starting": "starting",
    "booting": "starting",
    "running": "ready",
    "offline": "running",
    "stopping": "running",
    "failed": "exited",
}
_SIMULATED = "SIMULATED: this phone is paper, not Android"
_ADB_ONLY = "the emulator's own channel is not used ({}): over adb there is no second finger, and text is ASCII only"


class Said:
    """Lines that are asked for whenever they are read: phones come and go after the adapter was opened."""

    def __init__(self, ask: Callable[[], tuple[str, ...]]) -> None:
        self._ask = ask

    def __iter__(self) -> Iterator[str]:
        """The lines of now."""
        return iter(self._ask())


class Lives:
    """The phones of one broker (the port's `Runtimes` of kind android)."""

    kind: ResourceKind = "android"

    def __init__(self, ledger: Ledger, tasks: asyncio.TaskGroup, own_ports: OwnPorts) -> None:
        self._ledger = ledger
        self._tasks = tasks
        self._own_ports = own_ports
        self._phones: dict[str, Phone] = {}
        self._fleet: Fleet | None = None
        self._managed: set[str] = set()
        self.on_lease_ended: list[Callable[[GenerationId], None]] = []

    @property
    def _open_fleet(self) -> Fleet:
        assert self._fleet is not None, "phones come with their fleet"
        return self._fleet

    async def take_over(self, fleet: Fleet, specs: Sequence[DeviceSpec]) -> None:
        """Know the phones; end what an earlier broker can be proven to have left."""
        self._fleet = fleet
        left = {
            r.generation: msgspec.json.decode(r.identity, type=Identity)
            for r in await self._ledger.remembered("android")
        }
        history = await fleet.processes_of(tuple(left.values()))
        still_there = {one.generation for one in await fleet.sweep(tuple(left.values()))}
        for generation in left:
            if generation not in still_there:
                await self._ledger.forget(generation)
        for spec in specs:
            phone = self._phones[spec.device_id] = fleet.phone(spec)
            phone.adopt_history(history)

    def phones(self) -> tuple[Phone, ...]:
        """All phones, in the order of their description."""
        return tuple(self._phones.values())

    def known(self, device_id: str) -> Phone | None:
        """A phone by id, None where there is none."""
        return self._phones.get(device_id)

    def put(self, spec: DeviceSpec) -> None:
        """Know a phone, or a stopped one by its new description."""
        self._open_fleet.forget(spec.device_id)
        self._phones[spec.device_id] = self._open_fleet.phone(spec)

    async def drop(self, device_id: str) -> None:
        """Forget a stopped phone, and close its views."""
        self._open_fleet.forget(device_id)
        self._phones.pop(device_id, None)
        for panel in self._ledger.panels_of(ResourceKey("android", device_id)):
            await self._ledger.close_panel(panel.id)

    async def refresh(self, room: SdkRoom) -> None:
        """Know the managed phones as they now are: new ones, changed ones, and no deleted ones."""
        await room.reload()
        if room.devices_revision is None:
            return
        for device in room.devices:
            spec, phone = room.spec(device), self._phones.get(device.device_id)
            if spec is not None and (phone is None or (phone.spec != spec and not phone.process_alive)):
                self.put(spec)
        there = {device.device_id for device in room.devices}
        for device_id in self._managed - there:
            await self.drop(device_id)
        self._managed = there

    def packages_in_use(self, room: SdkRoom) -> frozenset[str]:
        """The packages that running phones are made of."""
        running = [one for one in room.devices if (phone := self.known(one.device_id)) and phone.process_alive]
        real = {one.image for one in running if ";" in one.image}
        return frozenset(real | ({"emulator"} if real else set()))

    def phone(self, device_id: str) -> Phone:
        """A phone by id.

        Raises:
            Refusal: TARGET_NOT_FOUND.
        """
        phone = self._phones.get(device_id)
        if phone is None:
            raise Refusal(ErrorCode.TARGET_NOT_FOUND, field="/deviceId")
        return phone

    def limitations(self, phone: Phone) -> tuple[str, ...]:
        """What an agent must know of a phone."""
        told = (_SIMULATED,) if phone.spec.simulated else ()
        missing = phone.without_engine
        return told if missing is None else (*told, _ADB_ONLY.format(missing))

    def all_limitations(self) -> tuple[str, ...]:
        """What status says of the phones that there are now; no names, as not everyone may see every phone."""
        simulated = [phone.spec.simulated for phone in self._phones.values()]
        if not any(simulated):
            return ()
        return (f"SIMULATED: {'all' if all(simulated) else 'some'} phones here are paper, not Android",)

    async def next_generation(self, device_id: str) -> str:
        """A new life of a phone."""
        return await self._ledger.begin_generation(ResourceKey("android", device_id))

    async def on_identity(self, identity: Identity) -> None:
        """Store who it is, before it is used."""
        await self._ledger.remember(GenerationId(identity.generation), msgspec.json.encode(identity))
        ports = identity.ports
        taken = {ports.console, ports.adb} | ({ports.grpc} if ports.grpc is not None else set())
        self._own_ports.hold(identity.device_id, frozenset(taken))

    def changed(self, phone: Phone) -> None:
        """Note a change of phase; a life that is observed gone ends in the ledger too."""
        if phone.phase in ("stopped", "failed") and not phone.process_alive:
            self._own_ports.hold(phone.spec.device_id, frozenset())
            generation = self._ledger.current(ResourceKey("android", phone.spec.device_id))
            if generation is not None:
                self._ledger.end_generation(generation)
                self._tasks.create_task(self._ledger.forget(generation))

    def check_ref(self, call: Call[AndroidInputInput]) -> None:
        """The snapshots that an event names must still be kept."""
        phone = self.phone(call.input.device_id)
        event = call.input.event
        places: tuple[Place, ...] = (event.at,) if isinstance(event, Tap) else ()
        if isinstance(event, Swipe):
            places = (event.from_, event.to)
        for place in places:
            if place.snapshot_id is not None:
                try:
                    phone.eyes.kept(place.snapshot_id)
                except DeviceFault as fault:
                    raise refusal_of(fault) from fault

    def state(self, resource: ResourceKey) -> RuntimeState:
        """How a phone stands."""
        phone = self._phones.get(resource.name)
        return _STATES[phone.phase] if phone is not None else "unobserved"

    def process(self, resource: ResourceKey) -> int | None:
        """None: no client runs inside."""
        del resource
        return None

    def check_claim(self, call: Call[Any]) -> None:
        """Only a running phone can be controlled."""
        phone = self.phone(call.input.device_id)
        if phone.running is None:
            raise Refusal(ErrorCode.STALE_GENERATION, "not_running", field="/generation")

    def lease_ended(self, generation: GenerationId, lease_id: LeaseId) -> None:
        """Lift held keys and fingers, at once."""
        del lease_id
        for told in self.on_lease_ended:
            told(generation)
        for phone in self._phones.values():
            running = phone.running
            if running is not None and running.identity.generation == generation:
                self._tasks.create_task(self._release(phone))

    def owner_gone(self, generation: GenerationId) -> None:
        """Phones belong to nobody."""

    async def _release(self, phone: Phone) -> None:
        try:
            await phone.hands.release()
        except DeviceFault:
            return

    async def close(self, resource: ResourceKey, permit: Permit) -> None:
        """The last view closed: stop the phone."""
        del permit
        phone = self._phones.get(resource.name)
        if phone is not None:
            with acting():
                await phone.stop()
