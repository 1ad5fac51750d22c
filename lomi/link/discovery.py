"""The discovery file: how a client finds the broker, signed with a key that outlives instances.

All functions block; call them through `asyncio.to_thread`.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_der_private_key

from lomi.disk.private import Published, private_directory, read_private, remove_if_same, write_private
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.link.errors import BrokerAbsentError, DiscoveryRefusedError
from lomi.link.messages import IPC_VERSION, is_instance_id, is_pin

CONTROL_DIRECTORY = "agent-control"
KEY_NAME = "registration-key.pk8"
DISCOVERY_NAME = "discovery.json"
MAX_KEY = 1024
MAX_DISCOVERY = 16 << 10
_SIGNED = b"lomi-mcp-discovery-v1\0"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Where one broker instance listens, and the pin of its certificate."""

    instance_id: str
    endpoint: str
    broker_sha256: str


def control_directory(home: Path) -> Path:
    """Return (and create, 0700) the directory of key and discovery file under the state directory `home`.

    Raises:
        DiskRefusedError: it is not ours alone.
    """
    place = home.resolve() / CONTROL_DIRECTORY
    private_directory(place)
    return place


def registration_key(control: Path) -> Ed25519PrivateKey:
    """Return the persistent key, made at first use; two brokers that start at once end with the same one.

    Raises:
        DiskRefusedError: the file is not ours alone.
        DiscoveryRefusedError: the file holds no Ed25519 key; it is left as it is.
    """
    path = control / KEY_NAME
    try:
        content = read_private(path, MAX_KEY)
    except DiskRefusedError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        fresh = Ed25519PrivateKey.generate()
        try:
            write_private(path, fresh.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()), replace=False)
        except DiskRefusedError as taken:
            if taken.reason is not Reason.EXISTS:
                raise
        content = read_private(path, MAX_KEY)
    try:
        key = load_der_private_key(content, None)
    except (ValueError, TypeError) as error:
        raise DiscoveryRefusedError("key_invalid") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DiscoveryRefusedError("key_invalid")
    return key


def public_hex(key: Ed25519PrivateKey) -> str:
    """Return the public half as a client registers it: 64 hex digits."""
    return key.public_key().public_bytes_raw().hex()


def publish(control: Path, key: Ed25519PrivateKey, descriptor: Descriptor) -> Published:
    """Write the signed discovery file and say which file it is.

    Raises:
        DiskRefusedError: the directory is not ours alone.
        OSError: the disk failed; an older file is intact.
    """
    payload = json.dumps(
        {
            "instanceId": descriptor.instance_id,
            "endpoint": descriptor.endpoint,
            "brokerSha256": descriptor.broker_sha256,
            "ipcVersion": IPC_VERSION,
        }
    )
    signature = key.sign(_SIGNED + payload.encode()).hex()
    content = json.dumps({"version": 1, "payload": payload, "signature": signature}).encode()
    return write_private(control / DISCOVERY_NAME, content)


def withdraw(control: Path, published: Published) -> bool:
    """Remove the discovery file if it still is the one that was `published`."""
    return remove_if_same(control / DISCOVERY_NAME, published)


def read(path: Path, public_key_hex: str) -> Descriptor:
    """Read and check a discovery file against the public key that the client was registered with.

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
        key.verify(bytes.fromhex(str(outer["signature"])), _SIGNED + payload)
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
