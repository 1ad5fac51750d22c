"""The authority of a cluster: one key on the scheduler's host that signs the certificate of every member."""

import datetime
import re
from collections.abc import Callable
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lomi.disk.private import private_directory, read_private, write_private
from lomi.disk.refusal import DiskRefusedError, Reason

MEMBER_DAYS = 365
_AUTHORITY_DAYS = 3650
_MOST = 64 << 10
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
Clock = Callable[[], datetime.datetime]


class RequestRefusedError(Exception):
    """Raised for a certificate request that is not signed; `reason` is `request_invalid` or `name_invalid`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class AuthorityDamagedError(Exception):
    """Raised when the authority's files are not what they were; the message names them."""


def utc_now() -> datetime.datetime:
    """The present, in UTC."""
    return datetime.datetime.now(datetime.UTC)


def is_member_name(name: str) -> bool:
    """Whether a member may be called so: a lower-case name as of a host, at most 63 characters."""
    return _NAME.fullmatch(name) is not None


def pem_of_key(key: Ed25519PrivateKey) -> bytes:
    """A private key as PKCS #8 in PEM, not encrypted."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def certificate_request(key: Ed25519PrivateKey, name: str) -> bytes:
    """The request of a member, in PEM."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, None).public_bytes(Encoding.PEM)


class Authority:
    """Signs; made by `open_authority`."""

    def __init__(self, key: Ed25519PrivateKey, certificate: x509.Certificate, clock: Clock) -> None:
        self._key = key
        self._certificate = certificate
        self._clock = clock

    @property
    def pem(self) -> bytes:
        """The certificate that every member trusts."""
        return self._certificate.public_bytes(Encoding.PEM)

    def sign(self, request: bytes, name: str) -> bytes:
        """A member's certificate in PEM. Of the request only its key counts; the name is the caller's word.

        Raises:
            RequestRefusedError: no request, not signed by its own key, another kind of key, or no name.
        """
        if not is_member_name(name):
            raise RequestRefusedError("name_invalid")
        try:
            asked = x509.load_pem_x509_csr(request)
            key = asked.public_key()
            if not asked.is_signature_valid or not isinstance(key, Ed25519PublicKey):
                raise RequestRefusedError("request_invalid")
        except (ValueError, TypeError, InvalidSignature) as error:
            raise RequestRefusedError("request_invalid") from error
        return self._issue(key, name).public_bytes(Encoding.PEM)

    def _issue(self, key: Ed25519PublicKey, name: str) -> x509.Certificate:
        now = self._clock()
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self._certificate.subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=MEMBER_DAYS))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, None)
        )


def open_authority(folder: Path, clock: Clock = utc_now) -> Authority:
    """The authority in a folder, made there at the first call; blocks.

    Raises:
        DiskRefusedError: the folder or a file in it is not this user's alone.
        AuthorityDamagedError: what is there is no authority's key and certificate.
    """
    private_directory(folder)
    try:
        key = load_pem_private_key(read_private(folder / "authority.key", _MOST), None)
        certificate = x509.load_pem_x509_certificate(read_private(folder / "authority.pem", _MOST))
    except (ValueError, TypeError) as error:
        raise AuthorityDamagedError(f"{folder} holds no authority: {error}") from error
    except DiskRefusedError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        key, certificate = _made(clock())
        write_private(folder / "authority.key", pem_of_key(key))
        write_private(folder / "authority.pem", certificate.public_bytes(Encoding.PEM))
    if not isinstance(key, Ed25519PrivateKey):
        raise AuthorityDamagedError(f"{folder}/authority.key is of another kind")
    return Authority(key, certificate, clock)


def _made(now: datetime.datetime) -> tuple[Ed25519PrivateKey, x509.Certificate]:
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lomi lab authority")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, None)
    )
    return key, certificate
