"""Find the broker of this user's own state directory, for those who were given no discovery file."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_der_private_key

from lomi.disk.home import state_home
from lomi.disk.private import read_private
from lomi.disk.refusal import DiskRefusedError, Reason
from lomi.link.errors import BrokerAbsentError, DiscoveryRefusedError
from lomi.link.registration import CONTROL_DIRECTORY, DISCOVERY_NAME, KEY_NAME, MAX_KEY, public_hex


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
        key = load_der_private_key(read_private(control / KEY_NAME, MAX_KEY), None)
    except DiskRefusedError as error:
        if error.reason is Reason.NOT_FOUND:
            raise BrokerAbsentError("discovery_absent") from error
        raise DiscoveryRefusedError(error.reason) from error
    except (ValueError, TypeError) as error:
        raise DiscoveryRefusedError("key_invalid") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DiscoveryRefusedError("key_invalid")
    return Found(control / DISCOVERY_NAME, public_hex(key))
