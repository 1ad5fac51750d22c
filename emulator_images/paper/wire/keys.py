"""The adb public keys a phone trusts, and the RSA signature check, without a cryptography library.

adb signs the 20-byte token as if it were a SHA-1 digest, in PKCS#1 v1.5 form, with a 2048-bit key.
"""

import base64
import binascii
import hmac
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MODULUS_BYTES = 256
_STRUCT = struct.Struct(f"<II{_MODULUS_BYTES}s{_MODULUS_BYTES}sI")
_SHA1_DIGEST_INFO = bytes.fromhex("3021300906052b0e03021a05000414")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An RSA public key as adb knows it."""

    modulus: int
    exponent: int

    def accepts(self, token: bytes, signature: bytes) -> bool:
        """Whether `signature` over `token` was made with this key's private half."""
        if len(signature) != _MODULUS_BYTES:
            return False
        opened = pow(int.from_bytes(signature, "big"), self.exponent, self.modulus).to_bytes(_MODULUS_BYTES, "big")
        tail = b"\x00" + _SHA1_DIGEST_INFO + token
        expected = b"\x00\x01" + b"\xff" * (_MODULUS_BYTES - 2 - len(tail)) + tail
        return hmac.compare_digest(opened, expected)


def parse_public_key(text: str) -> PublicKey | None:
    """The key in a line of an `adbkey.pub` file; None when the line holds none."""
    fields = text.split()
    if not fields:
        return None
    try:
        words, _, modulus, _, exponent = _STRUCT.unpack(base64.b64decode(fields[0], validate=True))
    except (binascii.Error, struct.error):
        return None
    if words * 4 != _MODULUS_BYTES:
        return None
    return PublicKey(int.from_bytes(modulus, "little"), exponent)


def trusted_keys(environment: Mapping[str, str]) -> frozenset[PublicKey]:
    """Keys the phone trusts from birth.

    Looked for as the emulator does: the user directory's `adbkey.pub` and every public half named by
    `ADB_VENDOR_KEYS` (files or directories, separated by colons).
    """
    home = Path(environment.get("HOME", "/"))
    user = Path(environment.get("ANDROID_USER_HOME") or environment.get("ANDROID_SDK_HOME") or home / ".android")
    candidates = [user / "adbkey.pub"]
    for entry in filter(None, environment.get("ADB_VENDOR_KEYS", "").split(":")):
        path = Path(entry)
        if path.is_dir():
            candidates.extend(sorted(path.glob("*.pub")))
        else:
            candidates.append(path if path.suffix == ".pub" else path.with_name(path.name + ".pub"))
    found: set[PublicKey] = set()
    for path in candidates:
        try:
            text = path.read_text("utf-8")
        except OSError:
            continue
        found.update(key for line in text.splitlines() if (key := parse_public_key(line)))
    return frozenset(found)
