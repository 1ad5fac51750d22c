"""What a run and a host say to each other: closed values as JSON, never objects of a program."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lomi.lab.plan import Plan
from lomi.lab.shard import Needs, Segment, Shard, ShardResult

PHONES = "phones"
"""With `:IMAGE`, the resource of a host that one phone of that image is."""
SLOTS = "slots"
"""The resource that a shard without phones takes one of."""
BROWSERS = "browsers"
"""How many pages a host's broker admits at once; told, not taken: the broker itself holds its clients to it."""


RunName = Annotated[str, Meta(pattern=r"\Arun-[0-9a-f]{12}\Z")]
"""What a run is called; a host has a folder of this name for it."""


_Count = Annotated[int, Meta(ge=0, le=4096)]
_Name = Annotated[str, Meta(min_length=1, max_length=500)]


class _Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class HostFacts(_Value, frozen=True, kw_only=True):
    """What a host is: its name, its phones by image, how many shards without phones it runs, its version of Lomi."""

    name: _Name
    phones: Annotated[dict[_Name, _Count], Meta(max_length=64)]
    slots: _Count
    browsers: _Count
    version: _Name

    @property
    def offer(self) -> str:
        """What it has, for people."""
        return ", ".join((*(f"{count} of {image}" for image, count in self.phones.items()), f"{self.slots} slots"))

    def resources(self) -> dict[str, float]:
        """The same as Dask's resources."""
        counts = {f"{PHONES}:{image}": float(count) for image, count in self.phones.items()}
        return {**counts, SLOTS: float(self.slots), BROWSERS: float(self.browsers)}


class ShardOrder(_Value, frozen=True, kw_only=True):
    """One shard of a run, which `run` names. The plan goes with every shard, so that any host can begin with any."""

    run: RunName
    plan: Plan
    shard: Shard
    needs: Needs


class HostAnswer(_Value, frozen=True, kw_only=True):
    """What became of an order. Without a result, `failure` says which of the engine's errors it is, in one line."""

    result: ShardResult | None = None
    failure: Literal["", "needs_unmet", "host_lost"] = ""
    message: str = ""


class Lanes(_Value, frozen=True, kw_only=True):
    """The last stretches of a host's lanes."""

    segments: tuple[Segment, ...] = ()


class Hashes(_Value, frozen=True, kw_only=True):
    """Some contents, by SHA-256 in hex."""

    sha256: tuple[str, ...] = ()
