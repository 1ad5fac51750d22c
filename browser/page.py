"""One page: a generation. Its frames, refs and events, and the reads that change nothing."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import msgspec

from browser.activity import Activity
from browser.errors import BlockedError, BrowserError, ContextGoneError, PageEndedError, UnresponsiveError
from browser.frames import FrameFacts, FrameTree, origin_of
from browser.inspector.chromium import Context, Target
from browser.inspector.keyboard import Keyboard
from browser.snapshot.lines import Walked, nodes_of
from browser.snapshot.refs import Refs
from browser.values import Found, FrameSummary, Node, Snapshot, Viewport
from browser.wire import ATTACH_S, Faults, Nothing, RemoteObject, ask, listen, send
from browser.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from browser.display import Display
    from browser.human import HumanHand
    from browser.logs import Logs
    from browser.network import Network
    from browser.pending import Pending
    from browser.profile import Profile
    from browser.screencast import Screencast

T = TypeVar("T")

MOST_NODES = 200
_LISTED_HOSTS = 64


class _FrameWalk(NamedTuple):
    """What was found in one frame's document."""

    world: World
    walked: Walked
    nodes: tuple[Node, ...]


def started(tasks: asyncio.TaskGroup, work: Coroutine[object, object, object]) -> bool:
    """Start a task; False when the pool that it belongs to is ending, and with it all that the task is about."""
    try:
        tasks.create_task(work)
    except RuntimeError:
        work.close()
        return False
    return True


class Attempt(Generic[T]):
    """A call that goes on in the background while its caller waits for it or for something else."""

    def __init__(self) -> None:
        self.done = False
        self._value: list[T] = []
        self._error: BaseException | None = None

    async def run(self, work: Coroutine[object, object, T], finished: Callable[[], None]) -> None:
        """Run the call to its end and keep its outcome; errors of ours and of the engine do not leave the task."""
        try:
            self._value.append(await work)
        except BrowserError as error:
            self._error = error
        finally:
            self.done = True
            finished()

    def fail(self, error: BrowserError) -> None:
        """It is over without having begun."""
        self._error = error
        self.done = True

    def result(self) -> T:
        """The call's answer, or its error raised."""
        if self._error is not None:
            raise self._error
        return self._value[0]


class _Property(msgspec.Struct):
    name: str = ""
    value: RemoteObject | None = None


class _Properties(msgspec.Struct):
    result: list[_Property] = []


class _Shadow(msgspec.Struct, rename="camel"):
    backend_node_id: int
    shadow_root_type: str | None = None


class _DescribedNode(msgspec.Struct, rename="camel"):
    shadow_roots: list[_Shadow] = []


class _Described(msgspec.Struct):
    node: _DescribedNode


class _Resolved(msgspec.Struct):
    object: RemoteObject


class Page:
    """A page of an isolated context: one generation that ends once and for good.

    Reads (`snapshot`, `find`) never wait for actions. Actions of the other modules take `turn`, so that one page
    does one thing at a time.
    """

    def __init__(
        self,
        *,
        generation: str,
        context: Context,
        target: Target,
        tasks: asyncio.TaskGroup,
        clock: Callable[[], float],
    ) -> None:
        self.generation = generation
        self.context = context
        self.target = target
        self.session = target.session
        self.keyboard = Keyboard(target.session)
        self.tasks = tasks
        self.clock = clock
        self.faults = Faults()
        self.turn = asyncio.Lock()
        self.activity = Activity()
        self.refs = Refs()
        self.frames = FrameTree(self.session, self.faults, context.chromium.child, self._follow_up)
        self.ended = asyncio.Event()
        self.limitations: tuple[str, ...] = ()
        self.profile: Profile
        self.pending: Pending
        self.logs: Logs
        self.network: Network
        self.human: HumanHand
        self.screencast: Screencast
        self.display: Display
        self.staged: list[Path] = []
        self.on_ended: list[Callable[[str], None]] = []
        self.on_navigation: list[Callable[[], None]] = []
        self._navigation = 0
        self._document_began = 0

    async def attach(self, *before: Coroutine[object, object, None]) -> None:
        """Follow the page from now on; `before` are calls that go out ahead of our own."""
        frames = self.frames
        frames.on_navigated = self._navigated
        frames.on_within = self._within
        frames.on_session.append(
            lambda session: self.activity.follow(
                session, lambda: frames.main_id, self.faults, main=session is self.session
            )
        )
        self.session.on_ended.append(self._closed)
        listen(self.session, "Inspector.targetCrashed", Nothing, lambda _event: self._crashed(), self.faults)
        await asyncio.gather(
            *before,
            send(self.session, "Network.enable", deadline_s=ATTACH_S),
            send(self.session, "DOM.enable", deadline_s=ATTACH_S),
            send(self.session, "Inspector.enable", deadline_s=ATTACH_S),
            frames.attach(),
        )

    def _closed(self) -> None:
        # When a whole engine dies its pages may be reported closed just before it is: leave room for the true reason.
        asyncio.get_running_loop().call_later(0.05, self.end, "closed")

    def _crashed(self) -> None:
        self.end("page_crashed")
        self.session.end("page_crashed")
        self.context.chromium.close_target(self.target.id)

    def _navigated(self, frame: FrameFacts) -> None:
        if frame.id == self.frames.main_id:
            self._navigation += 1
            self._document_began = self._navigation
            self.activity.document_came()
            for told in self.on_navigation:
                told()

    def _within(self, frame_id: str, _url: str) -> None:
        if frame_id == self.frames.main_id:
            self._navigation += 1
            self.activity.within += 1
            self.activity.stir()

    def popup_arrived(self, name: str | None) -> None:
        """A window this page opened is there (by id) or was refused (None)."""
        if name is not None:
            self.activity.opened.append(name)
        self.activity.arrived()

    def end(self, reason: str) -> None:
        """The generation is over; the first reason stays."""
        if self.activity.ended is None:
            self.activity.ended = reason
            self.ended.set()
            self.activity.stir()
            for told in tuple(self.on_ended):
                told(reason)

    @property
    def navigation_id(self) -> str:
        """``generation:n``; n grows with every new document and every change of address."""
        return f"{self.generation}:{self._navigation}"

    def same_document(self, navigation_id: str) -> bool:
        """Whether a navigation id was given for the document that is there now, steps within it not counting."""
        generation, _, number = navigation_id.rpartition(":")
        return (
            generation == self.generation
            and number.isdecimal()
            and self._document_began <= int(number) <= self._navigation
        )

    @property
    def url(self) -> str:
        """Address of the main document."""
        facts = self.frames.facts.get(self.frames.main_id)
        return (facts.url if facts else "") or "about:blank"

    async def first_document(self, seconds: float) -> None:
        """Wait until a window that was opened with an address shows a document, was refused it, or ended."""
        deadline = self.clock() + seconds
        activity = self.activity
        while not (activity.committed or activity.refused or activity.ended or self._blank_for_good()):
            if not await activity.wait(deadline - self.clock()):
                return

    def _blank_for_good(self) -> bool:
        # A window without an address is at about:blank from the start; one that awaits its document is nowhere.
        facts = self.frames.facts.get(self.frames.main_id)
        return facts is not None and facts.url not in {"", ":"}

    @property
    def origin(self) -> str:
        """Origin of the main document."""
        return origin_of(self.url)

    def require_live(self) -> None:
        """Raises PageEndedError when the generation is over."""
        if self.activity.ended is not None:
            raise PageEndedError(self.activity.ended)

    def require_free(self) -> None:
        """Raises PageEndedError or BlockedError when nothing can be done or seen in the page now."""
        self.require_live()
        if self.activity.dialog is not None:
            raise BlockedError("dialog_open", dialog=self.activity.dialog)

    def background(self, work: Coroutine[object, object, T]) -> Attempt[T]:
        """Start a call whose end wakes the page's waiters."""
        attempt: Attempt[T] = Attempt()
        if not started(self.tasks, attempt.run(work, self.activity.stir)):
            work.close()
            attempt.fail(PageEndedError("engine_stopped"))
        return attempt

    def _follow_up(self, work: Coroutine[object, object, None]) -> None:
        self.background(work)

    async def unless_blocked(self, work: Coroutine[object, object, T], seconds: float) -> Attempt[T]:
        """Run a call until it ends, a dialog opens, the page ends or time is up.

        The attempt says whether it is done.
        """
        attempt = self.background(work)
        deadline = self.clock() + seconds
        while not attempt.done and self.activity.dialog is None and self.activity.ended is None:
            if not await self.activity.wait(deadline - self.clock()):
                break
        return attempt

    def outcome(self, attempt: Attempt[T], call: str) -> T | None:
        """What an attempt inside an effect came to; None where a dialog or the page's end cut the wait short.

        Raises:
            UnresponsiveError: it is not over in time, so nobody knows; or what the attempt raised.
        """
        if attempt.done:
            return attempt.result()
        if not self.activity.interrupted():
            raise UnresponsiveError("page_unresponsive", call=call)
        return None

    async def main_world(self, seconds: float = 3.0) -> World:
        """The main document's world.

        Raises:
            PageEndedError, BlockedError: as `require_free`.
            UnresponsiveError: no document arrived in time.
        """
        self.require_free()
        world = await self.frames.main_world(seconds)
        if world is None:
            self.require_live()
            raise UnresponsiveError("page_unresponsive", call="document")
        return world

    async def walk(self, world: World, frame: str, function: str = "collect", **options: object) -> Walked:
        """One walk of one document, with closed shadow roots opened at first sight."""
        options = {"most": MOST_NODES, **options, "base": self.refs.base(frame)}
        walked = await world.call(function, options, shape=Walked, deadline_s=6.0)
        if walked.hosts and await self._open_closed_roots(world):
            walked = await world.call(function, options, shape=Walked, deadline_s=6.0)
        return walked

    async def _open_closed_roots(self, world: World) -> bool:
        hosts = await world.handle("hiding")
        if hosts is None:
            return False
        found = await ask(
            world.session, "Runtime.getProperties", {"objectId": hosts, "ownProperties": True}, _Properties
        )
        objects = [p.value.object_id for p in found.result if p.name.isdecimal() and p.value and p.value.object_id]
        opened = await asyncio.gather(*(self._open_closed_root(world, host) for host in objects[:_LISTED_HOSTS]))
        await send(world.session, "Runtime.releaseObjectGroup", {"objectGroup": "lomi"})
        return any(opened)

    async def _open_closed_root(self, world: World, host: str) -> bool:
        described = await ask(world.session, "DOM.describeNode", {"objectId": host}, _Described)
        root = next((shadow for shadow in described.node.shadow_roots if shadow.shadow_root_type == "closed"), None)
        if root is None:
            return False
        where = {"backendNodeId": root.backend_node_id, "executionContextId": world.context_id, "objectGroup": "lomi"}
        resolved = await ask(world.session, "DOM.resolveNode", where, _Resolved)
        if resolved.object.object_id is None:
            return False
        await world.handle("adopt", host, resolved.object.object_id, by_value=True)
        return True

    def admit(self, world: World, frame: str, nodes: tuple[Node, ...], following: int) -> bool:
        """Record the refs of a walk; False when its document is already gone and nothing of it may be shown."""
        if self.frames.world(world.frame_id) is not world:
            return False
        self.refs.admit(frame, world.unique, nodes, following)
        return True

    async def snapshot(self, *, most: int = MOST_NODES, observation: bool = False) -> Snapshot:
        """What the page offers now: at most `most` nodes, viewport first, over at most 16 frames.

        Raises:
            BlockedError: a dialog is open.
            PageEndedError: the generation is over.
            UnresponsiveError: the page does not answer.
        """
        for _ in range(4):
            taken = await self._snapshot(most, observation)
            if taken is not None:
                return taken
        raise UnresponsiveError("page_unresponsive", call="snapshot")

    async def _snapshot(self, most: int, observation: bool) -> Snapshot | None:
        main = await self.main_world()
        await self.frames.adopt_separate()
        listed, omitted = self.frames.listed()
        worlds = [world for frame in listed if (world := self.frames.world(frame)) is not None]
        if len(worlds) == 1:
            walks = [await self._frame_walk(worlds[0], most)]
        else:
            walks = await asyncio.gather(*(self._frame_walk(world, most) for world in worlds))
        if not walks or walks[0] is None or worlds[0] is not main:
            return None
        self.refs.forget_documents(world.unique for world in worlds)
        seen = [walk for walk in walks if walk is not None]
        omitted += len(worlds) - len(seen)
        counts: dict[str, int] = {}
        for walk in seen:
            for role, number in walk.walked.counts.items():
                counts[role] = counts.get(role, 0) + number
        nodes = [node for walk in seen for node in walk.nodes]
        nodes.sort(key=lambda node: not node.in_viewport)
        first = walks[0].walked
        return Snapshot(
            snapshot_id=self.refs.name(observation=observation),
            generation=self.generation,
            navigation_id=self.navigation_id,
            url=first.url,
            origin=origin_of(first.url),
            title=first.title,
            viewport=Viewport(round(first.width), round(first.height), first.scale),
            scroll=(first.scroll_x, first.scroll_y),
            full_height=round(first.full_height),
            frames=tuple(self._summary(walk.world, walk.walked) for walk in seen),
            nodes=tuple(nodes[:most]),
            counts=counts,
            total=sum(walk.walked.total for walk in seen),
            in_viewport=sum(walk.walked.near for walk in seen),
            omitted_frames=omitted,
            cut=any(walk.walked.cut for walk in seen),
            captured_at_ms=int(time.time() * 1000),
            limitations=self.limitations,
        )

    async def _frame_walk(self, world: World, most: int) -> _FrameWalk | None:
        frame = self.frames.key(world.frame_id)
        try:
            walked = await self.walk(world, frame, most=most)
        except ContextGoneError:
            return None
        nodes = nodes_of(walked.items, frame)
        return _FrameWalk(world, walked, nodes) if self.admit(world, frame, nodes, walked.next) else None

    def _summary(self, world: World, walked: Walked) -> FrameSummary:
        key = self.frames.key(world.frame_id)
        facts = self.frames.facts.get(world.frame_id)
        parent = facts.parent_id if facts else None
        return FrameSummary(
            key=key,
            parent=None if key == "main" else self.frames.key(parent) if parent else "main",
            origin=origin_of(walked.url),
            url=walked.url,
            document=world.unique,
            viewport=Viewport(round(walked.width), round(walked.height), walked.scale),
            viewport_ref="viewport" if key == "main" else f"{key}-viewport",
        )

    async def find(self, *, text: str = "", role: str = "", exact: bool = False, most: int = 50) -> Found:
        """Nodes whose name holds `text` (or whose id is it) and whose role is `role`, over every listed frame.

        Raises as `snapshot`.
        """
        await self.main_world()
        await self.frames.adopt_separate()
        listed, _ = self.frames.listed()
        nodes: list[Node] = []
        total = 0
        cut = False
        for frame_id in listed:
            world = self.frames.world(frame_id)
            if world is None:
                continue
            key = self.frames.key(frame_id)
            try:
                walked = await self.walk(world, key, "find", text=text, role=role, exact=exact, most=most)
            except ContextGoneError:
                cut = True
                continue
            found = nodes_of(walked.items, key)
            if self.admit(world, key, found, walked.next):
                nodes += found
                total += walked.total
                cut = cut or walked.cut
        return Found(self.refs.name(observation=True), tuple(nodes[:most]), total, cut)
