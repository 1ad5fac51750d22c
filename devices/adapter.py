"""Ties the device library to the port: phones of this broker, their tools, their generations."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from devices.fleet import open_fleet
from devices.port.actions import AndroidActs
from devices.port.installs import AndroidInstalls
from devices.port.lives import Lives, Said
from devices.port.manage import AndroidManage
from devices.port.reads import AndroidReads
from devices.port.sdk_room import SdkRoom, SdkSetting
from devices.port.setup import AndroidSetup
from devices.port.videos import AndroidVideos
from devices.spec import DeviceSpec
from devices.world import World
from lomi.core.own_ports import OwnPorts
from lomi.core.port import Act, Adapter, AdapterFactory, Call, Ledger, Read
from lomi.core.recording import Recordings

SpecsOf = Callable[[Path], Sequence[DeviceSpec]]
"""Describes the devices of this broker, given the folder of the keys that they must trust."""


def _tools(lives: Lives, room: SdkRoom, ledger: Ledger, recordings: Recordings) -> tuple[Read | Act, ...]:
    """The handlers, for the broker's table."""
    reads, acts, installs = (
        AndroidReads(lives, room, ledger, AndroidVideos(lives, recordings)),
        AndroidActs(lives, ledger),
        AndroidInstalls(lives, ledger),
    )
    setup, manage = AndroidSetup(room, lives, ledger, World().monotonic), AndroidManage(room, lives, ledger)

    def known(call: Call[Any]) -> None:
        lives.phone(call.input.device_id)

    def may_start(call: Call[Any]) -> None:
        known(call)
        room.check_not_held(call.input.device_id)

    return (
        Read(tool="lomi_android_list", read=reads.list),
        Act(tool="lomi_android_open", act=acts.open, check=known),
        Act(tool="lomi_android_start", act=acts.start, check=may_start),
        Act(tool="lomi_android_stop", act=acts.stop, check=known),
        Act(tool="lomi_android_input", act=acts.input, check=lives.check_ref),
        Read(tool="lomi_android_snapshot", read=reads.snapshot, check=known),
        Read(tool="lomi_android_screenshot", read=reads.screenshot, check=known),
        Act(tool="lomi_android_launch", act=acts.launch, check=known),
        Read(tool="lomi_android_logcat", read=reads.logcat, check=known),
        Act(tool="lomi_android_install_apk", act=installs.install, check=known, plan=installs.plan),
        Read(tool="lomi_android_setup_plan", read=setup.read),
        Act(tool="lomi_android_setup_apply", act=setup.apply, check=setup.check, plan=setup.consent),
        Act(tool="lomi_android_device_manage", act=manage.act, check=manage.check, plan=manage.consent),
    )


def android_adapter(state: Path, specs_of: SpecsOf, own_ports: OwnPorts, sdk: SdkSetting) -> AdapterFactory:
    """The adapter, for the composition root. `state` must be short: our adb server's socket lies in it."""

    def factory(ledger: Ledger) -> AbstractAsyncContextManager[Adapter]:
        return _open(state, specs_of, own_ports, sdk, ledger)

    return factory


@asynccontextmanager
async def _open(
    state: Path, specs_of: SpecsOf, own_ports: OwnPorts, sdk: SdkSetting, ledger: Ledger
) -> AsyncIterator[Adapter]:
    async with asyncio.TaskGroup() as tasks:
        lives = Lives(ledger, tasks, own_ports)
        async with open_fleet(
            state, next_generation=lives.next_generation, on_identity=lives.on_identity, changed=lives.changed
        ) as fleet:
            room = SdkRoom(sdk, fleet.server.user_home)
            managed = await room.open()
            await lives.take_over(fleet, (*specs_of(fleet.server.user_home), *managed))
            await lives.refresh(room)
            recordings = Recordings(ledger, tasks)
            tools = _tools(lives, room, ledger, recordings)
            try:
                yield Adapter(family="android", tools=tools, runtimes=lives, limitations=Said(lives.all_limitations))
            finally:
                recordings.close()
