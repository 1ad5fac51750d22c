"""The port: all that an adapter sees of the broker, and all that the broker sees of an adapter.

An adapter is a few handlers over a plain library. It gets calls whose target is in sight, in scope and current; it
acts only through a permit; it tells the ledger when a runtime begins and ends. It never sees sessions, receipts or
the store.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from lomi.contract.artifact import Artifact, ArtifactSource, Geometry, ProjectSource
from lomi.contract.codes import EffectState, OperationState
from lomi.contract.definition import ResourceKind
from lomi.contract.model import Data, Input, Observation, Result
from lomi.contract.panel import PanelKind, RuntimeState
from lomi.core.grant import Grant
from lomi.core.ids import ArtifactId, GenerationId, LeaseId, OperationId, PanelId, ProjectId, SessionId, WorkspaceId
from lomi.core.picture import Picture as Picture  # noqa: PLC0414  the port shows it

I = TypeVar("I", bound=Input)  # noqa: E741  one input model per tool


class Clock(Protocol):
    """Time, passed in."""

    def monotonic(self) -> float:
        """Seconds that only grow; for deadlines."""
        ...

    def time(self) -> float:
        """Seconds since the epoch; for records."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


@dataclass(frozen=True, slots=True)
class ResourceKey:
    """What a generation is a life of: a terminal or browser page by its panel id, a phone by its device id."""

    kind: ResourceKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder whose device and inode are pinned while it is open."""

    id: ProjectId
    name: str
    path: Path
    device: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A named set of panels in one project."""

    id: WorkspaceId
    project_id: ProjectId
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A view of a resource. It outlives the resource's generations."""

    id: PanelId
    workspace_id: WorkspaceId
    tab_id: str
    kind: PanelKind
    title: str
    resource: ResourceKey | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[I]):
    """One admitted call.

    `workspace`, `project`, `panel`, `resource` and `generation` are set as far as the arguments name them; `decided` is
    the plan that was approved, for an act that must do exactly that.
    """

    tool: str
    input: I
    session_id: SessionId
    grant: Grant
    workspace: Workspace | None = None
    project: Project | None = None
    panel: Panel | None = None
    resource: ResourceKey | None = None
    generation: GenerationId | None = None
    operation_id: OperationId | None = None
    decided: "Plan | None" = None


class Permit(Protocol):
    """The only way to act. It exists only after the move to `running` is durable."""

    @property
    def operation_id(self) -> OperationId:
        """The operation that this permit belongs to."""
        ...

    @property
    def generation(self) -> GenerationId | None:
        """The exact life of the target that may be acted on."""
        ...

    @property
    def deadline(self) -> float:
        """When the effect must be over, on the clock's monotonic scale."""
        ...

    @property
    def revoked(self) -> bool:
        """Whether authority has ended; needs no lock, may be asked at any time."""
        ...

    @property
    def cancelling(self) -> bool:
        """Whether the caller asked to stop."""
        ...

    async def cancel_requested(self) -> None:
        """Return when the caller asks to stop; never returns otherwise."""
        ...

    async def report(self, words: str) -> None:
        """Say how far long work has come, to callers that wait for it and asked for progress; never stored."""
        ...

    def effect(self) -> AbstractAsyncContextManager[None]:
        """The instant from which the outcome can be unknown.

        Enter it after the last check and before the first byte out.

        Raises:
            Refusal: on entering, when authority, lease or generation ended meanwhile; nothing was done then.
        """
        ...

    def yield_turn(self) -> None:
        """Let the next operation of the same target start; for work that goes on after its dispatch."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer of a read: the contract's data, its short rendering for a model, pictures."""

    data: Data
    text: str | None = None
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an effect. `observe` is run after the receipt has settled, if the caller waits for it."""

    result: Result | Data | None
    state: OperationState = OperationState.SUCCEEDED
    effect: EffectState = EffectState.COMPLETE
    observe: Callable[[], Awaitable[Observation]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a person is asked to decide: immutable, hashed as a whole.

    `binding` holds every fact the decision is bound to. With a `phrase`, a person must type it instead of yes.
    """

    title: str
    lines: tuple[str, ...]
    binding: tuple[tuple[str, str], ...]
    phrase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A reading tool: `check` runs in admission, without an await; `read` observes."""

    tool: str
    read: Callable[[Call[Any]], Awaitable[Reply]]
    check: Callable[[Call[Any]], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOnce:
    """An effect that is a change of the broker's own memory and nothing else, decided before it is made.

    Its receipt is reserved, started and settled in one commit, and `apply` runs as soon as that is durable: it can't
    be found half done, since it dies with the broker. `apply` has no await and raises nothing: what ended meanwhile
    (a session, a generation) has ended the effect too, right after it began.
    """

    result: Result
    apply: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A mutating tool.

    `check` runs in admission and again before dispatch, without an await, and raises `Refusal` for what lives in
    the adapter's memory (snapshot, ref, prompt). `plan` makes what a person must decide, None where nobody must.
    `plans` says, without an await, of which calls a plan is made at all (None: of every one); the others are reserved
    and started in one commit. `at_once` is asked, without an await, for a call whose turn has come already and for
    which nobody decides; None where its effect reaches further than the broker's memory.
    """

    tool: str
    act: Callable[[Call[Any], Permit], Awaitable[Outcome]]
    check: Callable[[Call[Any]], None] | None = None
    plan: Callable[[Call[Any]], Awaitable[Plan | None]] | None = None
    plans: Callable[[Call[Any]], bool] | None = None
    at_once: Callable[[Call[Any]], AtOnce | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Input authority over one generation for one session."""

    id: LeaseId
    generation: GenerationId
    session_id: SessionId
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A runtime identity that an earlier broker stored and never forgot: it may still be alive."""

    kind: ResourceKind
    name: str
    generation: GenerationId
    identity: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredArtifact:
    """An immutable artifact: its wire form, and where its bytes are."""

    id: ArtifactId
    wire: Artifact
    path: Path
    byte_length: int
    sha256: str


class TakenImage(NamedTuple):
    """A PNG, where it comes from, and its pixels against what it shows."""

    png: bytes
    source: ArtifactSource
    geometry: Geometry | None


class Artifacts(Protocol):
    """Where captures and imports live."""

    async def put_image(
        self, call: Call[Any], png: bytes, source: ArtifactSource, geometry: Geometry | None
    ) -> StoredArtifact:
        """Store a PNG for the calling session.

        Raises:
            Refusal: ARTIFACT_TOO_LARGE, RESOURCE_EXHAUSTED (`quota_full`) or STORAGE_UNAVAILABLE.
        """
        ...

    async def put_taken(
        self, call: Call[Any], workspace_id: str, taking: Callable[[], Awaitable[TakenImage]]
    ) -> StoredArtifact:
        """Store a PNG that is still to be taken; the store gets ready meanwhile.

        What `taking` raises leaves no artifact and is raised here.

        Raises:
            Refusal: as `put_image`.
        """
        ...

    async def put_bytes(
        self, call: Call[Any], content: bytes, source: ArtifactSource, artifact_id: str | None = None
    ) -> StoredArtifact:
        """Store bytes of no special kind, such as the last words of a process, for the calling session.

        `artifact_id` (32 random hex digits) is for an adapter that has told the session of it before.

        Raises:
            Refusal: ARTIFACT_TOO_LARGE, RESOURCE_EXHAUSTED (`quota_full`) or STORAGE_UNAVAILABLE.
        """
        ...

    async def put_stream(
        self, call: Call[Any], pieces: AsyncIterator[bytes], source: ArtifactSource, *, most: int
    ) -> StoredArtifact:
        """Store bytes as they come, at most `most` of them; never all in memory.

        What `pieces` raises leaves no artifact and is raised here.

        Raises:
            Refusal: ARTIFACT_TOO_LARGE, RESOURCE_EXHAUSTED (`quota_full`) or STORAGE_UNAVAILABLE.
        """
        ...

    async def import_file(
        self,
        call: Call[Any],
        descriptor: int,
        source: ProjectSource,
        *,
        expected_length: int,
        expected_sha256: str,
        large: bool = False,
    ) -> StoredArtifact:
        """Copy an open file into a new artifact, if its bytes are the expected ones.

        `source` says of which class it is; a file that is `large` may be so.

        Raises:
            Refusal: ARTIFACT_INVALID (`hash_mismatch`, `length_mismatch`, `not_an_apk`), REVISION_CONFLICT
                (`source_changed`), RESOURCE_EXHAUSTED (`quota_full`), STORAGE_UNAVAILABLE.
        """
        ...

    def open(self, call: Call[Any], artifact_id: str) -> AbstractAsyncContextManager[StoredArtifact]:
        """Pin an artifact that this session may use for as long as it is read.

        Raises:
            Refusal: TARGET_NOT_FOUND when it is not this session's, expired, or its source is out of the grant.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a new panel's runtime begins, and how it is ended again if it can't stay.

    `leaves_traces` says that one which began may have done something outside itself, as a shell that reads its
    profile does.
    """

    start: Callable[[ResourceKey], Awaitable[GenerationId]]
    end: Callable[[ResourceKey], Awaitable[None]]
    leaves_traces: bool = False


class Ledger(Protocol):
    """What an adapter tells the broker, and may ask of it."""

    @property
    def artifacts(self) -> Artifacts:
        """The artifact store."""
        ...

    async def begin_generation(self, resource: ResourceKey) -> GenerationId:
        """A new life of the resource: its counter is durable before this returns, and it is the current one at once.

        Raises:
            Refusal: STORAGE_UNAVAILABLE; nothing has begun.
        """
        ...

    def end_generation(self, generation: GenerationId) -> None:
        """That life is over: its lease ends, queued work is refused."""
        ...

    def current(self, resource: ResourceKey) -> GenerationId | None:
        """The present life of a resource."""
        ...

    def resource(self, generation: GenerationId) -> ResourceKey | None:
        """What a present generation is a life of."""
        ...

    async def remember(self, generation: GenerationId, identity: bytes) -> None:
        """Store a runtime's identity (pid, start time, ports) before the runtime is used; at most 4 KiB.

        Raises:
            Refusal: STORAGE_UNAVAILABLE; the runtime must not be used then.
        """
        ...

    async def forget(self, generation: GenerationId) -> None:
        """The runtime is observed gone."""
        ...

    async def remembered(self, kind: ResourceKind) -> Sequence[Remembered]:
        """Identities left by earlier brokers of this home."""
        ...

    def grant_lease(self, generation: GenerationId, session_id: SessionId) -> LeaseId:
        """Give input authority to a session; the same one if it already holds it.

        Raises:
            Refusal: TARGET_BUSY (`already_leased`) when another session holds it.
        """
        ...

    def release_lease(self, generation: GenerationId) -> None:
        """End the lease, if there is one."""
        ...

    def lease(self, generation: GenerationId) -> Lease | None:
        """Who holds input authority."""
        ...

    def take_over(self, resource: ResourceKey) -> None:
        """A person acts on the resource: the lease ends at once, and none is given until they give back."""
        ...

    def admit_device(self, session_id: SessionId, device_id: str) -> None:
        """Bring a phone that a session made into its sight, for as long as the session lasts."""
        ...

    async def open_panel(
        self, workspace_id: WorkspaceId, kind: PanelKind, title: str, resource_name: str | None
    ) -> Panel:
        """Add a panel at the end of the workspace.

        Without `resource_name` the resource is named by the panel itself.
        """
        ...

    async def open_leased(
        self, call: Call[Any], kind: PanelKind, title: str, runtime: "Opening"
    ) -> tuple[Panel, GenerationId]:
        """Open a panel, start its runtime and lease it to the caller: all of it, or nothing that stays.

        Call it inside the permit's effect.

        Raises:
            EffectFailed: the panel, the runtime or the lease was refused, or the workspace was closed meanwhile; what
                had begun is ended. Partial only where the runtime `leaves_traces` and had begun.
        """
        ...

    async def close_panel(self, panel_id: PanelId) -> None:
        """Take a panel out of the layout."""
        ...

    def panels_of(self, resource: ResourceKey) -> Sequence[Panel]:
        """Every view of a resource."""
        ...


class Runtimes(Protocol):
    """What the broker asks of an adapter about the resources of its kind."""

    @property
    def kind(self) -> ResourceKind:
        """The kind of resource."""
        ...

    def state(self, resource: ResourceKey) -> RuntimeState:
        """How the resource stands, from memory."""
        ...

    def process(self, resource: ResourceKey) -> int | None:
        """The process that hosts whatever runs inside the resource, None where nothing of a client's can."""
        ...

    def check_claim(self, call: Call[Any]) -> None:
        """Raise `Refusal` when input control can't be claimed now (not running, prompt not idle)."""
        ...

    def lease_ended(self, generation: GenerationId, lease_id: LeaseId) -> None:
        """Cut what the lease allowed, at once: held keys and touches, live streams. Must not wait."""
        ...

    def owner_gone(self, generation: GenerationId) -> None:
        """The session that made this runtime has ended: end what lived by its grant. Must not wait."""
        ...

    async def close(self, resource: ResourceKey, permit: Permit) -> None:
        """End the resource since its last view closes; returns when it is observed gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One adapter as the composition root hands it to the broker; `limitations` are read anew for each status."""

    family: str
    tools: tuple[Read | Act, ...]
    runtimes: Runtimes | None = None
    limitations: Iterable[str] = ()


AdapterFactory = Callable[[Ledger], AbstractAsyncContextManager[Adapter]]
"""Opens an adapter for the life of a broker: sweeps what an earlier one left, ends what it started when it closes."""
