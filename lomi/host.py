"""The composition root: the only module that knows the broker and every adapter."""

import asyncio
import ctypes
import logging
import os
import sys
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from browser.adapter import browser_adapter
from devices.adapter import android_adapter
from lomi.broker.broker import Broker, BrokerSetting, open_broker
from lomi.broker.deciders import Decider
from lomi.broker.handlers.workspace import folder_identity
from lomi.broker.host_gate import this_host
from lomi.broker.log_file import opened_log
from lomi.broker.owner.backend import OwnerBackend, OwnerSetting
from lomi.broker.pairing import PairingAsker
from lomi.broker.policy import DevicePolicy, Policy
from lomi.broker.preferences import PreferencesError, read_preferences
from lomi.broker.yolo import YoloDecider, YoloSwitch
from lomi.client.protocol import ProtocolBrokenError
from lomi.client.service import serve_calls
from lomi.contract.limits import Limits
from lomi.core import layout as layouts
from lomi.core.backend import Backend
from lomi.core.failpoints import Failpoints
from lomi.core.ids import device_uuid
from lomi.core.layout import PanelRecord, ProjectRecord, WorkspaceRecord
from lomi.core.log_fields import fields
from lomi.core.own_ports import OwnPorts
from lomi.core.port import AdapterFactory
from lomi.disk.root import identity_of
from lomi.host_devices import specs_for
from lomi.host_sdk import sdk_setting
from lomi.link.connection import Connection, Wire
from lomi.link.limits import LinkLimits
from lomi.link.server import Endpoint, serve
from lomi.store import Store
from lomi.terminals.adapter import terminal_adapter

_PR_SET_CHILD_SUBREAPER = 36
"""Source: prctl(2)."""
_log = logging.getLogger("lomi.host")


class SystemClock:
    """The machine's clock (the port's `Clock`)."""

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSetting:
    """What `lomi up` was asked for. `devices` are ensured; `project` is opened with a workspace `main`."""

    home: Path
    project: Path
    policy_file: Path | None
    limits: Limits
    policy: Policy | None
    decider: Decider
    asker: PairingAsker | None
    devices: tuple[DevicePolicy, ...]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What a client needs to find this broker, and what its owner must know: YOLO, and preferences not to be read."""

    instance_id: str
    discovery_file: Path
    discovery_key: str
    workspace_id: str
    yolo: bool = False
    damage: str | None = None


def _mcp_face() -> Callable[[Wire, Backend], Awaitable[None]]:
    # The SDK is half of what a broker loads, and one whose clients are tests never speaks MCP.
    from lomi.mcp.wire_session import serve_mcp  # noqa: PLC0415

    return serve_mcp


class BothFaces:
    """Serves both kinds of connection; a client that breaks its protocol loses its connection and nothing else."""

    async def mcp(self, connection: Connection, backend: Backend) -> None:
        """Serve an MCP helper."""
        serve_mcp = await asyncio.to_thread(_mcp_face)
        await serve_mcp(connection, backend)

    async def calls(self, connection: Connection, backend: Backend) -> None:
        """Serve a client."""
        try:
            await serve_calls(connection, backend)
        except ProtocolBrokenError:
            return


def become_subreaper() -> None:
    """Adopt our children's orphans, so that ancestry tells who is inside. Linux only; elsewhere nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


async def ensure_project(broker: Broker, path: Path) -> str:
    """Open `path` as a project with a workspace `main`, unless it is open already; returns the workspace's id."""
    room = broker.world.layout
    canonical, device, inode = await asyncio.to_thread(folder_identity, path)
    for project in room.layout.projects.values():
        owned = room.layout.workspaces_of(project.id)
        if (project.device, project.inode) == (device, inode) and owned:
            return owned[0].id
    ids = room.counters
    project = ProjectRecord(ids.id("project"), canonical.name or str(canonical), str(canonical), device, inode)
    workspace = WorkspaceRecord(ids.id("workspace"), project.id, "main")
    changed = layouts.open_project(room.layout, project)
    scratch = PanelRecord(ids.id("panel"), "file", "Scratch")
    await room.change(layouts.create_workspace(changed, workspace, ids.id("tab"), scratch))
    return workspace.id


async def clear_dead_layout(broker: Broker) -> None:
    """Close the panels of terminals and pages: their runtimes ended with their broker. Phones keep theirs."""
    room = broker.world.layout
    changed = room.layout
    for record in tuple(changed.panels.values()):
        if record.resource_kind in ("terminal", "browser"):
            changed = layouts.close_panel(changed, record.id)
    await room.change(changed)


def adapters_for(
    setting: HostSetting, devices: Mapping[str, DevicePolicy], names: dict[str, str]
) -> Sequence[AdapterFactory]:
    """The adapters of this build, with what each needs of the home; `names` of phones are kept current."""
    phones, own_ports = setting.home / "devices", OwnPorts()
    sdk = sdk_setting(phones / "sdk", setting.environment, max(0, setting.limits.devices - len(devices)), names)
    return (
        terminal_adapter(setting.home / "terminals", setting.environment),
        android_adapter(phones, specs_for(phones, devices, setting.environment), own_ports, sdk),
        browser_adapter(setting.environment, own_ports, setting.limits.browsers),
    )


def yolo_of(home: Path) -> YoloSwitch:
    """YOLO as the home's preferences say; off where they can't be read. Blocks."""
    try:
        return YoloSwitch(on=read_preferences(home).yolo_mode)
    except PreferencesError as damage:
        return YoloSwitch(damage=f"{damage}; YOLO is off and nothing is saved until it is repaired or moved away")


@asynccontextmanager
async def _logged(setting: HostSetting) -> AsyncIterator[None]:
    """`LOMI_DEBUG` shows whole lines on standard error, for whoever works on Lomi itself; the file stays redacted."""
    with opened_log(setting.home, whole="LOMI_DEBUG" in setting.environment):
        _log.info("the broker begins", extra=fields(peer=os.getpid()))
        yield
        _log.info("the broker ends")


@asynccontextmanager
async def open_host(setting: HostSetting, stop: asyncio.Event) -> AsyncIterator[Ready]:
    """Open store, broker, adapters and socket; everything that was started ends with the context.

    Raises:
        StoreLocked, StoreRefused: the home can't be opened; nothing in it was changed.
        DiskRefusedError, LinkError: the home or the socket directory is not ours alone.
    """
    become_subreaper()
    clock, failpoints, instance_id = SystemClock(), Failpoints(setting.environment), str(uuid.uuid4())
    setting.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    opening = Store.open(
        setting.home, instance_id=instance_id, limits=setting.limits, clock=clock, failpoints=failpoints
    )
    async with opening as store, _logged(setting):
        yolo = await asyncio.to_thread(yolo_of, setting.home)
        # The home, and the policy file: its hash of a token is as good as the token.
        guarded = (setting.home, *((setting.policy_file,) if setting.policy_file else ()))
        protected = frozenset({identity_of(place) for place in guarded})
        namespace = store.namespace_uuid
        devices = {device_uuid(namespace, device.name): device for device in setting.devices}
        broker_setting = BrokerSetting(
            instance_id=instance_id,
            limits=setting.limits,
            clock=clock,
            random_bytes=os.urandom,
            failpoints=failpoints,
            decider=YoloDecider(setting.decider, yolo),
            policy=setting.policy,
            asker=setting.asker,
            device_ids=lambda name: device_uuid(namespace, name),
            host=this_host(),
            protected=protected,
            faces=BothFaces(),
            yolo=yolo,
        )
        names = {device_id: device.name for device_id, device in devices.items()}
        factories = adapters_for(setting, devices, names)
        async with open_broker(broker_setting, store, factories) as broker:
            await clear_dead_layout(broker)
            workspace_id = await ensure_project(broker, setting.project)
            owner = OwnerSetting(
                home=setting.home,
                stop=stop,
                yolo=yolo,
                limitations=lambda: this_host().limitations,
                qualified=this_host().qualified,
                devices=names,
            )
            async with _listening(setting, broker, instance_id, owner) as endpoint:
                yield Ready(
                    instance_id=instance_id,
                    discovery_file=endpoint.discovery_path,
                    discovery_key=endpoint.discovery_key,
                    workspace_id=workspace_id,
                    yolo=yolo.on,
                    damage=yolo.damage,
                )
                broker.world.closing = True


@asynccontextmanager
async def _listening(
    setting: HostSetting, broker: Broker, instance_id: str, owner: OwnerSetting
) -> AsyncIterator[Endpoint]:
    limits = LinkLimits(
        max_connections=setting.limits.connections,
        max_handshakes=setting.limits.handshakes,
        handshake_queue_seconds=setting.limits.queue_over_bound_s,
    )
    async with serve(
        setting.home,
        instance_id,
        limits=limits,
        on_connection=broker.connections.with_owner(partial(OwnerBackend, broker, owner)),
        environment=setting.environment,
    ) as endpoint:
        yield endpoint
