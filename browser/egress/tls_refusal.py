"""Refuses inside the tunnel, over TLS, so that a refused https navigation leaves its document.

An engine that is refused a tunnel shows an error page in place of the document it had. Answered with 204 over TLS it
keeps the document. For that the engine must take our word for any host, so each engine is started with the hash of one
key that lives in this process only. The key answers for refused places alone, with 204 or 403 and never with content.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import ssl
import tempfile
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from browser.egress.addresses import Address
from browser.egress.answers import own_answer
from browser.egress.gate import Gate, Route
from browser.egress.grant import RefusedError
from browser.egress.request_headers import asks_for_document

_READ = 65_536


class RefusalIdentity:
    """The key and certificate of one engine's refusals.

    Attributes:
        engine_argument: Start the engine with it. Only a key with this hash is excused from the certificate rules.
        context: The server side of TLS with this key.
    """

    def __init__(self, engine_argument: str, context: ssl.SSLContext) -> None:
        self.engine_argument = engine_argument
        self.context = context

    @classmethod
    def create(cls, now: datetime) -> RefusalIdentity:
        """Make a fresh key. `now` is an aware time; the certificate is good for a year from it."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "refused by lomi")])
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=365))
            .sign(key, hashes.SHA256())
        )
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        pin = base64.b64encode(hashlib.sha256(public).digest()).decode()
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        _load(context, private + certificate.public_bytes(serialization.Encoding.PEM))
        return cls(f"--ignore-certificate-errors-spki-list={pin}", context)


def _load(context: ssl.SSLContext, pem: bytes) -> None:
    """Load a key that must not stay on a disk: the ssl module reads keys from files only."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("refusal", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, pem)
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


class TlsRefusal(asyncio.Protocol):
    """Takes over a client connection whose tunnel is refused, and refuses the first request inside it."""

    def __init__(
        self, gate: Gate, identity: RefusalIdentity, route: Route, refused: RefusedError, address: Address | None
    ) -> None:
        self.deadline = gate.clock() + gate.limits.head_s
        self.proven = True
        self.route: Route | None = None
        self._gate = gate
        self._asked = route
        self._refused = refused
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = identity.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaken = False
        self._head = b""
        self._recorded = False
        self._answered = False

    def take_over(self, transport: asyncio.Transport, data: bytes) -> None:
        """Go on with a connection whose tunnel was said to stand; `data` came through it already."""
        self._transport = transport
        transport.set_protocol(self)
        transport.resume_reading()
        if not self._gate.add(self):
            self.cut()
        elif data:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self._answered:
            return
        self._incoming.write(data)
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            while True:
                piece = self._tls.read(_READ)
                if not piece:
                    break
                self._head += piece
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self._flush()
            self.cut()
            return
        if b"\r\n\r\n" in self._head:
            self._answer()
        elif len(self._head) > self._gate.limits.head:
            self.cut()
        self._flush()

    def _answer(self) -> None:
        document = asks_for_document(self._head)
        self._record(document=document)
        self._answered = True
        self._tls.write(own_answer(204 if document else 403, self._refused.reason, close=True))
        self.deadline = self._gate.clock() + self._gate.limits.linger_s
        self._gate.hasten(self.deadline)

    def _flush(self) -> None:
        if self._transport is not None:
            self._transport.write(self._outgoing.read())

    def _record(self, *, document: bool) -> None:
        if not self._recorded:
            self._recorded = True
            asked = Route(scheme=None, host=self._asked.host, port=self._asked.port, document=document)
            self._gate.refuse(asked, self._refused, self._address)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        """See asyncio."""
        self._transport = None
        self._record(document=False)
        self._gate.drop(self)

    def cut(self) -> None:
        """End it at once."""
        self._record(document=False)
        if self._transport is not None:
            self._transport.abort()

    def expire(self) -> None:
        """End it because its deadline passed."""
        self.cut()
