"""Both ends of the wire for the link tests: an echoing broker, and a client in pieces that can misbehave."""

import asyncio
import contextlib
import json
import shutil
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from lomi.link.certificate import HELPER_NAME, Certificate, broker_name, issue
from lomi.link.client import connect
from lomi.link.connection import BrokerConnection, Connection
from lomi.link.errors import LinkError
from lomi.link.frames import HEADER, Frame, Kind, encode
from lomi.link.limits import DESKTOP, LinkLimits
from lomi.link.messages import Announcement, decode_acknowledgement, encode_announcement
from lomi.link.server import Endpoint, serve
from lomi.link.tls import client_context, trust_only

INSTANCE = "instance-1"


@contextlib.contextmanager
def short_directory() -> Iterator[Path]:
    """A directory whose path leaves room for a socket's; what is left in it at the end is a leak."""
    place = Path(tempfile.mkdtemp(prefix="lw-")).resolve()
    try:
        yield place
        assert list(place.iterdir()) == [], "the broker left something behind"
    finally:
        shutil.rmtree(place, ignore_errors=True)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until a condition holds that no event tells of."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


@contextlib.contextmanager
def hurried() -> Iterator[Callable[[float], None]]:
    """A way to put the running loop's clock forward by seconds: a deadline passes, however fast or slow all else is."""
    loop, ahead = asyncio.get_running_loop(), 0.0
    real = loop.time

    def forward(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    loop.time = lambda: real() + ahead  # type: ignore[method-assign]
    try:
        yield forward
    finally:
        loop.time = real  # type: ignore[method-assign]


def trusting(own: Certificate, broker_der: bytes) -> ssl.SSLContext:
    """A client's context that accepts one broker."""
    context = client_context(own)
    trust_only(context, broker_der)
    return context


class Broker:
    """An endpoint that greets and echoes.

    Attributes:
        endpoint: where it listens.
        accepted: every connection that proved itself.
        arrived: set at each of them.
    """

    def __init__(self) -> None:
        self.endpoint: Endpoint
        self.accepted: list[Connection] = []
        self.ends: list[str] = []
        self.arrived = asyncio.Event()
        self.ended = asyncio.Event()

    async def serve(self, connection: Connection) -> None:
        self.accepted.append(connection)
        self.arrived.set()
        try:
            await connection.greet("pairing_required")
            async for frame in connection.frames():
                await connection.send(frame)
            self.ends.append("clean")
        except LinkError as error:
            self.ends.append(error.reason)
            raise
        finally:
            self.ended.set()


@contextlib.asynccontextmanager
async def broker(
    home: Path, runtime: Path, *, instance: str = INSTANCE, limits: LinkLimits = DESKTOP
) -> AsyncIterator[Broker]:
    """Run an echoing broker whose socket is below `runtime`."""
    running = Broker()
    environment = {"XDG_RUNTIME_DIR": str(runtime)}
    async with serve(
        home, instance, limits=limits, on_connection=running.serve, environment=environment
    ) as running.endpoint:
        yield running


@contextlib.asynccontextmanager
async def client(
    running: Broker, *, label: str = "tester", token: str | None = None
) -> AsyncIterator[BrokerConnection]:
    """Connect as any client does."""
    endpoint = running.endpoint
    async with connect(endpoint.discovery_path, endpoint.discovery_key, label=label, token=token) as connection:
        yield connection


class RawClient:
    """A client that does each step only when told, and with what it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.certificate = issue(HELPER_NAME, server=False)

    async def announce(
        self, *, instance: str = INSTANCE, label: str = "raw", certificate: Certificate | None = None
    ) -> None:
        """Send a well-formed announcement."""
        shown = certificate or self.certificate
        await self.send_clear(encode_announcement(Announcement(instance, label, shown.der)))

    async def announce_object(self, message: dict[str, object]) -> None:
        """Send any JSON as an announcement."""
        await self.send_clear(Frame(Kind.JSON, json.dumps(message).encode()))

    async def send_clear(self, frame: Frame) -> None:
        """Send one frame in whatever state the stream is."""
        self.writer.writelines(encode(frame))
        await self.writer.drain()

    async def send_bytes(self, content: bytes) -> None:
        """Send bytes as they are."""
        self.writer.write(content)
        await self.writer.drain()

    async def read_frame(self) -> Frame:
        """Read one frame; IncompleteReadError at the end."""
        length, kind = HEADER.unpack(await self.reader.readexactly(HEADER.size))
        return Frame(Kind(kind), await self.reader.readexactly(length - 1))

    async def refusal(self) -> str:
        """Read the reason in clear for which the broker lets us go, and see it hang up."""
        message = json.loads((await self.read_frame()).body)
        assert message.keys() == {"ipcVersion", "refused"}
        self.writer.close()
        return str(message["refused"])

    async def acknowledged(self) -> bytes:
        """Read the acknowledgement and return the broker's certificate."""
        return decode_acknowledgement(await self.read_frame()).certificate

    async def start_tls(self, context: ssl.SSLContext, name: str = broker_name(INSTANCE)) -> None:
        """Start TLS with a context of the test's making."""
        await self.writer.start_tls(context, server_hostname=name)

    async def enrol(self) -> None:
        """Do everything right up to the welcome, and read it."""
        await self.announce()
        await self.start_tls(trusting(self.certificate, await self.acknowledged()))
        assert json.loads((await self.read_frame()).body)["phase"] == "pairing_required"

    async def hello(self) -> None:
        """Send a proper hello."""
        await self.send_clear(Frame(Kind.JSON, b'{"ipcVersion":1,"purpose":"calls","proof":"","options":{}}'))

    async def is_cut_off(self) -> bool:
        """Whether the broker ends the stream without another byte."""
        try:
            return await self.reader.read(1) == b""
        except (ConnectionError, ssl.SSLError):
            return True


@contextlib.asynccontextmanager
async def raw_client(path: Path) -> AsyncIterator[RawClient]:
    """Connect to a socket and nothing more."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        yield RawClient(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
