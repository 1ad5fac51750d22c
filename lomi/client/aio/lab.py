"""What a client starts from: the phones, pages and terminals of one workspace, and their orderly end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import UnsetType

from lomi.client.acts import Act
from lomi.client.aio.page import Page
from lomi.client.aio.page_screen import PageIdentity, popups_of
from lomi.client.aio.phone import Phone
from lomi.client.aio.session import Session
from lomi.client.aio.terminal import Terminal
from lomi.client.errors import (
    BrokerFaultError,
    ConnectionLostError,
    StaleGenerationError,
    TargetBusyError,
    ToolError,
)
from lomi.client.names import NameAbsentError
from lomi.contract.android import AndroidDevices, AndroidListInput, AndroidOpenInput, AndroidPanel, DeviceView
from lomi.contract.android_setup import AndroidSetup, Inventory, SetupPlanInput
from lomi.contract.browser import BrowserOpened, BrowserOpenInput
from lomi.contract.model import Result
from lomi.contract.panel import PanelChanged, PanelCloseInput, PanelListInput, Panels
from lomi.contract.terminal import TerminalCreated, TerminalCreateInput

_log = logging.getLogger(__name__)
_OPEN_S = 60.0
_PAUSE_S = 0.1
_MOST_ENDED = 20
_END_S = 60.0
"""How long the orderly end of all that was opened may take; the broker ends what is left with the session."""


def _passes(error: TargetBusyError | StaleGenerationError) -> bool:
    return isinstance(error, StaleGenerationError) or error.reason == "already_leased"


class Lab:
    """A session with one workspace. What it opens ends with it, but for phones that were told to stay.

    Attributes:
        instance_id: the broker's instance.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.instance_id = session.instance_id
        self._phones: dict[str, Phone] = {}
        self._kept: set[str] = set()
        self._pages: list[Page] = []
        self._terminals: list[Terminal] = []

    @property
    def session(self) -> Session:
        """For tools that have no method here: typed reads, acts with receipts, fresh keys."""
        return self._session

    @property
    def receipts(self) -> tuple[Act[Result], ...]:
        """The acts of this session in the order of their ends, at most the last 4096."""
        return self._session.acts

    @property
    def acted(self) -> int:
        """How many acts there were in all."""
        return self._session.count

    @property
    def scopes(self) -> frozenset[str]:
        """What this session may do."""
        return self._session.scopes

    @property
    def project_path(self) -> str:
        """The folder of the workspace's project."""
        return self._session.workspace.project_path

    async def download(self, artifact_id: str, into: Path) -> int:
        """Write an artifact of this session as a new file; its size in bytes. What failed midway leaves no file.

        Raises:
            TargetNotFoundError: there is none, or it is not there yet.
            BrokerFaultError: what came is not what was stored.
            OSError: the file is there already, or can't be written.
        """
        file = await asyncio.to_thread(into.open, "xb")
        try:
            with file:
                async for piece in self._session.artifact(artifact_id):
                    await asyncio.to_thread(file.write, piece)
        except BaseException:
            await asyncio.to_thread(into.unlink, missing_ok=True)
            raise
        return (await asyncio.to_thread(into.stat)).st_size

    async def phones(self) -> tuple[DeviceView, ...]:
        """The granted phones as they stand."""
        given = AndroidListInput(workspace_id=self._session.workspace_id)
        return (await self._session.read("lomi_android_list", given, AndroidDevices)).devices.items

    async def phone(
        self,
        name: str | None = None,
        *,
        start: bool = True,
        lease: bool = True,
        keep: bool = False,
        wait_s: float = 0.0,
    ) -> Phone:
        """A phone by its name or its image's, ready to be touched.

        Args:
            name: `phone-1`, or an image such as `paper-36`: then a phone of that image, a free one first. None is any.
            start: boot it if it doesn't run.
            lease: take control of it.
            keep: leave it running when the session ends; else what this client started is stopped.
            wait_s: how long to wait while others hold every phone that fits.

        Raises:
            NameAbsentError: no granted phone fits; the error lists those that are granted.
            TargetBusyError: others hold every one that fits.
            ToolError: it could not be started.
        """
        clock = asyncio.get_running_loop().time
        end, ended = clock() + wait_s, 0
        while True:
            refused: ToolError | None = None
            for device in await self.fitting(name):
                try:
                    return await self._ready(device, start=start, lease=lease, keep=keep)
                except (TargetBusyError, StaleGenerationError) as error:
                    # Another session that stops its phone just now ends the life that was listed; that passes.
                    ended += isinstance(error, StaleGenerationError)
                    if ended > _MOST_ENDED or error.effect != "none" or not _passes(error):
                        raise
                    refused = error
            if isinstance(refused, TargetBusyError) and clock() >= end:
                raise refused
            await asyncio.sleep(_PAUSE_S)

    async def fitting(self, name: str | None = None) -> tuple[DeviceView, ...]:
        """Phones that a name or an image's name means: first those that nobody else holds, running ones before others.

        Raises:
            NameAbsentError: no granted phone fits; the error lists those that are granted.
        """
        devices = await self.phones()
        if name is not None:
            chosen = [device for device in devices if name in (device.name, device.device_id)]
            chosen = chosen or [device for device in devices if device.name.startswith(f"{name}-")]
            chosen = chosen or await self._of_image(devices, name)
        else:
            chosen = list(devices)
        if not chosen:
            lines = [f"{device.name} ({device.phase})" for device in devices]
            said = f"offers no phone {name!r}; granted are:" if lines else f"offers no phone at all, so not {name!r}"
            raise NameAbsentError(str(name), "The grant", said, lines, 0)
        taken = await self._taken()
        return tuple(sorted(chosen, key=lambda device: (device.device_id in taken, device.phase != "running")))

    async def _of_image(self, devices: Sequence[DeviceView], image: str) -> list[DeviceView]:
        if not self.scopes & {"android.manage", "android.setup"}:
            return []
        given = SetupPlanInput(workspace_id=self._session.workspace_id, action=Inventory())
        found = (await self._session.read("lomi_android_setup_plan", given, AndroidSetup)).inventory
        ids = {one.device_id for one in found.devices if one.image == image} if not isinstance(found, UnsetType) else ()
        return [device for device in devices if device.device_id in ids]

    async def _panels(self) -> Panels:
        given = PanelListInput(workspace_id=self._session.workspace_id, limit=500)
        return await self._session.read("lomi_panel_list", given, Panels)

    async def _taken(self) -> set[str]:
        panels = (await self._panels()).items
        return {p.android_device_id for p in panels if p.android_device_id and p.ownership == "another_session"}

    async def _ready(self, device: DeviceView, *, start: bool, lease: bool, keep: bool) -> Phone:
        phone = self._phones.get(device.device_id)
        if phone is None:
            phone = Phone(self._session, device, await self._phone_panel(device.device_id))
            self._phones[device.device_id] = phone
        else:
            phone.noticed(device)
        if keep:
            self._kept.add(device.device_id)
        if start and not phone.running:
            await phone.start()
        if lease and phone.running and not phone.leased:
            await phone.lease()
        return phone

    async def _phone_panel(self, device_id: str) -> str:
        """A view of our own: one of another session may be closed at any time, and the phone with the last of them."""
        act = await self._session.act(
            "lomi_android_open",
            lambda: AndroidOpenInput(**self._session.revised(), device_id=device_id),
            AndroidPanel,
        )
        assert act.result is not None
        return act.result.panel_id

    async def page(self, url: str) -> Page:
        """Open a page of a granted origin in a browser context of its own, and wait until it has loaded.

        Raises:
            ScopeDeniedError: the origin is not granted.
            ToolError: it could not be opened.
        """
        act = await self._session.act(
            "lomi_browser_open",
            lambda: BrowserOpenInput(**self._session.revised(), url=url),
            BrowserOpened,
            timeout_s=_OPEN_S,
        )
        made = act.result
        if made is None or made.lease_id is None:
            raise BrokerFaultError("a page without its lease")
        named = PageIdentity(panel_id=made.panel_id, generation=made.browser_generation, lease_id=made.lease_id)
        return self._took(Page(self._session, named, made.navigation_id, url))

    async def popups(self, act: Act[Result]) -> tuple[Page, ...]:
        """The pages that an act opened, each with a lease of its own."""
        return tuple([self._took(Page(self._session, named, "", "")) for named in popups_of(act)])

    def _took(self, page: Page) -> Page:
        self._pages.append(page)
        return page

    async def terminal(self, folder: str = "", *, title: str = "python") -> Terminal:
        """A new terminal in a folder of the project; it runs with the user's own rights.

        Raises:
            ToolError: no profile is approved, no such folder, or the shell did not start.
        """
        act = await self._session.act(
            "lomi_terminal_create",
            lambda: TerminalCreateInput(**self._session.revised(), cwd_relative=folder, title=title),
            TerminalCreated,
        )
        if act.result is None or act.result.lease_id is None:
            raise BrokerFaultError("a terminal without its lease")
        terminal = Terminal(self._session, act.result)
        self._terminals.append(terminal)
        return terminal

    async def release(self, phone: Phone, *, keep: bool = False) -> None:
        """Let a phone go before the session ends: its lease, and unless `keep`, what this client started of it."""
        self._phones.pop(phone.device_id, None)
        await self._let_go(phone, keep=keep or phone.device_id in self._kept)
        self._kept.discard(phone.device_id)

    async def close(self) -> None:
        """End what this session opened; what fails is left to the broker, which ends it with the session."""
        try:
            async with asyncio.timeout(_END_S):
                for page in self._pages:
                    await self._end("page", page.close, skip=page.closed)
                for terminal in self._terminals:
                    await self._end("terminal", terminal.close, skip=terminal.closed)
                for phone in tuple(self._phones.values()):
                    await self._end("phone", partial(self.release, phone))
        except (TimeoutError, ConnectionLostError):
            return

    async def _end(self, what: str, end: Callable[[], Awaitable[object]], *, skip: bool = False) -> None:
        if skip:
            return
        try:
            await end()
        except ConnectionLostError:
            raise
        except ToolError as error:
            _log.debug("a %s did not end: %s", what, error)

    async def _let_go(self, phone: Phone, *, keep: bool) -> None:
        """Stop what this client started, unless it is to stay or another session took control of it meanwhile."""
        if phone.running and phone.booted and not keep and await self._held(phone):
            await phone.stop()
        elif phone.leased:
            await phone.release()
        views = [panel.id for panel in (await self._panels()).items if panel.android_device_id == phone.device_id]
        if phone.running and views == [phone.panel_id]:
            return  # closing the last view of a phone would stop it
        await self._session.act(
            "lomi_panel_close",
            lambda: PanelCloseInput(**self._session.revised(), panel_id=phone.panel_id),
            PanelChanged,
        )

    async def _held(self, phone: Phone) -> bool:
        if not phone.leased:
            try:
                await phone.lease()
            except TargetBusyError:
                return False
        return True
