"""The life of a phone: start, stop, and who controls it."""

import asyncio
from typing import Literal

from lomi.client.acts import Act
from lomi.client.aio.acting import Acting
from lomi.client.aio.session import Session
from lomi.client.errors import StaleGenerationError, TargetBusyError, ToolError
from lomi.contract.android import (
    AndroidDevices,
    AndroidListInput,
    AndroidRuntime,
    AndroidStartInput,
    AndroidStopInput,
    DeviceView,
)
from lomi.contract.android_setup import AndroidManagement, DeviceManageInput, WipeDevice
from lomi.contract.codes import ErrorCode
from lomi.contract.panel import AndroidControl, PanelControlInput

LIFE_S = 200.0
"""Longer than the broker's own bound of a start, a stop or an installation."""
_LEASE_PAUSE_S = 0.1
_MANAGE_TRIES = 32


class PhoneLife(Acting):
    """One phone of the grant with a panel of its own.

    Attributes:
        name: its name in the owner's policy.
        device_id: its UUID.
        panel_id: the panel that we see it through.
        simulated: whether it is a `paper` phone and not Android.
        booted: whether this client started the present generation.
    """

    def __init__(self, session: Session, device: DeviceView, panel_id: str) -> None:
        super().__init__(session, panel_id)
        self.name = device.name
        self.device_id = device.device_id
        self.simulated = device.simulated
        self.booted = False
        self._generation = device.generation if device.phase == "running" else None
        self._lease_id: str | None = None
        self._sequence = 0
        self._one_input = asyncio.Lock()

    @property
    def generation(self) -> str:
        """The present life, as far as this client knows.

        Raises:
            StaleGenerationError: it was not started.
        """
        if self._generation is None:
            raise StaleGenerationError(
                ErrorCode.STALE_GENERATION, f"Phone {self.name} is not started.", reason="not_running"
            )
        return self._generation

    @property
    def running(self) -> bool:
        """Whether it was started, as far as this client knows."""
        return self._generation is not None

    @property
    def leased(self) -> bool:
        """Whether this session took control of the present life."""
        return self._lease_id is not None

    def noticed(self, device: DeviceView) -> None:
        """Take in how the broker lists it now: another life than the one that we knew ends what we had of it."""
        generation = device.generation if device.phase == "running" else None
        if generation != self._generation:
            self._begin(generation)
            self.booted = False

    async def start(self) -> Act[AndroidRuntime]:
        """Boot it and wait until it is ready.

        Raises:
            ToolError: it could not be started; `details` may name the emulator's last words.
        """
        act = await self._session.act(
            "lomi_android_start",
            lambda: AndroidStartInput(**self._session.revised(), panel_id=self.panel_id, device_id=self.device_id),
            AndroidRuntime,
            timeout_s=LIFE_S,
            keep=self._keep,
        )
        assert act.result is not None
        self._begin(act.result.generation)
        self.booted = True
        return act

    def _begin(self, generation: str | None) -> None:
        self._generation, self._lease_id, self._sequence = generation, None, 0

    async def stop(self) -> Act[AndroidRuntime]:
        """End the present life; done means observed gone."""
        generation = self.generation
        act = await self._session.act(
            "lomi_android_stop",
            lambda: AndroidStopInput(
                **self._session.revised(), panel_id=self.panel_id, device_id=self.device_id, generation=generation
            ),
            AndroidRuntime,
            generation=generation,
            timeout_s=LIFE_S,
            keep=self._keep,
        )
        self._begin(None)
        return act

    async def restart(self) -> Act[AndroidRuntime]:
        """Stop it if it runs, start a fresh generation, and take control again if this session had it."""
        had = self.leased
        if self.running:
            await self.stop()
        act = await self.start()
        if had:
            await self.lease()
        return act

    async def wipe(self) -> Act[AndroidManagement]:
        """Stop it if it runs and erase its data; start it anew afterwards.

        Raises:
            TargetNotFoundError: it is one of the owner's policy file, which no client manages.
            ScopeDeniedError: the grant lacks `android.manage`, or nobody decides it.
        """
        if self.running:
            await self.stop()
        for _ in range(_MANAGE_TRIES - 1):
            try:
                return await self._wiped()
            except ToolError as busy:
                # Another phone of the list was changed meanwhile; nothing was done to this one.
                if busy.reason not in ("devices_changed", "management_busy"):
                    raise
                await asyncio.sleep(_LEASE_PAUSE_S)
        return await self._wiped()

    async def _wiped(self) -> Act[AndroidManagement]:
        given = AndroidListInput(workspace_id=self._session.workspace_id)
        listed = (await self._session.read("lomi_android_list", given, AndroidDevices)).devices
        action = WipeDevice(
            expected_devices_revision=listed.devices_revision, device_id=self.device_id, confirmation=self.name
        )
        return await self._session.act(
            "lomi_android_device_manage",
            lambda: DeviceManageInput(**self._session.keyed(), action=action),
            AndroidManagement,
            timeout_s=LIFE_S,
            keep=self._keep,
        )

    async def lease(self, timeout_s: float = 0.0) -> Act[AndroidControl]:
        """Take control of the present life; others must let go first.

        Args:
            timeout_s: how long to wait while another session holds it.

        Raises:
            TargetBusyError: another session still holds it.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + timeout_s
        while True:
            try:
                act = await self._control("claim")
            except TargetBusyError as busy:
                if busy.reason != "already_leased" or clock() + _LEASE_PAUSE_S > end:
                    raise
                await asyncio.sleep(_LEASE_PAUSE_S)
                continue
            assert act.result is not None
            self._lease_id, self._sequence = act.result.lease_id, 0
            return act

    async def release(self) -> Act[AndroidControl]:
        """Give control back; the phone goes on running."""
        act = await self._control("release")
        self._lease_id = None
        return act

    async def _control(self, action: Literal["claim", "release"]) -> Act[AndroidControl]:
        generation = self.generation
        return await self._session.act(
            "lomi_panel_control",
            lambda: PanelControlInput(
                **self._session.revised(),
                panel_id=self.panel_id,
                action=action,
                device_id=self.device_id,
                generation=generation,
            ),
            AndroidControl,
            generation=generation,
            keep=self._keep,
        )
