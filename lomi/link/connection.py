"""An authenticated connection, as each side sees it."""

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from lomi.link.channel import Channel
from lomi.link.errors import EnrolmentRefusedError
from lomi.link.frames import Frame
from lomi.link.limits import LinkLimits
from lomi.link.messages import Hello, Welcome, decode_hello, encode_welcome, token_proof
from lomi.link.peer import Peer


class Wire:
    """Frames both ways with one proven peer. One task receives; any number may send."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @property
    def closing(self) -> bool:
        """Whether the connection ended or is about to."""
        return self._channel.closing

    async def send(self, *frames: Frame) -> None:
        """Send frames together and wait while the peer is behind; see `Channel.send`."""
        await self._channel.send(*frames)

    def send_nowait(self, *frames: Frame) -> None:
        """Put frames on their way without waiting; see `Channel.send_nowait`."""
        self._channel.send_nowait(*frames)

    async def receive(self) -> Frame:
        """Return the next frame; see `Channel.receive`."""
        return await self._channel.receive()

    def frames(self) -> AsyncIterator[Frame]:
        """Yield frames until the connection ends; see `Channel.frames`."""
        return self._channel.frames()

    async def close(self) -> None:
        """Close in good order; frames already sent arrive."""
        await self._channel.close()

    def abort(self) -> None:
        """Cut the connection now, without a goodbye."""
        self._channel.abort()

    async def closed(self) -> None:
        """Wait until the connection is gone."""
        await self._channel.closed()


class Enrolled(NamedTuple):
    """What the broker knows of a client once the handshake is over.

    Attributes:
        instance_id: this broker.
        broker_sha256: pin of its certificate.
        label: the client's own name for itself, 1 to 80 characters; shown to people, never trusted.
        client_sha256: pin of the client's certificate: the identity of the session.
        peer: its process as the kernel recorded it when it connected.
        pairing_request_id: what a person sees beside the label.
    """

    instance_id: str
    broker_sha256: str
    label: str
    client_sha256: str
    peer: Peer
    pairing_request_id: str


class Connection(Wire):
    """A client, seen from the broker. It begins with `greet`; then frames go both ways until it ends."""

    def __init__(self, channel: Channel, enrolled: Enrolled, limits: LinkLimits) -> None:
        super().__init__(channel)
        self._limits = limits
        self.enrolled = enrolled

    @property
    def label(self) -> str:
        """The client's own name for itself."""
        return self.enrolled.label

    @property
    def client_sha256(self) -> str:
        """Pin of the client's certificate."""
        return self.enrolled.client_sha256

    @property
    def peer_pid(self) -> int:
        """Process id of the client when it connected; 0 where the system does not say."""
        return self.enrolled.peer.pid

    @property
    def pairing_request_id(self) -> str:
        """What a person sees beside the label."""
        return self.enrolled.pairing_request_id

    async def greet(self, phase: str) -> Hello:
        """Send the welcome, which tells the client that it was accepted, and return its hello.

        Later phases travel as ordinary frames.

        Raises:
            LinkError: the client went away, was too slow, or sent something else.
        """
        enrolled = self.enrolled
        await self.send(encode_welcome(Welcome(enrolled.instance_id, phase, enrolled.pairing_request_id)))
        try:
            async with asyncio.timeout(self._limits.accept_seconds):
                frame = await self.receive()
        except TimeoutError:
            raise EnrolmentRefusedError("too_slow") from None
        return decode_hello(frame)

    def proves(self, hello: Hello, token_sha256: bytes) -> bool:
        """Whether `hello` proves, for this very connection, the token whose SHA-256 (32 bytes) is `token_sha256`."""
        enrolled = self.enrolled
        expected = token_proof(token_sha256, enrolled.instance_id, enrolled.client_sha256, enrolled.broker_sha256)
        return hello.proof is not None and hmac.compare_digest(hello.proof, expected)


class BrokerConnection(Wire):
    """The broker, seen from a client.

    Attributes:
        welcome: the broker's first words: instance, phase and pairing request.
    """

    def __init__(self, channel: Channel, welcome: Welcome) -> None:
        super().__init__(channel)
        self.welcome = welcome

    def offer(self, take: Callable[[Frame], bool]) -> None:
        """Offer each frame that is received to `take` first, which must not raise; see `Channel.take`."""
        self._channel.take = take

    @property
    def writable(self) -> bool:
        """Whether the broker keeps up with what is sent."""
        return self._channel.writable
