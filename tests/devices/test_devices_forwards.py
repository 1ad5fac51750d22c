"""No host port is forwarded for a phone, however many run and whatever is asked of them."""

import asyncio
from pathlib import Path

from device_rig import a_fleet, spec_for

from devices.phone import Phone


async def test_no_host_port_is_forwarded(tmp_path: Path) -> None:
    """Eight phones at once start, show, capture and take a tap: our adb server forwards nothing, then or after."""

    async def used(phone: Phone) -> None:
        await phone.start()
        await phone.eyes.snapshot()
        await phone.eyes.capture()
        await phone.hands.press("Home")

    async with a_fleet(tmp_path) as fleet:
        phones = [fleet.phone(spec_for(tmp_path, f"p{number}")) for number in range(8)]
        async with asyncio.TaskGroup() as tasks:
            for phone in phones:
                tasks.create_task(used(phone))
        consoles = {phone.identity.ports.console for phone in phones if phone.identity is not None}
        assert len(consoles) == 8
        assert await fleet.server.client.ask("host:list-forward") == ""
        await fleet.stop_all()
        assert await fleet.server.client.ask("host:list-forward") == ""
