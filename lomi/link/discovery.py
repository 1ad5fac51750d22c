"""The discovery file as a client reads it: nothing in it or about it is trusted before it is checked."""

import json
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lomi.disk.private import read_private
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.link.errors import BrokerAbsentError, DiscoveryRefusedError
from lomi.link.messages import IPC_VERSION, is_instance_id, is_pin

MAX_DISCOVERY = 16 << 10
SIGNED_PREFIX = b"lomi-mcp-discovery-v1\0"


class Descriptor(NamedTuple):
    """Where one broker instance listens, and the pin of its certificate."""

    instance_id: str
    endpoint: str
    broker_sha256: str


def read(path: Path, public_key_hex: str) -> Descriptor:
    """Read and check a discovery file against the public key that the client was registered with. Blocks.

    Raises:
        BrokerAbsentError: there is no such file.
        DiscoveryRefusedError: the file or its place is not to be trusted.
    """
    try:
        content = read_private(path, MAX_DISCOVERY)
    except DiskRefusedError as error:
        if error.reason is Reason.NOT_FOUND:
            raise BrokerAbsentError("discovery_absent") from error
        raise DiscoveryRefusedError(error.reason) from error
    return verify(content, public_key_hex)


def verify(content: bytes, public_key_hex: str) -> Descriptor:
    """Check the bytes of a discovery file.

    Raises:
        DiscoveryRefusedError: another shape, another key, or an edited payload.
    """
    outer = _object(content, {"version": int, "payload": str, "signature": str})
    payload = str(outer["payload"]).encode()
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key_hex))
    except ValueError as error:
        raise DiscoveryRefusedError("key_invalid") from error
    try:
        key.verify(bytes.fromhex(str(outer["signature"])), SIGNED_PREFIX + payload)
    except (InvalidSignature, ValueError) as error:
        raise DiscoveryRefusedError("signature_invalid") from error
    inner = _object(payload, {"instanceId": str, "endpoint": str, "brokerSha256": str, "ipcVersion": int})
    found = Descriptor(str(inner["instanceId"]), str(inner["endpoint"]), str(inner["brokerSha256"]))
    if (
        outer["version"] != 1
        or inner["ipcVersion"] != IPC_VERSION
        or not is_instance_id(found.instance_id)
        or not is_pin(found.broker_sha256)
        or not Path(found.endpoint).is_absolute()
    ):
        raise DiscoveryRefusedError("discovery_malformed")
    return found


def _object(content: bytes, keys: dict[str, type]) -> dict[str, object]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DiscoveryRefusedError("discovery_malformed") from error
    if not isinstance(found, dict) or found.keys() != keys.keys():
        raise DiscoveryRefusedError("discovery_malformed")
    if any(type(found[key]) is not kind for key, kind in keys.items()):
        raise DiscoveryRefusedError("discovery_malformed")
    return found
