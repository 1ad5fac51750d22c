"""The frames of one page: keys, documents, isolated worlds, and the protocol sessions of frames in other processes."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from browser.errors import BrowserError, ContextGoneError
from browser.inspector.connection import Session, decoded
from browser.wire import ATTACH_S, DOM_DEADLINE_S, Faults, Nothing, ask, listen, send
from browser.world import SOURCE, WORLD_NAME, World

Work = Coroutine[object, object, None]

_IF_BARE = f"if (!globalThis.lomi) {{ {SOURCE} }} 0"

MOST_FRAMES = 16
DEEPEST_FRAME = 4
_SEPARATE: dict[str, object] = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": True,
    # A worker that is not reported waits for its debugger for ever.
    "filter": [{"type": "iframe"}, {"type": "worker"}, {"exclude": True}],
}


class _Aux(msgspec.Struct, rename="camel"):
    frame_id: str = ""
    is_default: bool = False


class _Context(msgspec.Struct, rename="camel"):
    id: int
    name: str = ""
    unique_id: str = ""
    aux_data: _Aux = msgspec.field(default_factory=_Aux)


class _ContextCreated(msgspec.Struct):
    context: _Context


class _ContextDestroyed(msgspec.Struct, rename="camel"):
    execution_context_id: int


class FrameFacts(msgspec.Struct, rename="camel"):
    """One frame as the protocol names it."""

    id: str
    url: str = ""
    parent_id: str | None = None
    loader_id: str = ""
    security_origin: str = ""
    unreachable_url: str | None = None


class _FrameTree(msgspec.Struct, rename="camel"):
    frame: FrameFacts
    child_frames: list["_FrameTree"] = []


class _Tree(msgspec.Struct, rename="camel"):
    frame_tree: _FrameTree


class _Navigated(msgspec.Struct):
    frame: FrameFacts


class _Attached(msgspec.Struct, rename="camel"):
    frame_id: str
    parent_frame_id: str


class _Detached(msgspec.Struct, rename="camel"):
    frame_id: str
    reason: str = "remove"


class _Within(msgspec.Struct, rename="camel"):
    frame_id: str
    url: str


class _TargetFacts(msgspec.Struct, rename="camel"):
    target_id: str = ""
    type: str = "iframe"


class _Separate(msgspec.Struct, rename="camel"):
    session_id: str
    target_info: _TargetFacts = msgspec.field(default_factory=_TargetFacts)


class _SessionGone(msgspec.Struct, rename="camel"):
    session_id: str


class _Owner(msgspec.Struct, rename="camel"):
    backend_node_id: int


class _Model(msgspec.Struct):
    content: list[float]
    border: list[float]
    width: float = 0
    height: float = 0


class _Box(msgspec.Struct):
    model: _Model


class _Hit(msgspec.Struct, rename="camel"):
    backend_node_id: int
    frame_id: str


class Place(NamedTuple):
    """Where a frame's own coordinates begin in the main viewport, and its scale there."""

    x: float
    y: float
    scale_x: float = 1.0
    scale_y: float = 1.0

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A point of the frame in the main viewport."""
        return self.x + x * self.scale_x, self.y + y * self.scale_y


@functools.lru_cache(maxsize=64)
def origin_of(url: str) -> str:
    """Scheme, host and effective port of an http(s) address; ``null`` for everything else."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return "null"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    default = 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{host}" if parts.port in {None, default} else f"{parts.scheme}://{host}:{parts.port}"


class FrameTree:
    """Keeps the frames of one page current from protocol events.

    Keys are ``main`` and ``f1``, ``f2``, … in order of first sight; a key is never given to another frame.

    Attributes:
        bare: the document that is there at the start is blank and nobody's script can reach it. It gets no script of
            ours before somebody looks at it, which few ever do: they go elsewhere first.
    """

    def __init__(
        self, session: Session, faults: Faults, child: Callable[[str], Session], spawn: Callable[[Work], None]
    ) -> None:
        self.session = session
        self.main_id = ""
        self.bare = False
        self.facts: dict[str, FrameFacts] = {}
        self.scripts: list[str] = []
        self.on_navigated: Callable[[FrameFacts], None] = lambda _facts: None
        self.on_within: Callable[[str, str], None] = lambda _frame, _url: None
        self.on_session: list[Callable[[Session], None]] = []
        self._faults = faults
        self._child = child
        self._spawn = spawn
        self._worlds: dict[str, World] = {}
        self._dressing = False
        self._undressed: World | None = None
        self._sessions: dict[str, Session] = {}
        self._local_roots: dict[Session, str] = {}
        self._keys: dict[str, str] = {}
        self._coming: set[Session] = set()
        self._scripts: dict[int, str] = {}
        self._arrived = asyncio.Event()

    async def attach(self) -> None:
        """Begin to follow the page, and let it run if it was stopped at its start."""
        await self._follow(self.session)

    @property
    def separate(self) -> bool:
        """Whether frames of the page live in processes of their own."""
        return len(self._local_roots) > 1

    async def _follow(self, session: Session) -> None:
        faults = self._faults
        listen(
            session,
            "Runtime.executionContextCreated",
            _ContextCreated,
            lambda event: self._created(session, event.context),
            faults,
        )
        listen(
            session,
            "Runtime.executionContextDestroyed",
            _ContextDestroyed,
            lambda event: self._destroyed(session, event.execution_context_id),
            faults,
        )
        listen(
            session, "Runtime.executionContextsCleared", Nothing, lambda _event: self._destroyed(session, None), faults
        )
        listen(session, "Page.frameNavigated", _Navigated, lambda event: self._navigated(session, event.frame), faults)
        listen(session, "Page.navigatedWithinDocument", _Within, self._within, faults)
        listen(session, "Page.frameAttached", _Attached, lambda event: self._attached(session, event), faults)
        listen(session, "Page.frameDetached", _Detached, lambda event: self._detached(session, event), faults)
        listen(session, "Target.attachedToTarget", _Separate, lambda event: self._separate(session, event), faults)
        listen(session, "Target.detachedFromTarget", _SessionGone, self._separate_gone, faults)
        for told in self.on_session:
            told(session)
        await asyncio.gather(
            send(session, "Page.getFrameTree", deadline_s=ATTACH_S, received=lambda raw: self._plant(session, raw)),
            self._begun(session),
        )

    def _plant(self, session: Session, raw: msgspec.Raw) -> None:
        """Take the frames as they stand, before any event that follows is heard."""
        tree = decoded(raw, _Tree).frame_tree
        self._local_roots[session] = tree.frame.id
        if session is self.session:
            self.main_id = tree.frame.id
        pending = [tree]
        while pending:
            branch = pending.pop()
            self.facts[branch.frame.id] = branch.frame
            self._sessions[branch.frame.id] = session
            pending.extend(branch.child_frames)

    async def _begun(self, session: Session) -> None:
        """All that must be in place before the target's first script, in this order, and then its start."""
        bare = self.bare and session is self.session
        scripts: list[dict[str, object]] = [{"source": script} for script in self.scripts]
        scripts.insert(0, {"source": SOURCE, "worldName": WORLD_NAME})
        first = "Page.addScriptToEvaluateOnNewDocument"
        planted = [send(session, first, {**s, "runImmediately": not bare}, deadline_s=ATTACH_S) for s in scripts]
        # This makes the blank document's context, into which scripts that are there would go.
        enabled = send(session, "Runtime.enable", deadline_s=ATTACH_S)
        await asyncio.gather(
            send(session, "Page.enable", deadline_s=ATTACH_S),
            *((enabled, *planted) if bare else (*planted, enabled)),
            send(session, "Target.setAutoAttach", _SEPARATE, deadline_s=ATTACH_S),
            send(session, "Runtime.runIfWaitingForDebugger", deadline_s=ATTACH_S),
        )

    def _separate(self, parent: Session, event: _Separate) -> None:
        """A frame moves into a process of its own; it is stopped there until we follow it."""
        session = self._child(event.session_id)
        if event.target_info.type == "worker":
            self._let_run(parent, session)
            return
        self._coming.add(session)
        session.on_ended.append(lambda: self._spawn(self._lost(parent, session, event.target_info.target_id)))
        self._spawn(self._adopt(session))

    def _let_run(self, parent: Session, worker: Session) -> None:
        """Start a worker, and whatever workers it begins itself; nothing else of them is followed."""

        def with_parent() -> None:
            worker.end("closed")

        parent.on_ended.append(with_parent)
        worker.on_ended.append(lambda: parent.on_ended.remove(with_parent))
        listen(worker, "Target.attachedToTarget", _Separate, lambda event: self._separate(worker, event), self._faults)
        listen(worker, "Target.detachedFromTarget", _SessionGone, self._separate_gone, self._faults)
        worker.post("Target.setAutoAttach", _SEPARATE)
        worker.post("Runtime.runIfWaitingForDebugger")

    async def _adopt(self, session: Session) -> None:
        try:
            await self._follow(session)
        except BrowserError as error:  # it went as fast as it came, or the page did
            self._faults_of(session, error)
        finally:
            self._coming.discard(session)
            self._wake()

    def _faults_of(self, session: Session, error: BrowserError) -> None:
        if session.ended is None and not isinstance(error, ContextGoneError):
            self._faults.note("separate frame", error)

    def _separate_gone(self, event: _SessionGone) -> None:
        self._child(event.session_id).end("closed")

    async def _lost(self, parent: Session, session: Session, frame_id: str) -> None:
        """A separate frame is gone, or moves into its parent's process: the parent says which."""
        for frame, world in list(self._worlds.items()):
            if world.session is session:
                world.gone.set()
                del self._worlds[frame]
        self._local_roots.pop(session, None)
        with suppress(BrowserError):
            await send(parent, "Page.enable")  # what it had to say before has arrived by now
        for frame in [frame for frame, known in self._sessions.items() if known is session]:
            del self._sessions[frame]
            self.facts.pop(frame, None)
        if frame_id not in self._sessions:
            self.facts.pop(frame_id, None)

    def _created(self, session: Session, context: _Context) -> None:
        if context.aux_data.is_default and session is self.session:
            self._scripts[context.id] = context.aux_data.frame_id
        if context.name != WORLD_NAME:
            return
        frame = context.aux_data.frame_id
        world = World(session, context.id, context.unique_id, frame)
        self._sessions[frame] = session
        if self._dressing and frame == self.main_id:
            self._undressed = world
            return
        self.bare = self.bare and frame != self.main_id
        self._worlds[frame] = world
        self._wake()

    async def _dress(self) -> None:
        """Bring our script into the bare document; one that comes meanwhile has it already."""
        try:
            with suppress(ContextGoneError):
                made = {"frameId": self.main_id, "worldName": WORLD_NAME}
                await send(self.session, "Page.createIsolatedWorld", made)
            while (world := self._undressed) is not None:
                with suppress(ContextGoneError):
                    run = {"contextId": world.context_id, "expression": _IF_BARE}
                    await send(self.session, "Runtime.evaluate", run)
                    if self._undressed is world:
                        self.bare = False
                        self._worlds[world.frame_id] = world
                        self._wake()
                if self._undressed is world:
                    self._undressed = None
        finally:
            self._dressing = False
            self._wake()

    def _wake(self) -> None:
        self._arrived.set()
        self._arrived = asyncio.Event()

    def is_main_context(self, context_id: int) -> bool:
        """Whether page script of the main frame runs in this context."""
        return self._scripts.get(context_id) == self.main_id

    def _destroyed(self, session: Session, context_id: int | None) -> None:
        if session is self.session:
            if context_id is None:
                self._scripts.clear()
            else:
                self._scripts.pop(context_id, None)
        bare = self._undressed
        if bare is not None and session is self.session and context_id in {None, bare.context_id}:
            self._undressed = None
        for frame, world in list(self._worlds.items()):
            if world.session is session and context_id in {None, world.context_id}:
                world.gone.set()
                del self._worlds[frame]

    def _navigated(self, session: Session, frame: FrameFacts) -> None:
        if not frame.id:
            return
        self.facts[frame.id] = frame
        self._sessions[frame.id] = session
        self.on_navigated(frame)

    def _within(self, event: _Within) -> None:
        known = self.facts.get(event.frame_id)
        if known is not None:
            self.facts[event.frame_id] = msgspec.structs.replace(known, url=event.url)
            self.on_within(event.frame_id, event.url)

    def _attached(self, session: Session, event: _Attached) -> None:
        self.facts.setdefault(event.frame_id, FrameFacts(id=event.frame_id, parent_id=event.parent_frame_id))
        self._sessions[event.frame_id] = session

    def _detached(self, session: Session, event: _Detached) -> None:
        if self._sessions.get(event.frame_id) is not session:
            return
        world = self._worlds.pop(event.frame_id, None)
        if world is not None:
            world.gone.set()
        if event.reason != "swap":
            self.facts.pop(event.frame_id, None)
            self._sessions.pop(event.frame_id, None)

    async def adopt_separate(self) -> None:
        """Wait for the frames that are moving into processes of their own, for a while."""
        if not self._coming:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(DOM_DEADLINE_S):
                while self._coming:
                    await self._arrived.wait()

    def key(self, frame_id: str) -> str:
        """The wire name of a frame."""
        if frame_id == self.main_id:
            return "main"
        if frame_id not in self._keys:
            self._keys[frame_id] = f"f{len(self._keys) + 1}"
        return self._keys[frame_id]

    def frame_of(self, key: str) -> str | None:
        """The protocol id behind a key."""
        if key == "main":
            return self.main_id
        return next((frame for frame, known in self._keys.items() if known == key), None)

    def world(self, frame_id: str) -> World | None:
        """The live world of a frame's current document."""
        return self._worlds.get(frame_id)

    def live(self) -> list[World]:
        """The worlds of all frames."""
        return list(self._worlds.values())

    def others(self, world: World) -> list[World]:
        """The live worlds of all other frames."""
        return [other for other in self._worlds.values() if other is not world]

    async def main_world(self, deadline_s: float) -> World | None:
        """The main document's world, waiting for it while a document is being replaced."""
        if (there := self._worlds.get(self.main_id)) is not None:
            return there
        try:
            async with asyncio.timeout(deadline_s):
                while (world := self._worlds.get(self.main_id)) is None:
                    if self.bare and not self._dressing:
                        self._dressing = True
                        self._spawn(self._dress())
                    await self._arrived.wait()
                return world
        except TimeoutError:
            return None

    def listed(self) -> tuple[list[str], int]:
        """Frames to show, parents before children, and how many were left out by number or depth."""
        children: dict[str, list[str]] = {}
        for frame, facts in self.facts.items():
            if frame != self.main_id and facts.parent_id:
                children.setdefault(facts.parent_id, []).append(frame)
        shown: list[str] = []
        omitted = 0
        level = [self.main_id]
        depth = 0
        while level:
            fits = depth <= DEEPEST_FRAME
            for frame in level:
                if fits and len(shown) < MOST_FRAMES and frame in self._worlds:
                    shown.append(frame)
                else:
                    omitted += 1
            level = [child for frame in level for child in children.get(frame, [])]
            depth += 1
        return shown, omitted

    async def place(self, frame_id: str) -> Place:
        """Where a frame's viewport lies in the main viewport.

        Raises:
            ContextGoneError: the frame or one around it is gone or has no box.
        """
        if frame_id == self.main_id:
            return Place(0, 0)
        facts = self.facts.get(frame_id)
        session = self._sessions.get(frame_id)
        if facts is None or session is None:
            raise ContextGoneError("document_gone")
        local_root = self._local_roots.get(session)
        parent = facts.parent_id or self.main_id
        owner_session = session if local_root != frame_id else self._sessions.get(parent, self.session)
        owner = await ask(owner_session, "DOM.getFrameOwner", {"frameId": frame_id}, _Owner)
        box = await ask(owner_session, "DOM.getBoxModel", {"backendNodeId": owner.backend_node_id}, _Box)
        quad = box.model.content
        root = self._local_roots.get(owner_session, self.main_id)
        base = await self.place(root) if root != self.main_id else Place(0, 0)
        border = box.model.border
        wide = (border[2] - border[0]) / box.model.width if box.model.width else 1.0
        high = (border[5] - border[1]) / box.model.height if box.model.height else 1.0
        x, y = base.point(quad[0], quad[1])
        return Place(x, y, base.scale_x * wide, base.scale_y * high)

    async def uncovered(self, frame_id: str, x: float, y: float) -> bool:
        """Whether the engine's own hit test at a point of the main viewport ends in this frame."""
        at: str | None = self.main_id
        session = self.session
        origin = Place(0, 0)
        while at is not None:
            world = self._worlds.get(self._local_roots.get(session, ""))
            scroll = await world.call("scrolled", 0, shape=dict[str, float]) if world else {"x": 0.0, "y": 0.0}
            inner_x, inner_y = (x - origin.x) / origin.scale_x, (y - origin.y) / origin.scale_y
            params = {"x": round(inner_x + scroll["x"]), "y": round(inner_y + scroll["y"])}
            hit = await ask(session, "DOM.getNodeForLocation", params, _Hit)
            if hit.frame_id == frame_id:
                return True
            inner = next(
                (
                    s
                    for f, s in self._sessions.items()
                    if self._local_roots.get(s) == f and s is not session and self._owned(f, hit.frame_id, frame_id)
                ),
                None,
            )
            if inner is None:
                return False
            session = inner
            at = self._local_roots[inner]
            origin = await self.place(at)
        return False

    def _owned(self, root: str, hit_frame: str, wanted: str) -> bool:
        """Whether local root `root` hangs below the frame that was hit and contains the wanted frame."""
        facts = self.facts.get(root)
        if facts is None or (facts.parent_id or self.main_id) != hit_frame:
            return False
        at: str | None = wanted
        while at:
            if at == root:
                return True
            known = self.facts.get(at)
            at = known.parent_id if known else None
        return False
