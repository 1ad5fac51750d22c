"""The one interface between a run and what runs its shards."""

from pathlib import Path
from typing import Protocol

from lomi.lab.shard import Needs, Segment, Shard, ShardResult


class EngineError(Exception):
    """Base of what an engine raises; the message is one line for a person."""


class HostLostError(EngineError):
    """Raised when a shard's host is gone: what the shard did there is unknown, so it is queued again elsewhere.

    Attributes:
        host: its name, "" when the shard had none yet.
    """

    def __init__(self, host: str, message: str) -> None:
        super().__init__(message)
        self.host = host


class NeedsUnmetError(EngineError):
    """Raised at once when no host of this engine could ever give what a shard needs; the message names near misses."""


class EngineFailedError(EngineError):
    """Raised when the engine can run nothing any more (no host, no phone that boots): the run ends."""


class Shelf(Protocol):
    """Files by the SHA-256 of their content; both calls block."""

    def put(self, content: bytes) -> str:
        """Keep some content and return its SHA-256 in hex. What is there already is kept as it is."""
        ...

    def path_of(self, sha256: str) -> Path:
        """Where the content lies; only for reading.

        Raises:
            KeyError: it is not here.
        """
        ...


class Engine(Protocol):
    """Runs shards, as many at the same time as `capacity` says; more wait inside `run`.

    A shard comes in as a value (tests by id, files by hash) and goes out as one: the artifacts that a result names are
    on the shelf, under their hash, when `run` returns. Nothing else is shared between a run and its hosts. What an
    engine started (hosts, brokers, phones) ends with the context that opened it.
    """

    @property
    def capacity(self) -> int:
        """How many shards can run at the same time now; it may change when hosts come and go."""
        ...

    async def capacity_other_than(self, known: int) -> None:
        """Wait until `capacity` is not `known`: hosts that come while a run goes on get what waits at once."""
        ...

    @property
    def ships_files(self) -> bool:
        """Whether shards must name the files of the tests' folder, with their content on the shelf."""
        ...

    def check(self, needs: Needs) -> None:
        """Whether some host could give this, asked before anything is queued.

        Raises:
            NeedsUnmetError: none could, ever.
        """
        ...

    async def run(self, shard: Shard, needs: Needs) -> ShardResult:
        """Run one shard to its end. Tests that began have an attempt in the result, whatever became of them.

        A worker's death, a phone's death and deadlines of tests are no errors: they are attempts with the verdict
        `infra_error` or `failed`, and the tests after them are missing from the result. After `cancel` it returns
        soon, with what had ended.

        Raises:
            HostLostError: nothing is known of the shard; none of it counts.
            NeedsUnmetError: see `check`.
            EngineFailedError: nothing can be run here any more.
        """
        ...

    async def cancel(self) -> None:
        """End every shard that runs or waits; each `run` returns with what had ended. Returns when all have."""
        ...

    async def finish(self) -> tuple[Segment, ...]:
        """The last stretches of all lanes that no result has told yet. Nothing runs any more; brokers still do."""
        ...

    async def anchor(self, content: bytes) -> str | None:
        """Have a broker's ledger keep the SHA-256 of some content, at most 4 MiB, in a receipt; its operation id.

        None where there is no broker, or none that would.
        """
        ...
