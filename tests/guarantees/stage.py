"""One life of a broker with its sessions, and the real things that examples act on."""

import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import ALL_SCOPES, Agent, ClientEntry, World, agent, owner, policy_text
from harness.site import Site

DECIDED = (
    "lomi_panel_control",
    "lomi_project_open",
    "lomi_android_install_apk",
    "lomi_android_setup_apply",
    "lomi_android_device_manage",
    "lomi_browser_upload",
)
SET_UP = (*ALL_SCOPES, "android.setup", "android.manage")
PHONE, OTHER_PHONE = "phone-1", "phone-2"


def table_policy(site: Site) -> str:
    """Three clients: `mine` may use everything in workspace w1, `other` in its own, `bare` may only look."""
    common = {"decide": DECIDED, "origins": (site.origin,)}
    hashes = {label: token_sha256(label) for label in ("mine", "other")}
    return policy_text(
        ClientEntry(
            label="mine",
            scopes=SET_UP,
            workspaces=("w1",),
            devices=(PHONE,),
            token_sha256=hashes["mine"],
            **common,
        ),
        ClientEntry(label="other", scopes=SET_UP, devices=(OTHER_PHONE,), token_sha256=hashes["other"], **common),
        ClientEntry(label="bare", scopes=("workspace.read",)),
        phones=(PHONE, OTHER_PHONE),
    )


def repository(site: Site) -> dict[str, str]:
    """Where a broker of this table asks for Android packages."""
    return {"LOMI_ANDROID_REPOSITORY": f"{site.origin}/android/"}


def token_sha256(token: str) -> str:
    """What a policy holds of a token."""
    import hashlib

    return hashlib.sha256(token.encode()).hexdigest()


@dataclass
class Actor:
    """One session and what it has made so far."""

    label: str
    agent: Agent
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def device_id(self) -> str:
        """The phone that it may use."""
        return str(self.kept["phone"]["deviceId"])


class Stage:
    """The actors of one broker life; `act` reconnects an actor whose session has ended."""

    def __init__(self, world: World, site: Site) -> None:
        self.world = world
        self.site = site
        self.numbers = itertools.count(1)
        self.pages_opened = 0
        self._actors: dict[str, Actor] = {}
        self._closing = contextlib.AsyncExitStack()
        self._open: dict[str, contextlib.AsyncExitStack] = {}

    async def actor(self, label: str) -> Actor:
        """The actor of a label, connected and bound."""
        if label not in self._actors:
            stack = contextlib.AsyncExitStack()
            token = label if label != "bare" else None
            connected = await stack.enter_async_context(agent(self.world, label, token=token, bind=False))
            self._open[label] = stack
            made = Actor(label, connected)
            if label == "other":
                await self._own_project(made)
            else:
                await connected.bind("w1")
            self._actors[label] = made
        return self._actors[label]

    async def _own_project(self, actor: Actor) -> None:
        folder = self.world.root / "other"
        folder.mkdir(exist_ok=True)
        listed = (await actor.agent.ask("lomi_workspace_list")).data["items"]
        mine = next((row["id"] for row in listed if row["projectPath"] == str(folder)), None)
        if mine is None:
            await actor.agent.bind("w1")
            arguments = await actor.agent.revised(projectPath=str(folder), name="other")
            mine = (await actor.agent.do("lomi_project_open", arguments)).result["workspaceId"]
        await actor.agent.bind(mine)

    async def drop(self, label: str) -> None:
        """Forget an actor; its session ends if it has not yet."""
        self._actors.pop(label, None)
        stack = self._open.pop(label, None)
        if stack is not None:
            await stack.aclose()

    async def close(self) -> None:
        """End every session."""
        self.pages_opened = 0
        for label in tuple(self._open):
            await self.drop(label)

    async def session_of(self, label: str) -> str:
        """The id of an actor's session, as its owner sees it."""
        sessions = (await owner(self.world, "status"))["sessions"]
        (found,) = [row["id"] for row in sessions if row["label"] == label]  # type: ignore[union-attr,index]
        return str(found)

    def fresh(self, word: str) -> str:
        """A name that was not used yet in this table."""
        return f"{word}-{next(self.numbers)}"

    def folder(self, actor: Actor) -> Path:
        """The folder of an actor's project."""
        return self.world.root / "other" if actor.label == "other" else self.world.project


@contextlib.asynccontextmanager
async def staged(world: World, site: Site) -> AsyncIterator[Stage]:
    """The actors of the present broker."""
    stage = Stage(world, site)
    try:
        yield stage
    finally:
        await stage.close()
