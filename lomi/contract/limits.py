"""All bounds that an owner may set, as one frozen value with two presets.

`DESKTOP` is section 28 of the contract, exact. `LAB` is for headless brokers; each field may be overridden under
`[limits]`. Sizes are bytes, times seconds.
"""

import msgspec

MIB = 1 << 20
GIB = 1 << 30

ARGUMENT_BYTES = 64 * 1024
"""Tool arguments, measured on the raw line before parsing."""
LINE_BYTES = 8 * MIB
"""One stdio line, and one frame on the private socket."""
PAGE_BYTES = 48 * 1024
"""A page of a list, of events, of a search."""
WORKING_CALLS = 16
"""Calls of one connection that may work at once; the next ones queue."""
QUEUED_CALLS = 1024
"""Calls of one connection that may wait for a slot."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every bound of a broker that is a matter of taste or size.

    Field names are the keys of the policy's `[limits]`.
    """

    receipts: int = 4096
    epochs: int = 4096
    store_bytes: int = 64 * MIB
    wal_bytes: int = 128 * MIB
    retention_s: int = 86_400
    epoch_s: int = 86_400
    work_items: int = 32
    connections: int = 16
    handshakes: int = 4
    pending_pairings: int = 4
    pairing_s: int = 120
    queue_over_bound_s: int = 0
    terminal_claims: int = 8
    browsers: int = 16
    devices: int = 16
    workspaces: int = 500
    event_cursors: int = 64
    artifacts: int = 64
    artifact_bytes: int = 2 * GIB
    artifact_owner_bytes: int = GIB
    image_bytes: int = 64 * MIB
    image_owner_bytes: int = 16 * MIB
    image_each_bytes: int = 3 * MIB
    apk_bytes: int = 512 * MIB
    file_bytes: int = 4 * MIB
    large_file_bytes: int = 512 * MIB
    producers: int = 2
    release_unpinned_images: bool = False


DESKTOP = Limits()
LAB = Limits(
    receipts=1_000_000,
    epochs=100_000,
    store_bytes=4 * GIB,
    connections=256,
    handshakes=64,
    pending_pairings=64,
    queue_over_bound_s=10,
    devices=64,
    browsers=64,
    work_items=512,
    artifacts=65_536,
    artifact_bytes=20 * GIB,
    artifact_owner_bytes=20 * GIB,
    image_bytes=20 * GIB,
    image_owner_bytes=20 * GIB,
    release_unpinned_images=True,
)
