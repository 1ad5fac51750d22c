"""The discovery file as a broker publishes it, signed with a key that outlives instances.

All functions block; call them through `asyncio.to_thread`.
"""

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lomi.disk.private import Published, private_directory, read_private, remove_if_same, write_private
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.link.discovery import SIGNED_PREFIX, Descriptor, read
from lomi.link.errors import BrokerAbsentError, DiscoveryRefusedError
from lomi.link.messages import IPC_VERSION
from lomi.link.place import remove_dead

CONTROL_DIRECTORY = "agent-control"
KEY_NAME = "registration-key.pk8"
DISCOVERY_NAME = "discovery.json"
MAX_KEY = 1024


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
    # Clients import this module for its names, and this import takes longer than all of theirs.
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    path = control / KEY_NAME
    try:
        content = read_private(path, MAX_KEY)
    except DiskRefusedError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        fresh = Ed25519PrivateKey.generate()
        try:
            form = serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            write_private(path, fresh.private_bytes(*form), replace=False)
        except DiskRefusedError as taken:
            if taken.reason is not Reason.EXISTS:
                raise
        content = read_private(path, MAX_KEY)
    try:
        key = serialization.load_der_private_key(content, None)
    except (ValueError, TypeError) as error:
        raise DiscoveryRefusedError("key_invalid") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DiscoveryRefusedError("key_invalid")
    return key


def public_hex(key: Ed25519PrivateKey) -> str:
    """Return the public half as a client registers it: 64 hex digits."""
    return key.public_key().public_bytes_raw().hex()


def sweep(control: Path, key: Ed25519PrivateKey) -> None:
    """Remove the socket that a killed broker of this state directory left: our own signature proves it was ours."""
    try:
        left = read(control / DISCOVERY_NAME, public_hex(key))
    except (BrokerAbsentError, DiscoveryRefusedError):
        return
    remove_dead(Path(left.endpoint))


def publish(control: Path, key: Ed25519PrivateKey, descriptor: Descriptor) -> Published:
    """Write the signed discovery file and say which file it is.

    Raises:
        DiskRefusedError: the directory is not ours alone.
        DiscoveryRefusedError: a directory has the file's name.
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
    signature = key.sign(SIGNED_PREFIX + payload.encode()).hex()
    content = json.dumps({"version": 1, "payload": payload, "signature": signature}).encode()
    try:
        return write_private(control / DISCOVERY_NAME, content)
    except IsADirectoryError as error:
        raise DiscoveryRefusedError(Reason.NOT_REGULAR) from error


def withdraw(control: Path, published: Published) -> bool:
    """Remove the discovery file if it still is the one that was `published`."""
    return remove_if_same(control / DISCOVERY_NAME, published)
