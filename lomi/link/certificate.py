"""Fresh self-signed Ed25519 certificates and their pins.

The DER is written by hand: it is one fixed shape, and importing an X.509 library costs half of the time in which the
MCP helper has to be ready.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HELPER_NAME = "helper.lomi.invalid"
"""The name in every client's certificate."""

_ED25519 = bytes.fromhex("300506032b6570")
_PRIVATE_KEY = bytes.fromhex("302e020100300506032b657004220420")  # PKCS #8 up to the 32 bytes of the key
_COMMON_NAME = bytes.fromhex("0603550403")
_BASIC_CONSTRAINTS = bytes.fromhex("300c0603551d130101ff04023000")
_DIGITAL_SIGNATURE = bytes.fromhex("300e0603551d0f0101ff040403020780")
_EXTENDED_USAGE = bytes.fromhex("0603551d25")
_ALTERNATIVE_NAME = bytes.fromhex("0603551d11")
_SERVER_AUTH = bytes.fromhex("06082b06010505070301")
_CLIENT_AUTH = bytes.fromhex("06082b06010505070302")
# The pin decides, not the date: a machine whose clock is wrong must still pair, so the dates cover every clock.
_VALIDITY = b"20000101000000Z", b"99991231235959Z"


def broker_name(instance_id: str) -> str:
    """Return the name in the certificate of the broker `instance_id`."""
    return f"{instance_id}.lomi.invalid"


def fingerprint(der: bytes) -> str:
    """Return the pin of a certificate: SHA-256 of its DER, 64 hex digits."""
    return hashlib.sha256(der).hexdigest()


class Certificate:
    """A certificate with its private key, which never touches a disk.

    Attributes:
        der: the certificate.
        sha256: its pin.
    """

    __slots__ = ("_pem", "der", "sha256")

    def __init__(self, der: bytes, pem: bytes) -> None:
        self.der = der
        self.sha256 = fingerprint(der)
        self._pem = pem

    @contextmanager
    def chain_file(self) -> Iterator[str]:
        """Lend the path of a file with key and certificate, the only form `ssl` loads; in memory where possible."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("lomi-certificate")
            try:
                os.write(descriptor, self._pem)
                yield f"/proc/self/fd/{descriptor}"
            finally:
                os.close(descriptor)
            return
        import tempfile  # noqa: PLC0415  # only where there is no file in memory

        with tempfile.NamedTemporaryFile(prefix="lomi-certificate-") as file:
            file.write(self._pem)
            file.flush()
            yield file.name


def issue(name: str, *, server: bool, random: Callable[[int], bytes] = os.urandom) -> Certificate:
    """Make a fresh key and its self-signed certificate.

    Args:
        name: the DNS name (subject and alternative name), at most 63 + 13 ASCII characters.
        server: whether it is for a broker; otherwise for a client.
        random: source of the serial number.
    """
    key = Ed25519PrivateKey.generate()
    body = _body(name, key.public_key().public_bytes_raw(), server=server, serial=random(16))
    der = _sequence(body, _ED25519, _element(0x03, b"\0" + key.sign(body)))
    private = _PRIVATE_KEY + key.private_bytes_raw()
    return Certificate(der, _armour(b"PRIVATE KEY", private) + _armour(b"CERTIFICATE", der))


def _body(name: str, public_key: bytes, *, server: bool, serial: bytes) -> bytes:
    """Return the signed part: version 3, names, dates, key, and the extensions of a leaf that can sign nothing else."""
    ascii_name = name.encode("ascii")
    subject = _sequence(_element(0x31, _sequence(_COMMON_NAME, _element(0x0C, ascii_name))))
    usage = _sequence(_EXTENDED_USAGE, _element(0x04, _sequence(_SERVER_AUTH if server else _CLIENT_AUTH)))
    alternative = _sequence(_ALTERNATIVE_NAME, _element(0x04, _sequence(_element(0x82, ascii_name))))
    positive = bytes([serial[0] & 0x7F | 0x40]) + serial[1:]
    return _sequence(
        bytes.fromhex("a003020102"),
        _element(0x02, positive),
        _ED25519,
        subject,
        _sequence(*(_element(0x18, date) for date in _VALIDITY)),
        subject,
        _sequence(_ED25519, _element(0x03, b"\0" + public_key)),
        _element(0xA3, _sequence(_BASIC_CONSTRAINTS, _DIGITAL_SIGNATURE, usage, alternative)),
    )


def _armour(label: bytes, der: bytes) -> bytes:
    return b"-----BEGIN %b-----\n%b-----END %b-----\n" % (label, base64.encodebytes(der), label)


def _sequence(*parts: bytes) -> bytes:
    return _element(0x30, b"".join(parts))


def _element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    octets = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(octets))) + octets + content
