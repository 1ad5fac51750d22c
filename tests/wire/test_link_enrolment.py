"""Announce, then prove: who is let in, who is not, and that nothing was asked before."""

import asyncio
import base64
import contextlib
import json
import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from link_peers import (
    INSTANCE,
    Broker,
    RawClient,
    broker,
    client,
    hurried,
    raw_client,
    short_directory,
    trusting,
    until,
)

from lomi.link.certificate import HELPER_NAME, broker_name, fingerprint, issue
from lomi.link.client import connect_endpoint
from lomi.link.connection import Connection
from lomi.link.errors import BrokerAbsentError, ChannelClosedError, EnrolmentRefusedError, FrameRefusedError
from lomi.link.frames import Frame, Kind, encode
from lomi.link.limits import DESKTOP, MAX_BODY, LinkLimits
from lomi.link.messages import (
    Acknowledgement,
    Announcement,
    Hello,
    Welcome,
    encode_acknowledgement,
    encode_announcement,
    encode_welcome,
    token_key,
    token_proof,
)
from lomi.link.tls import broker_context, trust_only


@pytest.fixture
def runtime() -> Iterator[Path]:
    """Where the socket's directory goes."""
    with short_directory() as place:
        yield place


@pytest.fixture
async def running(tmp_path: Path, runtime: Path) -> AsyncIterator[Broker]:
    """A running broker."""
    async with broker(tmp_path / "home", runtime) as found:
        yield found


@pytest.fixture
async def raw(running: Broker) -> AsyncIterator[RawClient]:
    """A connected client that has said nothing yet."""
    async with raw_client(running.endpoint.socket_path) as found:
        yield found


def announced(**changes: object) -> dict[str, object]:
    """An announcement with changes; a value of None takes the field away."""
    certificate = base64.b64encode(issue(HELPER_NAME, server=False).der).decode()
    message: dict[str, object] = {
        "ipcVersion": 1,
        "instanceId": INSTANCE,
        "clientLabel": "raw",
        "certificate": certificate,
    } | changes
    return {key: value for key, value in message.items() if value is not None}


class TestAccepted:
    """The proper way in."""

    async def test_both_sides_know_each_other(self, running: Broker) -> None:
        """The broker has label, pin and process of the client; the client has the phase; frames go both ways."""
        async with client(running, label="é 漢 🙂") as connection:
            assert connection.welcome == Welcome(INSTANCE, "pairing_required", running.accepted[0].pairing_request_id)
            accepted = running.accepted[0]
            assert accepted.label == "é 漢 🙂"
            assert accepted.peer_pid == os.getpid()
            assert len(accepted.client_sha256) == 64
            picture = os.urandom(MAX_BODY)
            await connection.send(Frame(Kind.MCP, b"line"))
            assert await connection.receive() == Frame(Kind.MCP, b"line")
            await connection.send(Frame(Kind.MCP, picture))
            assert await connection.receive() == Frame(Kind.MCP, picture)
        await running.ended.wait()
        assert running.ends == ["clean"]

    async def test_the_session_is_tls_13_without_tickets(self, running: Broker, raw: RawClient) -> None:
        """Version, protocol and certificates are as agreed; there is nothing to resume with, hence no early data."""
        await raw.enrol()
        await raw.hello()
        await raw.send_clear(Frame(Kind.MCP, b"x"))
        await raw.read_frame()
        tls = raw.writer.get_extra_info("ssl_object")
        assert tls.version() == "TLSv1.3"
        assert tls.selected_alpn_protocol() == "lomi-control/1"
        assert fingerprint(tls.getpeercert(binary_form=True)) == running.endpoint.broker_sha256
        assert tls.session is None or not tls.session.has_ticket
        assert not tls.session_reused

    async def test_certificates_are_fresh_and_hold_their_names(self, running: Broker) -> None:
        """Each connection shows another certificate; the broker's names its instance; an independent reader agrees."""
        for _ in range(2):
            async with client(running):
                pass
        assert len({connection.client_sha256 for connection in running.accepted}) == 2
        for name, server in ((broker_name(INSTANCE), True), (HELPER_NAME, False)):
            found = x509.load_der_x509_certificate(issue(name, server=server).der)
            found.verify_directly_issued_by(found)
            assert found.subject == found.issuer
            names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            assert names.get_values_for_type(x509.DNSName) == [name]
            assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
            usage = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
            assert list(usage) == [x509.OID_SERVER_AUTH if server else x509.OID_CLIENT_AUTH]

    async def test_a_token_is_proven_and_not_sent(self, tmp_path: Path, runtime: Path) -> None:
        """The right token proves itself on its own connection only; a wrong or missing one does not."""
        hellos: list[tuple[Hello, bool]] = []
        async with broker(tmp_path / "home", runtime) as running:

            async def listen(found: Connection) -> None:
                hello = await found.greet("pairing_required")
                hellos.append((hello, found.proves(hello, token_key("secret"))))
                await found.send(Frame(Kind.JSON, b"{}"))

            running.endpoint._on_connection = listen
            for token in ("secret", "wrong", None):
                async with client(running, token=token) as connection:
                    await connection.receive()
        assert [proven for _hello, proven in hellos] == [True, False, False]
        assert hellos[2][0].proof is None
        first = hellos[0][0].proof
        assert first is not None
        assert first != token_proof(token_key("secret"), INSTANCE, "00" * 32, running.endpoint.broker_sha256)

    async def test_hello_options_arrive(self, tmp_path: Path, runtime: Path) -> None:
        """Purpose and options of the hello reach the broker."""
        found: list[Hello] = []
        async with broker(tmp_path / "home", runtime) as running:

            async def listen(accepted: Connection) -> None:
                found.append(await accepted.greet("connected"))
                await accepted.send(Frame(Kind.JSON, b"{}"))

            running.endpoint._on_connection = listen
            endpoint = running.endpoint
            async with connect_endpoint(
                endpoint.socket_path,
                INSTANCE,
                endpoint.broker_sha256,
                label="x",
                purpose="mcp",
                options={"profile": "qa"},
            ) as connection:
                assert connection.welcome.phase == "connected"
                await connection.receive()
        assert found == [Hello("mcp", None, {"profile": "qa"})]


class TestRefusedInClear:
    """A bad announcement is answered with its reason and no session."""

    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"ipcVersion": 2}, "version_unknown"),
            ({"ipcVersion": "1"}, "message_malformed"),
            ({"ipcVersion": True}, "message_malformed"),
            ({"ipcVersion": None}, "message_malformed"),
            ({"extra": 1}, "message_malformed"),
            ({"clientLabel": None}, "message_malformed"),
            ({"instanceId": "instance-2"}, "instance_unknown"),
            ({"instanceId": "../x"}, "instance_unknown"),
            ({"clientLabel": ""}, "label_invalid"),
            ({"clientLabel": "x" * 81}, "label_invalid"),
            ({"clientLabel": "line\nbreak"}, "label_invalid"),
            ({"clientLabel": "\x1b[2J"}, "label_invalid"),
            ({"clientLabel": "bidi \u202e"}, "label_invalid"),
            ({"clientLabel": "lone \ud800"}, "label_invalid"),
            ({"certificate": ""}, "certificate_invalid"),
            ({"certificate": "not base64!"}, "certificate_invalid"),
            ({"certificate": base64.b64encode(b"no DER").decode()}, "certificate_invalid"),
            ({"certificate": base64.b64encode(bytes(8193)).decode()}, "certificate_invalid"),
        ],
    )
    async def test_a_bad_announcement(
        self, running: Broker, raw: RawClient, changes: dict[str, object], reason: str
    ) -> None:
        """Each wrong field has its reason; the connection never reaches the broker's rules."""
        await raw.announce_object(announced(**changes))
        assert await raw.refusal() == reason
        assert running.accepted == []

    async def test_the_longest_label_is_fine(self, raw: RawClient) -> None:
        """80 characters, of whatever width, are accepted."""
        await raw.announce(label="漢" * 80)
        assert await raw.acknowledged()

    @pytest.mark.parametrize("body", [b"[]", b"null", b"{", b"\xff", b"[" * 16_000, b'{"ipcVersion":1,"ipcVersion":1}'])
    async def test_what_is_no_announcement(self, raw: RawClient, body: bytes) -> None:
        """Anything but one JSON object is malformed."""
        await raw.send_clear(Frame(Kind.JSON, body))
        assert await raw.refusal() == "message_malformed"

    @pytest.mark.parametrize(
        "stream",
        [
            (16 << 10).to_bytes(3) + b"\xff",
            b"\0\0\0\0",
            b"\0\0\0\x02\x04x",
            b"\0\0\0\x02\x09x",
            b"\x16\x03\x01\x02\x00",
        ],
    )
    async def test_what_is_no_frame_in_clear(self, running: Broker, raw: RawClient, stream: bytes) -> None:
        """Oversize, empty, another kind, or TLS at once: cut off without an answer."""
        await raw.send_bytes(stream)
        assert await raw.is_cut_off()
        assert running.accepted == []

    async def test_bytes_before_tls_are_refused(self, running: Broker, raw: RawClient) -> None:
        """Whatever follows the announcement before the answer could be anybody's: refused, in one piece or two."""
        announcement = encode(encode_announcement(Announcement(INSTANCE, "raw", raw.certificate.der)))
        await raw.send_bytes(b"".join(announcement) + b"\x16\x03\x01")
        assert await raw.is_cut_off()
        async with raw_client(running.endpoint.socket_path) as other:
            await other.send_bytes(b"".join([*announcement, *encode(Frame(Kind.MCP, b"early data"))]))
            assert await other.is_cut_off()
        assert running.accepted == []


class TestNotProven:
    """A good announcement with nothing behind it."""

    async def test_a_stolen_certificate(self, running: Broker, raw: RawClient) -> None:
        """Who announces another's certificate can't prove it: no welcome."""
        theirs = issue(HELPER_NAME, server=False)
        await raw.announce(certificate=theirs)
        context = trusting(raw.certificate, await raw.acknowledged())
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            await raw.start_tls(context)
        assert await raw.is_cut_off()
        assert running.accepted == []

    async def test_no_certificate(self, running: Broker, raw: RawClient) -> None:
        """A handshake without a client certificate is refused."""
        await raw.announce()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=await raw.acknowledged())
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.set_alpn_protocols(["lomi-control/1"])
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            await raw.start_tls(context)
        assert await raw.is_cut_off()
        assert running.accepted == []

    async def test_a_replayed_enrolment(self, running: Broker, runtime: Path) -> None:
        """The recorded bytes of a whole good connection give nothing when sent again."""
        recorded = bytearray()
        tap = runtime / "tap.sock"

        async def record(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            up_reader, up_writer = await asyncio.open_unix_connection(str(running.endpoint.socket_path))

            async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, keep: bytearray | None) -> None:
                while piece := await source.read(1 << 16):
                    if keep is not None:
                        keep += piece
                    sink.write(piece)
                sink.close()

            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(pump(reader, up_writer, recorded))
                tasks.create_task(pump(up_reader, writer, None))

        server = await asyncio.start_unix_server(record, str(tap))
        async with connect_endpoint(tap, INSTANCE, running.endpoint.broker_sha256, label="victim") as connection:
            await connection.send(Frame(Kind.MCP, b"a request"))
            await connection.receive()
        server.close()
        tap.unlink()
        assert len(running.accepted) == 1
        split = 5 + int.from_bytes(recorded[:4]) - 1
        async with raw_client(running.endpoint.socket_path) as replay:
            await replay.send_bytes(bytes(recorded[:split]))
            await replay.acknowledged()
            with contextlib.suppress(ConnectionError):
                await replay.send_bytes(bytes(recorded[split:]))
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await replay.reader.readexactly(1 << 20)
        await running.ended.wait()
        assert len(running.accepted) == 1, "the replay never became a session"

    async def test_an_old_version(self, running: Broker, raw: RawClient) -> None:
        """TLS 1.2 is refused in the handshake."""
        await raw.announce()
        context = trusting(raw.certificate, await raw.acknowledged())
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await raw.start_tls(context)
        assert running.accepted == []

    async def test_early_data(self, running: Broker, raw: RawClient) -> None:
        """Application data sent along with the ClientHello is never read: the handshake ends there."""
        await raw.announce()
        context = trusting(raw.certificate, await raw.acknowledged())
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        handshake = context.wrap_bio(incoming, outgoing, server_hostname=broker_name(INSTANCE))
        with pytest.raises(ssl.SSLWantReadError):
            handshake.do_handshake()
        await raw.send_bytes(outgoing.read() + b"\x17\x03\x03\x00\x20" + os.urandom(32))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await raw.reader.readexactly(1 << 20)
        assert running.accepted == []

    @pytest.mark.parametrize("protocols", [["http/1.1"], []])
    async def test_another_protocol(self, running: Broker, raw: RawClient, protocols: list[str]) -> None:
        """A client that speaks another protocol, or names none, is refused."""
        await raw.announce()
        right = trusting(raw.certificate, await raw.acknowledged())
        right.set_alpn_protocols(protocols)
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            await raw.start_tls(right)
        assert await raw.is_cut_off()
        assert running.accepted == []

    async def test_another_name(self, running: Broker, raw: RawClient) -> None:
        """A client that asks for another broker's name is refused."""
        await raw.announce()
        context = trusting(raw.certificate, await raw.acknowledged())
        context.check_hostname = False
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await raw.start_tls(context, "other.lomi.invalid")
        assert running.accepted == []

    @pytest.mark.parametrize(("name", "server"), [("other.lomi.invalid", False), (HELPER_NAME, True)])
    async def test_a_certificate_of_another_kind(
        self, running: Broker, raw: RawClient, name: str, server: bool
    ) -> None:
        """A proven certificate with another name, or one made for servers, is no client's."""
        raw.certificate = issue(name, server=server)
        await raw.announce()
        with contextlib.suppress(ssl.SSLError, ConnectionError):
            await raw.start_tls(trusting(raw.certificate, await raw.acknowledged()))
        assert await raw.is_cut_off()
        assert running.accepted == []

    async def test_a_client_that_stops_half_way(self, running: Broker) -> None:
        """Silence after connecting, after announcing, or after the welcome ends with the accept deadline."""
        gate = running.endpoint.gate
        with hurried() as forward:
            for steps in range(3):
                async with raw_client(running.endpoint.socket_path) as raw:
                    if steps == 0:
                        await until(lambda: gate.connections == 1)
                    if steps == 1:
                        await raw.announce()
                        await raw.acknowledged()
                    if steps == 2:
                        await raw.enrol()
                    forward(DESKTOP.accept_seconds)
                    if steps == 0:
                        assert await raw.refusal() == "too_slow"
                    else:
                        assert await raw.is_cut_off()
                assert gate.connections == 0

    @pytest.mark.parametrize(
        "frame", [Frame(Kind.MCP, b"{}"), Frame(Kind.JSON, b"{}"), Frame(Kind.JSON, bytes(65_537))]
    )
    async def test_another_frame_than_the_hello(self, running: Broker, raw: RawClient, frame: Frame) -> None:
        """After the welcome only a well-formed hello of at most 64 KiB goes on."""
        await raw.enrol()
        await raw.send_clear(frame)
        assert await raw.is_cut_off()
        assert running.ends


class Impostor:
    """Something else that listens where the broker should."""

    def __init__(self) -> None:
        self.certificate = issue(broker_name(INSTANCE), server=True)
        self.shown = self.certificate.der
        self.instance = INSTANCE
        self.extra = b""
        self.welcome: Frame | None = None
        self.answer: Frame | None = None
        self.requests: list[bytes] = []
        self.context_instance = INSTANCE

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Play a broker as far as the settings go, and note everything that is asked."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            length = int.from_bytes(await reader.readexactly(4))
            announcement = json.loads((await reader.readexactly(length))[1:])
            answer = self.answer or encode_acknowledgement(Acknowledgement(self.instance, self.shown, "request"))
            writer.write(b"".join(encode(answer)) + self.extra)
            await writer.drain()
            client_der = base64.b64decode(announcement["certificate"])
            context = broker_context(self.certificate, self.context_instance)
            trust_only(context, client_der)
            await writer.start_tls(context)
            if self.welcome is not None:
                writer.writelines(encode(self.welcome))
            else:
                writer.close()
            while piece := await reader.read(1000):
                self.requests.append(piece)
        writer.transport.abort()


@pytest.fixture
async def impostor(runtime: Path) -> AsyncIterator[Impostor]:
    """An impostor at `impostor.sock`."""
    found = Impostor()
    path = runtime / "impostor.sock"
    server = await asyncio.start_unix_server(found.serve, str(path))
    yield found
    server.close()
    path.unlink()


class TestImpostor:
    """The client's own checks: it says nothing to a broker that is not the pinned one."""

    async def refusal(self, runtime: Path, pin: str) -> str:
        """Connect to the impostor and return why the client would not."""
        with pytest.raises(EnrolmentRefusedError) as caught:
            async with connect_endpoint(runtime / "impostor.sock", INSTANCE, pin, label="x", token="secret"):
                pass
        return caught.value.reason

    async def test_a_certificate_that_is_not_pinned(self, impostor: Impostor, runtime: Path) -> None:
        """Another certificate than the pinned one is refused before TLS."""
        assert await self.refusal(runtime, "ab" * 32) == "certificate_mismatch"
        assert impostor.requests == []

    async def test_the_pinned_certificate_without_its_key(self, impostor: Impostor, runtime: Path) -> None:
        """Showing the true certificate does not help who lacks its key."""
        true = issue(broker_name(INSTANCE), server=True)
        impostor.shown = true.der
        assert await self.refusal(runtime, true.sha256) == "tls_failed"

    async def test_another_instance(self, impostor: Impostor, runtime: Path) -> None:
        """An answer in another instance's name is refused."""
        impostor.instance = "instance-2"
        assert await self.refusal(runtime, impostor.certificate.sha256) == "instance_unknown"

    async def test_a_certificate_with_another_name(self, impostor: Impostor, runtime: Path) -> None:
        """A pinned certificate must hold the instance's name as well."""
        impostor.certificate = issue("other.lomi.invalid", server=True)
        impostor.shown = impostor.certificate.der
        assert await self.refusal(runtime, impostor.certificate.sha256) == "tls_failed"

    async def test_bytes_between_answer_and_tls(self, impostor: Impostor, runtime: Path) -> None:
        """Bytes slipped in after the answer in clear are refused."""
        impostor.extra = b"".join(encode(encode_welcome(Welcome(INSTANCE, "connected", "r"))))
        assert await self.refusal(runtime, impostor.certificate.sha256) == "bytes_before_tls"

    async def test_no_welcome(self, impostor: Impostor, runtime: Path) -> None:
        """The end of the stream before the welcome means: not accepted."""
        assert await self.refusal(runtime, impostor.certificate.sha256) == "not_accepted"
        assert impostor.requests == []

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (b'{"ipcVersion":1,"refused":"handshakes_full"}', "handshakes_full"),
            (b'{"ipcVersion":1,"refused":"<script>"}', "not_accepted"),
            (b'{"ipcVersion":2,"refused":"handshakes_full"}', "version_unknown"),
            (b"{}", "message_malformed"),
        ],
    )
    async def test_an_answer_of_another_form(
        self, impostor: Impostor, runtime: Path, answer: bytes, reason: str
    ) -> None:
        """A refusal in clear gives one of the known reasons and never text of the other side's choosing."""
        impostor.answer = Frame(Kind.JSON, answer)
        assert await self.refusal(runtime, impostor.certificate.sha256) == reason

    async def test_a_welcome_from_elsewhere(self, impostor: Impostor, runtime: Path) -> None:
        """A welcome in another instance's name, or of another kind, is refused and no proof is given away."""
        impostor.welcome = encode_welcome(Welcome("instance-2", "connected", "r"))
        assert await self.refusal(runtime, impostor.certificate.sha256) == "instance_unknown"
        impostor.welcome = Frame(Kind.MCP, b"{}")
        with pytest.raises(FrameRefusedError):
            await self.refusal(runtime, impostor.certificate.sha256)
        assert impostor.requests == []


async def test_nobody_there(runtime: Path) -> None:
    """A socket that is missing, or that nobody listens on, means that there is no broker."""
    with pytest.raises(BrokerAbsentError) as caught:
        async with connect_endpoint(runtime / "none.sock", INSTANCE, "ab" * 32, label="x"):
            pass
    assert caught.value.reason == "socket_absent"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(runtime / "dead.sock"))
    with pytest.raises(BrokerAbsentError):
        async with connect_endpoint(runtime / "dead.sock", INSTANCE, "ab" * 32, label="x"):
            pass
    (runtime / "dead.sock").unlink()


async def test_a_silent_listener(runtime: Path) -> None:
    """A listener that never answers is given up after the deadlines."""
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(runtime / "silent.sock"))
        silent.listen()
        with pytest.raises(EnrolmentRefusedError) as caught:
            async with connect_endpoint(
                runtime / "silent.sock", INSTANCE, "ab" * 32, label="x", limits=LinkLimits(accept_seconds=0.05)
            ):
                pass
    assert caught.value.reason == "too_slow"
    (runtime / "silent.sock").unlink()


async def test_our_own_bad_label(running: Broker) -> None:
    """A label that would be refused is not even sent."""
    with pytest.raises(EnrolmentRefusedError):
        async with client(running, label="a\x00b"):
            pass


async def test_a_connection_that_the_broker_cuts(running: Broker) -> None:
    """When the broker cuts a connection (revocation), the client's iteration ends and sending is refused."""
    async with client(running) as connection:
        running.accepted[0].abort()
        assert [frame async for frame in connection.frames()] == []
        with pytest.raises(ChannelClosedError):
            await connection.send(Frame(Kind.MCP, b"x"))
