"""Joining: over TLS whose certificate the token names, a host shows its secret and gets its own certificate signed.

One line of JSON each way. The secret is sent only once the certificate is the token's; the host's key never leaves it.
"""

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lomi.lab.host_authority import Authority, RequestRefusedError, certificate_request, pem_of_key
from lomi.lab.host_place import SCHEDULER_NAME, Cluster, ClusterPlace
from lomi.lab.host_tokens import JoinToken, TokenBook, TokenRefusedError

JOIN_S = 10.0
_MOST_LINE = 64 << 10
_MOST_AT_ONCE = 16
_MOST_THERE = 64
"""Connections that are answered or wait for it; one more is closed at once."""


class JoinRefusedError(Exception):
    """Raised when a host could not join.

    Attributes:
        reason: a token's (`token_malformed`, `token_unknown`, `token_used`, `token_expired`), `fingerprint_mismatch`,
            `scheduler_unreachable`, `request_invalid`, `name_invalid`, `name_taken`, or `answer_invalid`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Message(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _Asked(_Message, frozen=True, kw_only=True):
    secret: str
    name: str
    request: str


class _Admitted(_Message, frozen=True, kw_only=True, tag_field="answer", tag="admitted"):
    certificate: str
    authority: str
    scheduler: str


class _Refused(_Message, frozen=True, kw_only=True, tag_field="answer", tag="refused"):
    reason: str


class Desk:
    """The scheduler's end: takes secrets, signs requests.

    Args:
        authority: signs.
        book: the tokens.
        scheduler: what admitted hosts connect to, `tls://HOST:PORT`.
        present: the names of the hosts that serve now.
    """

    def __init__(
        self, authority: Authority, book: TokenBook, scheduler: str, present: Callable[[], frozenset[str]]
    ) -> None:
        self._authority = authority
        self._book = book
        self._scheduler = scheduler
        self._present = present
        self._there = 0
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: one question, one answer, in ten seconds with its wait for a place."""
        if self._there == _MOST_THERE:
            writer.transport.abort()
            return
        self._there += 1
        try:
            async with asyncio.timeout(JOIN_S), self._places:
                line = await reader.readline()
                answer = await asyncio.to_thread(self._answer, line, {SCHEDULER_NAME, *self._present()})
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        except (TimeoutError, OSError, ValueError):
            # It was too slow, left, or sent a line without end: nothing was signed for it.
            writer.transport.abort()
        finally:
            self._there -= 1
            writer.close()

    def _answer(self, line: bytes, taken: set[str]) -> _Admitted | _Refused:
        try:
            asked = msgspec.json.decode(line, type=_Asked)
            self._book.redeem(asked.secret)
            if asked.name in taken:
                return _Refused(reason="name_taken")
            certificate = self._authority.sign(asked.request.encode(), asked.name)
        except msgspec.DecodeError:
            return _Refused(reason="request_invalid")
        except (TokenRefusedError, RequestRefusedError) as refused:
            return _Refused(reason=refused.reason)
        return _Admitted(
            certificate=certificate.decode(), authority=self._authority.pem.decode(), scheduler=self._scheduler
        )


@asynccontextmanager
async def opened_desk(desk: Desk, host: str, port: int, certificate: Path, key: Path) -> AsyncIterator[tuple[int, str]]:
    """Listen, with TLS 1.3 and nothing else; the port, and the SHA-256 of the certificate that tokens name.

    Raises:
        OSError: the port is taken.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(
        desk.serve, host, port, ssl=context, limit=_MOST_LINE, ssl_handshake_timeout=JOIN_S
    )
    shown = await asyncio.to_thread(certificate.read_bytes)
    async with server:
        fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown.decode())).hexdigest()
        yield server.sockets[0].getsockname()[1], fingerprint


async def join(token: JoinToken, place: ClusterPlace, name: str) -> Cluster:
    """Become a member: make a key, have it signed, keep everything in the place.

    Raises:
        JoinRefusedError: nothing was kept; the reason says why.
        DiskRefusedError: the place is not this user's alone.
    """
    key = Ed25519PrivateKey.generate()
    asked = _Asked(secret=token.secret, name=name, request=certificate_request(key, name).decode())
    try:
        async with asyncio.timeout(JOIN_S):
            line = await _exchange(token, msgspec.json.encode(asked) + b"\n")
    except (TimeoutError, OSError, ValueError) as error:
        raise JoinRefusedError("scheduler_unreachable") from error
    try:
        answer = msgspec.json.decode(line, type=_Admitted | _Refused)
    except msgspec.DecodeError as error:
        raise JoinRefusedError("answer_invalid") from error
    if isinstance(answer, _Refused):
        raise JoinRefusedError(answer.reason)
    cluster = Cluster(scheduler=answer.scheduler, name=name)
    await asyncio.to_thread(
        place.keep,
        cluster,
        key=pem_of_key(key),
        certificate=answer.certificate.encode(),
        authority=answer.authority.encode(),
    )
    return cluster


async def _exchange(token: JoinToken, question: bytes) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # The token names the one certificate that is right; there is no authority to ask yet.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection(token.host, token.port, ssl=context, limit=_MOST_LINE)
    try:
        shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        if hashlib.sha256(shown or b"").hexdigest() != token.fingerprint:
            raise JoinRefusedError("fingerprint_mismatch")
        writer.write(question)
        await writer.drain()
        return await reader.readline()
    finally:
        writer.transport.abort()
