"""A client of the broker as a test needs it: paired, bound to a workspace, with fresh keys and the present revision."""

import contextlib
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.world import World
from lomi.client.client import Client, connect

Arguments = dict[str, Any]
UNSETTLED = ("queued", "awaiting_user", "running", "cancelling")


@dataclass(frozen=True)
class Answered:
    """A reply: data, or the error of an envelope; `raw` is its JSON."""

    raw: bytes
    data: dict[str, Any] = field(default_factory=dict)
    code: str | None = None
    reason: str | None = None
    error: dict[str, Any] = field(default_factory=dict)

    @property
    def result(self) -> dict[str, Any]:
        """The result of an operation."""
        return self.data["result"] or {}

    @property
    def state(self) -> str:
        """State and effect of a receipt, `failed/none`."""
        return f"{self.data['state']}/{self.data['effectState']}"

    @property
    def short(self) -> str:
        """The outcome in one line, as the guarantee table writes it."""
        if self.code is not None:
            return f"{self.code}" + (f" ({self.reason})" if self.reason else "")
        if self.data.get("kind") != "operation":
            return "answered"
        failure = self.data["result"] or {}
        why = f" {failure['code']}" if failure.get("kind") == "failure" else ""
        why += f" ({failure['reason']})" if why and failure.get("reason") else ""
        return f"receipt {self.state}{why}"


def answered(structured: bytes) -> Answered:
    """An envelope as the test reads it."""
    said = msgspec.json.decode(structured)
    if said["status"] == "error":
        return Answered(structured, code=said["code"], reason=said.get("reason"), error=said)
    return Answered(structured, data=said["data"])


class Agent:
    """One paired client. `workspace` is the one it works in."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.workspace = ""
        self.project = ""
        self.epoch = ""
        self._keys = itertools.count(1)

    async def bind(self, workspace: str | None = None) -> None:
        """Connect to a workspace (the first one in sight) and take its retry epoch."""
        if workspace is None:
            listed = (await self.ask("lomi_workspace_list")).data
            workspace = listed["items"][0]["id"]
        bound = (await self.ask("lomi_connect", workspaceId=workspace)).data
        self.workspace, self.project, self.epoch = workspace, bound["projectId"], bound["retryEpoch"]

    async def revision(self) -> str:
        """The present domain revision."""
        return str((await self.ask("lomi_workspace_list")).data["domainRevision"])

    async def keyed(self, **more: Any) -> Arguments:
        """Arguments of a keyed mutation: workspace, epoch and a fresh key."""
        return {
            "workspaceId": self.workspace,
            "retryEpoch": self.epoch,
            "requestKey": f"key-{next(self._keys)}",
            **more,
        }

    async def revised(self, **more: Any) -> Arguments:
        """The same with the present revision."""
        return await self.keyed(expectedRevision=await self.revision(), **more)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Answered:
        """Call a tool; error envelopes are answers too."""
        return answered((await self.client.call_raw(tool, msgspec.json.encode(arguments))).structured)

    async def ask(self, tool: str, **arguments: Any) -> Answered:
        """Call a read that must succeed."""
        said = await self.call(tool, arguments)
        assert said.code is None, said.raw
        return said

    async def settled(self, tool: str, arguments: Mapping[str, Any]) -> Answered:
        """Call a mutation and wait for its end, by the same call again where one may not wait for so long."""
        for _ in range(3):
            said = await self.call(tool, {"waitMs": 15000, **arguments})
            if said.code is not None or said.data.get("state") not in UNSETTLED:
                break
        return said

    async def do(self, tool: str, arguments: Mapping[str, Any]) -> Answered:
        """Call a mutation that must succeed."""
        said = await self.settled(tool, arguments)
        assert said.code is None, said.raw
        assert said.data.get("state") in (None, "succeeded"), said.raw
        return said


@contextlib.asynccontextmanager
async def agent(
    world: World,
    label: str = "qa",
    *,
    token: str | None = None,
    workspace: str | None = None,
    bind: bool = True,
    options: Mapping[str, str] | None = None,
) -> AsyncIterator[Agent]:
    """Connect, and bind unless told otherwise."""
    broker = world.live
    async with connect(
        broker.discovery_file, broker.discovery_key, label=label, token=token, options=options
    ) as client:
        made = Agent(client)
        if bind:
            await made.bind(workspace)
        yield made


def owner_client(world: World) -> AbstractAsyncContextManager[Client]:
    """A connection for the owner's own commands, for those that must not wait for a handshake."""
    broker = world.live
    return connect(broker.discovery_file, broker.discovery_key, label="lomi owner", options={"role": "owner"})


async def owner(world: World, command: str, **arguments: Any) -> dict[str, Any]:
    """One of the owner's own commands."""
    async with owner_client(world) as client:
        return (await client.call(f"owner.{command}", arguments)).plain()
