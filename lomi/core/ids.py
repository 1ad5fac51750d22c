"""Identities as types of their own, so that a lease can't be passed for a generation."""

import uuid
from typing import NewType

from lomi.contract.definition import ResourceKind

SessionId = NewType("SessionId", str)
WorkspaceId = NewType("WorkspaceId", str)
ProjectId = NewType("ProjectId", str)
PanelId = NewType("PanelId", str)
OperationId = NewType("OperationId", str)
GenerationId = NewType("GenerationId", str)
LeaseId = NewType("LeaseId", str)
ArtifactId = NewType("ArtifactId", str)

_PREFIX: dict[ResourceKind, str] = {"terminal": "s", "browser": "b", "android": "g"}


def generation_id(kind: ResourceKind, counter: int) -> GenerationId:
    """The wire name of one life of a runtime.

    `s40`, `b12`, and for a phone a UUID (version 8) that holds the counter.
    """
    if kind == "android":
        return GenerationId(str(uuid.UUID(int=(0x8 << 76) | (0x8 << 60) | counter)))
    return GenerationId(f"{_PREFIX[kind]}{counter}")


def android_panel_id(counter: int) -> PanelId:
    """The wire name of a phone's panel: a UUID (version 8) that holds its counter, apart from those of generations."""
    return PanelId(str(uuid.UUID(int=(0xA << 124) | (0x8 << 76) | (0x8 << 60) | counter)))


def device_uuid(namespace: str, name: str) -> str:
    """The UUID of a device, derived from the broker's own namespace and the device's name."""
    return str(uuid.uuid5(uuid.UUID(namespace), name))
