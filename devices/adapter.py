"""Ties the device library to the port: phones of this broker, their tools, their generations."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from devices.fleet import open_fleet
from devices.phone import Phone
from devices.port import inputs, views
from devices.port.faults import acting, reading
from devices.port.lives import Lives
from devices.spec import DeviceSpec
from lomi.contract.android import (
    AndroidDevices,
    AndroidInput,
    AndroidInputInput,
    AndroidLaunch,
    AndroidLaunchInput,
    AndroidListInput,
    AndroidLogcat,
    AndroidLogcatInput,
    AndroidOpenInput,
    AndroidPanel,
    AndroidRuntime,
    AndroidScreenshotInput,
    AndroidSnapshotInput,
    AndroidStartInput,
    AndroidStopInput,
    Devices,
)
from lomi.contract.artifact import AndroidSource, ArtifactFound
from lomi.contract.model import Observation
from lomi.core.own_ports import OwnPorts
from lomi.core.port import (
    Act,
    Adapter,
    AdapterFactory,
    Call,
    Ledger,
    Outcome,
    Permit,
    Picture,
    Read,
    Reply,
    ResourceKey,
)

SpecsOf = Callable[[Path], Sequence[DeviceSpec]]
"""Describes the devices of this broker, given the folder of the keys that they must trust."""


class AndroidAdapter:
    """Handlers over a fleet."""

    def __init__(self, lives: Lives, ledger: Ledger) -> None:
        self._lives = lives
        self._ledger = ledger

    def _phone(self, call: Call[Any]) -> Phone:
        return self._lives.phone(call.input.device_id)

    def check_known(self, call: Call[Any]) -> None:
        """The phone must be one of this broker's."""
        self._lives.phone(call.input.device_id)

    async def list(self, call: Call[AndroidListInput]) -> Reply:
        """The granted phones."""
        seen = [phone for phone in self._lives.phones() if call.grant.admits_device(phone.spec.device_id)]
        rows = tuple(
            views.device_view(phone, self._ledger.current(ResourceKey("android", phone.spec.device_id)))
            for phone in seen
        )
        devices = Devices(devices_revision=str(self._lives.changes), host_qualified=True, items=rows)
        lines = [
            f"{row.name} {row.device_id}: {row.phase}"
            + (f", generation {row.generation}" if row.generation else "")
            + (", SIMULATED" if row.simulated else "")
            for row in rows
        ]
        return Reply(
            data=AndroidDevices(workspace_id=call.input.workspace_id, devices=devices),
            text="\n".join(lines) or "no phones are granted",
        )

    async def open(self, call: Call[AndroidOpenInput], permit: Permit) -> Outcome:
        """A panel of a phone; nothing starts."""
        phone = self._phone(call)
        assert call.workspace is not None
        async with permit.effect():
            panel = await self._ledger.open_panel(call.workspace.id, "android", phone.spec.name, phone.spec.device_id)
        return Outcome(
            result=AndroidPanel(workspace_id=call.input.workspace_id, panel_id=panel.id, device_id=phone.spec.device_id)
        )

    async def start(self, call: Call[AndroidStartInput], permit: Permit) -> Outcome:
        """Boot it, or join a boot under way; a running one stays as it is."""
        with acting():
            running = await self._phone(call).start(effect=permit.effect())
        return self._runtime(call, running.identity.generation, ready=True)

    async def stop(self, call: Call[AndroidStopInput], permit: Permit) -> Outcome:
        """End exactly this generation; returns when it is observed gone."""
        with acting():
            await self._phone(call).stop(effect=permit.effect())
        return self._runtime(call, call.input.generation, ready=False)

    def _runtime(self, call: Call[Any], generation: str, *, ready: bool) -> Outcome:
        return Outcome(
            result=AndroidRuntime(
                workspace_id=call.input.workspace_id,
                device_id=call.input.device_id,
                generation=generation,
                ready=ready,
                stopped=not ready,
            )
        )

    async def input(self, call: Call[AndroidInputInput], permit: Permit) -> Outcome:
        """One event; what was seen after it is looked for once the receipt has settled."""
        given, phone = call.input, self._phone(call)
        before = phone.eyes.newest
        with acting():
            await inputs.send(phone.hands, given, permit.effect())
        return Outcome(
            result=AndroidInput(
                workspace_id=given.workspace_id,
                device_id=given.device_id,
                generation=given.generation,
                input_sequence=given.input_sequence,
            ),
            observe=partial(self._observe, phone, before, given.generation),
        )

    async def _observe(self, phone: Phone, before: Any, generation: str) -> Observation:
        with reading():
            return views.observation(await phone.eyes.observe(before, generation=generation))

    async def snapshot(self, call: Call[AndroidSnapshotInput]) -> Reply:
        """The hierarchy."""
        phone = self._phone(call)
        with reading():
            seen = await phone.eyes.snapshot(generation=call.input.generation)
        return views.snapshot_reply(seen, call.input, self._lives.limitations(phone))

    async def screenshot(self, call: Call[AndroidScreenshotInput]) -> Reply:
        """The picture: stored as an artifact, bounded beside the reply."""
        given, phone = call.input, self._phone(call)
        with reading():
            capture = await phone.eyes.capture(
                max_edge=given.max_edge, max_bytes=given.max_bytes, generation=given.generation
            )
        source = AndroidSource(
            workspace_id=given.workspace_id,
            panel_id=given.panel_id,
            device_id=given.device_id,
            generation=given.generation,
        )
        png, geometry = views.kept_picture(capture)
        stored = await self._ledger.artifacts.put_image(call, png, source, geometry)
        return Reply(
            data=ArtifactFound(artifact=stored.wire),
            text=views.capture_text(capture) + f"\nartifactId {stored.id}",
            pictures=(Picture("image/png", capture.bounded.png),),
        )

    async def launch(self, call: Call[AndroidLaunchInput], permit: Permit) -> Outcome:
        """Deliver the launch intent."""
        given, phone = call.input, self._phone(call)
        before = phone.eyes.newest
        with acting():
            await phone.packages.launch(
                given.package_name, given.activity, generation=given.generation, effect=permit.effect()
            )
        return Outcome(
            result=AndroidLaunch(
                workspace_id=given.workspace_id,
                panel_id=given.panel_id,
                device_id=given.device_id,
                generation=given.generation,
                package_name=given.package_name,
                activity=given.activity,
                intent_delivered=True,
            ),
            observe=partial(self._observe, phone, before, given.generation),
        )

    async def logcat(self, call: Call[AndroidLogcatInput]) -> Reply:
        """A page of one app's log."""
        given, phone = call.input, self._phone(call)
        with reading():
            page = await phone.logs.page(
                given.package_name,
                priority=given.min_priority,
                limit=given.limit,
                cursor=given.cursor,
                generation=given.generation,
            )
        log = AndroidLogcat(
            workspace_id=given.workspace_id,
            device_id=given.device_id,
            generation=given.generation,
            package_name=given.package_name,
            process_id=page.process_id,
            lines=page.lines,
            next_cursor=page.next_cursor,
            truncated=page.truncated,
        )
        return Reply(data=log, text="\n".join(page.lines) or "no lines of that priority")

    def tools(self) -> tuple[Read | Act, ...]:
        """The handlers, for the broker's table."""
        known = self.check_known
        return (
            Read(tool="lomi_android_list", read=self.list),
            Act(tool="lomi_android_open", act=self.open, check=known),
            Act(tool="lomi_android_start", act=self.start, check=known),
            Act(tool="lomi_android_stop", act=self.stop, check=known),
            Act(tool="lomi_android_input", act=self.input, check=self._lives.check_ref),
            Read(tool="lomi_android_snapshot", read=self.snapshot, check=known),
            Read(tool="lomi_android_screenshot", read=self.screenshot, check=known),
            Act(tool="lomi_android_launch", act=self.launch, check=known),
            Read(tool="lomi_android_logcat", read=self.logcat, check=known),
        )


def android_adapter(state: Path, specs_of: SpecsOf, own_ports: OwnPorts) -> AdapterFactory:
    """The adapter, for the composition root. `state` must be short: our adb server's socket lies in it."""

    def factory(ledger: Ledger) -> AbstractAsyncContextManager[Adapter]:
        return _open(state, specs_of, own_ports, ledger)

    return factory


@asynccontextmanager
async def _open(state: Path, specs_of: SpecsOf, own_ports: OwnPorts, ledger: Ledger) -> AsyncIterator[Adapter]:
    async with asyncio.TaskGroup() as tasks:
        lives = Lives(ledger, tasks, own_ports)
        async with open_fleet(
            state, next_generation=lives.next_generation, on_identity=lives.on_identity, changed=lives.changed
        ) as fleet:
            await lives.take_over(fleet, specs_of(fleet.server.user_home))
            adapter = AndroidAdapter(lives, ledger)
            yield Adapter(family="android", tools=adapter.tools(), runtimes=lives, limitations=lives.all_limitations())
