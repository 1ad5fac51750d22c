"""Acts on phones: open a panel, start, stop, input, launch."""

from functools import partial
from typing import Any

from devices.faults import DeviceFault, TextRefused
from devices.hierarchy.snapshots import Snapshot
from devices.phone import Phone
from devices.port import inputs, views
from devices.port.faults import acting, ended, reading, unsure
from devices.port.lives import Lives
from lomi.contract.android import (
    AndroidInput,
    AndroidInputInput,
    AndroidLaunch,
    AndroidLaunchInput,
    AndroidOpenInput,
    AndroidPanel,
    AndroidRuntime,
    AndroidStartInput,
    AndroidStopInput,
)
from lomi.contract.artifact import AndroidSource
from lomi.contract.model import Observation
from lomi.core.port import Call, Ledger, Outcome, Permit
from lomi.core.refusal import EffectFailed, Refusal


class AndroidActs:
    """Handlers that act through a permit."""

    def __init__(self, lives: Lives, ledger: Ledger) -> None:
        self._lives = lives
        self._ledger = ledger

    def _phone(self, call: Call[Any]) -> Phone:
        return self._lives.phone(call.input.device_id)

    async def open(self, call: Call[AndroidOpenInput], permit: Permit) -> Outcome:
        """A panel of a phone; nothing starts."""
        phone = self._phone(call)
        assert call.workspace is not None
        async with permit.effect():
            try:
                opened = self._ledger.open_panel(call.workspace.id, "android", phone.spec.title, phone.spec.device_id)
                panel = await opened
            except Refusal as refused:
                raise EffectFailed(refused, partial=False) from refused
        return Outcome(
            result=AndroidPanel(workspace_id=call.input.workspace_id, panel_id=panel.id, device_id=phone.spec.device_id)
        )

    async def start(self, call: Call[AndroidStartInput], permit: Permit) -> Outcome:
        """Boot it, or join a boot under way; a running one stays as it is."""
        phone = self._phone(call)
        try:
            running = await phone.start(effect=permit.effect())
        except DeviceFault as fault:
            raise ended(fault, evidence=await self._last_words(call, phone, fault)) from fault
        return self._runtime(call, running.identity.generation, ready=True)

    async def _last_words(self, call: Call[AndroidStartInput], phone: Phone, fault: DeviceFault) -> str | None:
        """Keep what the emulator said as an artifact; the failure is told even where it can't be kept."""
        words = fault.evidence or phone.output
        if not words:
            return None
        source = AndroidSource(
            workspace_id=call.input.workspace_id,
            panel_id=call.input.panel_id,
            device_id=call.input.device_id,
            generation=phone.last_generation or "",
            required_scope="android.control",
        )
        try:
            return (await self._ledger.artifacts.put_bytes(call, words.encode(), source)).id
        except Refusal:
            return None

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
        observe = partial(self._observe, phone, before, given.generation)
        try:
            typed = await inputs.send(phone.hands, given, permit.effect())
        except TextRefused as fault:
            if fault.effect == "none":
                raise ended(fault) from fault
            return unsure(fault, observe)
        except DeviceFault as fault:
            raise ended(fault) from fault
        if typed is not None and typed.confirmed is None:
            return unsure(TextRefused("text_not_confirmed", "it cannot be read back", effect="unknown"), observe)
        return Outcome(
            result=AndroidInput(
                workspace_id=given.workspace_id,
                device_id=given.device_id,
                generation=given.generation,
                input_sequence=given.input_sequence,
            ),
            observe=observe,
        )

    async def _observe(self, phone: Phone, before: Snapshot | None, generation: str) -> Observation:
        with reading():
            return views.observation(await phone.eyes.observe(before, generation=generation))

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
