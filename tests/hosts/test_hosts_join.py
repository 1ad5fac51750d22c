"""Joining: a token admits one host, once, for ten minutes, and only at the scheduler that made it."""

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from lomi.lab import host_enrol
from lomi.lab.host_authority import (
    Authority,
    AuthorityDamagedError,
    RequestRefusedError,
    certificate_request,
    open_authority,
    pem_of_key,
)
from lomi.lab.host_enrol import Desk, JoinRefusedError, join, opened_desk
from lomi.lab.host_place import Cluster, ClusterAbsentError, ClusterPlace
from lomi.lab.host_tokens import LIFE_S, JoinToken, TokenBook, TokenRefusedError, parse_token

SECRET = "5e" * 32
SCHEDULER = "tls://192.0.2.1:8786"


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Desks:
    """A desk on loopback with its book."""

    def __init__(self, authority: Authority, book: TokenBook, clock: Clock, token: JoinToken) -> None:
        self.authority = authority
        self.book = book
        self.clock = clock
        self.token = token


@asynccontextmanager
async def desk(folder: Path, *present: str) -> AsyncIterator[Desks]:
    """Open one; its one token is issued already, and these hosts serve."""
    clock = Clock()
    authority = open_authority(folder / "authority")
    key = Ed25519PrivateKey.generate()
    place = ClusterPlace(folder / "s")
    signed = authority.sign(certificate_request(key, "scheduler"), "scheduler")
    place.keep(
        Cluster(scheduler=SCHEDULER, name="scheduler"),
        key=pem_of_key(key),
        certificate=signed,
        authority=authority.pem,
    )
    book = TokenBook(folder / "tokens", clock)
    book.issue(SECRET)
    served = Desk(authority, book, SCHEDULER, lambda: frozenset(present))
    async with opened_desk(served, "127.0.0.1", 0, place.certificate, place.key) as (port, fingerprint):
        token = JoinToken(host="127.0.0.1", port=port, fingerprint=fingerprint, secret=SECRET)
        yield Desks(authority, book, clock, token)


async def test_a_token_admits_one_host_whose_key_never_leaves_it(tmp_path: Path) -> None:
    """The host ends up with a certificate of the authority over its own key; the same token does not work again."""
    async with desk(tmp_path) as desks:
        place = ClusterPlace(tmp_path / "h")
        joined = await join(parse_token(desks.token.text()), place, "host-1")
        assert joined == place.read() == Cluster(scheduler=SCHEDULER, name="host-1")
        certificate = x509.load_pem_x509_certificate(place.certificate.read_bytes())
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(desks.authority.pem))
        assert place.key.stat().st_mode & 0o777 == 0o600
        ssl.create_default_context(cafile=place.authority).load_cert_chain(place.certificate, place.key)
        other = ClusterPlace(tmp_path / "other")
        with pytest.raises(JoinRefusedError) as refused:
            await join(desks.token, other, "host-2")
        assert refused.value.reason == "token_used"
        assert not other.folder.exists()


async def test_of_two_hosts_with_one_token_one_gets_in(tmp_path: Path) -> None:
    """Both at once: one is a member, the other is told that it was used."""
    async with desk(tmp_path) as desks:
        joining = [join(desks.token, ClusterPlace(tmp_path / name), name) for name in ("a", "b")]
        outcomes = await asyncio.gather(*joining, return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Cluster", "JoinRefusedError"]
    assert [outcome.reason for outcome in outcomes if isinstance(outcome, JoinRefusedError)] == ["token_used"]


async def test_a_token_lasts_ten_minutes(tmp_path: Path) -> None:
    """A second before its end it admits; a second after, it is too old, also when asked again."""
    async with desk(tmp_path) as desks:
        desks.clock.now += LIFE_S + 1
        for _ in range(2):
            with pytest.raises(JoinRefusedError, match="token_expired"):
                await join(desks.token, ClusterPlace(tmp_path / "h"), "host-1")
        desks.clock.now -= 2
        await join(desks.token, ClusterPlace(tmp_path / "h"), "host-1")


async def test_a_secret_is_not_shown_to_another_certificate(tmp_path: Path) -> None:
    """Whoever answers without the token's certificate hears nothing, and the token stays good."""
    async with desk(tmp_path) as desks:
        told = JoinToken(host="127.0.0.1", port=desks.token.port, fingerprint="0" * 64, secret=SECRET)
        with pytest.raises(JoinRefusedError, match="fingerprint_mismatch"):
            await join(told, ClusterPlace(tmp_path / "h"), "host-1")
        await join(desks.token, ClusterPlace(tmp_path / "h"), "host-1")


async def test_a_secret_nobody_issued_and_a_closed_port_are_told_apart(tmp_path: Path) -> None:
    """Each refusal has its own reason."""
    async with desk(tmp_path) as desks:
        guessed = JoinToken(
            host="127.0.0.1", port=desks.token.port, fingerprint=desks.token.fingerprint, secret="00" * 32
        )
        with pytest.raises(JoinRefusedError, match="token_unknown"):
            await join(guessed, ClusterPlace(tmp_path / "h"), "host-1")
    with pytest.raises(JoinRefusedError, match="scheduler_unreachable"):
        await join(desks.token, ClusterPlace(tmp_path / "h"), "host-1")


async def test_a_bad_name_uses_the_token_up_and_says_so(tmp_path: Path) -> None:
    """The desk signs no name that is none."""
    async with desk(tmp_path) as desks:
        with pytest.raises(JoinRefusedError, match="name_invalid"):
            await join(desks.token, ClusterPlace(tmp_path / "h"), "Bad Name")


@pytest.mark.parametrize("name", ["scheduler", "host-1"])
async def test_a_name_that_a_member_has_is_refused(tmp_path: Path, name: str) -> None:
    """Neither the scheduler's own nor that of a host that serves; another is free."""
    async with desk(tmp_path, "host-1", "host-2") as desks:
        with pytest.raises(JoinRefusedError, match="name_taken"):
            await join(desks.token, ClusterPlace(tmp_path / "h"), name)
        assert not (tmp_path / "h").exists()
        desks.book.issue("00" * 32)
        fresh = msgspec.structs.replace(desks.token, secret="00" * 32)
        assert (await join(fresh, ClusterPlace(tmp_path / "h"), "host-3")).name == "host-3"


async def silent(desks: Desks, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connections that say nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return [await asyncio.open_connection("127.0.0.1", desks.token.port, ssl=context) for _ in range(count)]


async def closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the other end has closed the connection; nothing came before."""
    try:
        return await reader.read() == b""
    except (ConnectionError, ssl.SSLError):
        return True


async def test_a_wait_for_a_place_at_the_desk_counts_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty that say nothing, for one place, are all gone after the time of one, and not of forty, which is 80 s."""
    monkeypatch.setattr(host_enrol, "_MOST_AT_ONCE", 1)
    async with desk(tmp_path) as desks:
        with monkeypatch.context() as shorter:
            shorter.setattr(host_enrol, "JOIN_S", 2.0)
            connections = await silent(desks, 40)
            async with asyncio.timeout(25):
                assert all(await asyncio.gather(*(closed(reader) for reader, _ in connections)))
        for _, writer in connections:
            writer.transport.abort()
        await join(desks.token, ClusterPlace(tmp_path / "h"), "host-1")


async def test_one_more_than_fit_at_the_desk_is_closed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sixty-fifth hears the end long before its time is over; the others still wait."""
    monkeypatch.setattr(host_enrol, "JOIN_S", 300.0)
    async with desk(tmp_path) as desks:
        connections = await silent(desks, 64)
        ((reader, last),) = await silent(desks, 1)
        async with asyncio.timeout(25):
            assert await closed(reader)
        assert not any(reader.at_eof() for reader, _ in connections)
        for _, writer in (*connections, (reader, last)):
            writer.transport.abort()


@pytest.mark.parametrize("sent", [b"\n", b"{}\n", b"\xff\xfe\n", b"[" * 10_000 + b"\n", b"x" * (1 << 17), b""])
async def test_nonsense_at_the_desk_gets_no_certificate_and_harms_nobody(tmp_path: Path, sent: bytes) -> None:
    """A closed answer or the end of the connection; the next host joins all the same."""
    async with desk(tmp_path) as desks:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", desks.token.port, ssl=context)
        writer.write(sent)
        if not sent.endswith(b"\n"):
            writer.close()
        try:
            answer = await reader.read()
        except (ConnectionError, ssl.SSLError):
            answer = b""
        writer.transport.abort()
        assert b"CERTIFICATE" not in answer
        await join(desks.token, ClusterPlace(tmp_path / "h"), "host-1")


async def test_the_desk_speaks_no_tls_below_1_3(tmp_path: Path) -> None:
    """A client that offers TLS 1.2 at most gets nowhere."""
    async with desk(tmp_path) as desks:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", desks.token.port, ssl=context)


@given(st.text(max_size=200))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    """Reading a token never fails in another way."""
    with pytest.raises(TokenRefusedError, match="token_malformed"):
        parse_token(text)


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60), st.integers(1, 65_535))
def test_a_token_is_read_as_it_was_written(host: str, port: int) -> None:
    """Through its text and back."""
    token = JoinToken(host=host, port=port, fingerprint="ab" * 32, secret=SECRET)
    assert parse_token(f"  {token.text()}\n") == token


def requests() -> list[tuple[str, Callable[[], bytes]]]:
    """Requests that an authority must not sign."""
    key = Ed25519PrivateKey.generate()

    def tampered() -> bytes:
        good = x509.load_pem_x509_csr(certificate_request(key, "a")).public_bytes(Encoding.DER)
        bad = good[:-1] + bytes([good[-1] ^ 1])
        return ssl.DER_cert_to_PEM_cert(bad).replace("CERTIFICATE", "CERTIFICATE REQUEST").encode()

    def of_another_kind() -> bytes:
        builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        return builder.sign(generate_private_key(SECP256R1()), SHA256()).public_bytes(Encoding.PEM)

    return [("empty", lambda: b""), ("tampered", tampered), ("another key", of_another_kind)]


@pytest.mark.parametrize(("what", "made"), requests(), ids=[name for name, _ in requests()])
def test_an_authority_signs_only_what_is_signed_by_its_own_key(
    tmp_path: Path, what: str, made: Callable[[], bytes]
) -> None:
    """Everything else is refused; names and rights in the request count for nothing."""
    authority = open_authority(tmp_path / "authority")
    with pytest.raises(RequestRefusedError, match="request_invalid"):
        authority.sign(made(), "host-1")
    key = Ed25519PrivateKey.generate()
    signed = x509.load_pem_x509_certificate(authority.sign(certificate_request(key, "scheduler"), "host-1"))
    assert signed.subject.rfc4514_string() == "CN=host-1"
    assert signed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert signed.not_valid_after_utc - signed.not_valid_before_utc < datetime.timedelta(days=366)


def test_an_authority_stays_the_same_and_a_damaged_one_is_not_replaced(tmp_path: Path) -> None:
    """Opened twice it is one; with a broken file it is refused and left as it is."""
    folder = tmp_path / "authority"
    assert open_authority(folder).pem == open_authority(folder).pem
    (folder / "authority.key").write_bytes(b"no key")
    (folder / "authority.key").chmod(0o600)
    with pytest.raises(AuthorityDamagedError):
        open_authority(folder)
    assert (folder / "authority.key").read_bytes() == b"no key"


def test_a_home_that_never_joined_says_how_to(tmp_path: Path) -> None:
    """The message names the command."""
    with pytest.raises(ClusterAbsentError, match="lab host --join TOKEN"):
        ClusterPlace(tmp_path).read()
