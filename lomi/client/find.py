"""Find the broker of this user's own state directory, for those who were given no discovery file."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lomi.disk.home import state_home
from lomi.disk.private import read_private
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.link.errors import BrokerAbsentError, DiscoveryRefusedError
from lomi.link.registration import CONTROL_DIRECTORY, DISCOVERY_NAME, KEY_NAME, MAX_KEY, public_hex

_PKCS8_ED25519 = bytes.fromhex("302e020100300506032b657004220420")
"""What stands before the 32 bytes of a key in the one form in which `lomi.link.registration` writes them."""


class Found(NamedTuple):
    """A discovery file and the public key (64 hex digits) that its signature must fit."""

    discovery_file: Path
    discovery_key: str


def own_broker(environment: Mapping[str, str]) -> Found:
    """The discovery file and key of `LOMI_HOME`; blocks for two small reads and creates nothing.

    Raises:
        BrokerAbsentError: no broker ever ran there.
        DiscoveryRefusedError: the key is damaged, or the directory is not ours alone.
    """
    control = state_home(environment).resolve() / CONTROL_DIRECTORY
    try:
        key = _private_key(read_private(control / KEY_NAME, MAX_KEY))
    except DiskRefusedError as error:
        if error.reason is Reason.NOT_FOUND:
            raise BrokerAbsentError("discovery_absent") from error
        raise DiscoveryRefusedError(error.reason) from error
    except (ValueError, TypeError) as error:
        raise DiscoveryRefusedError("key_invalid") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DiscoveryRefusedError("key_invalid")
    return Found(control / DISCOVERY_NAME, public_hex(key))


def _private_key(content: bytes) -> object:
    """The key; as a rule without the reader of all kinds of keys, whose import takes longer than the whole search."""
    if len(content) == len(_PKCS8_ED25519) + 32 and content.startswith(_PKCS8_ED25519):
        return Ed25519PrivateKey.from_private_bytes(content[len(_PKCS8_ED25519) :])
    from cryptography.hazmat.primitives.serialization import load_der_private_key  # noqa: PLC0415

    return load_der_private_key(content, None)
