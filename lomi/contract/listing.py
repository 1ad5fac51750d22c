"""The generated catalogue, read back: what lists tools needs neither the definitions nor their import time."""

from functools import cache
from pathlib import Path

import msgspec

from lomi.contract.definition import RetryIdentity


class Annotations(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """MCP's hints about a tool."""

    read_only_hint: bool
    destructive_hint: bool
    idempotent_hint: bool
    open_world_hint: bool


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One tool of the catalogue. The schemas are compact JSON objects with `type: object` at their root."""

    name: str
    family: str
    purpose: str
    scopes: tuple[str, ...]
    more_scopes: tuple[str, ...]
    lease: bool
    retry: RetryIdentity
    deadline_seconds: float
    decision_seconds: float
    annotations: Annotations
    kinds: tuple[str, ...]
    reply_only: tuple[str, ...]
    input_schema: msgspec.Raw
    output_schema: msgspec.Raw
    notes: tuple[str, ...]


class ReasonEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One documented reason and the family that states it; `common` for those of no single one."""

    name: str
    family: str
    code: str
    hint: str


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All tools in the order of the contract, and all reasons."""

    tools: tuple[Entry, ...]
    reasons: tuple[ReasonEntry, ...]


LOCATION = Path(__file__).with_name("catalogue.json")
"""The generated file, which every build ships."""


@cache
def catalogue() -> Catalogue:
    """The catalogue that this build ships."""
    return msgspec.json.decode(LOCATION.read_bytes(), type=Catalogue)
