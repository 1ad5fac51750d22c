"""The broker's side of the wire: listen, let a client prove itself, hand over an authenticated connection."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lomi.disk.private import Published
from lomi.disk.refusal import DiskRefusedError
from lomi.link import registration
from lomi.link.certificate import Certificate, broker_name, fingerprint, issue
from lomi.link.channel import Channel
from lomi.link.connection import Connection, Enrolled
from lomi.link.discovery import Descriptor
from lomi.link.errors import EnrolmentRefusedError, LinkError
from lomi.link.gate import Gate
from lomi.link.limits import DESKTOP, LinkLimits
from lomi.link.messages import (
    Acknowledgement,
    decode_announcement,
    encode_acknowledgement,
    encode_refusal,
    is_instance_id,
)
from lomi.link.peer import Peer, peer_of
from lomi.link.place import Place, bind
from lomi.link.tls import broker_context, check_peer, trust_only
from lomi.link.watch import watch_removals

_MAX_LINGERING = 32

OnConnection = Callable[[Connection], Awaitable[None]]


class Endpoint:
    """A broker's listening end.

    Attributes:
        instance_id: this broker.
        discovery_path: the file that clients are given.
        discovery_key: the public key that clients are given, 64 hex digits.
        broker_sha256: pin of this instance's certificate.
        gate: connections and handshakes now.
        fault: why the vanished socket could not be bound again; None while clients can connect.
    """

    def __init__(
        self,
        instance_id: str,
        control: Path,
        key: Ed25519PrivateKey,
        *,
        limits: LinkLimits,
        on_connection: OnConnection,
        environment: Mapping[str, str],
        random: Callable[[int], bytes],
        tasks: asyncio.TaskGroup,
    ) -> None:
        self.instance_id = instance_id
        self.discovery_path = control / registration.DISCOVERY_NAME
        self.discovery_key = registration.public_hex(key)
        self.gate = Gate(limits)
        self._certificate: Certificate = issue(broker_name(instance_id), server=True, random=random)
        self._control = control
        self._key = key
        self._limits = limits
        self._on_connection = on_connection
        self._environment = environment
        self._random = random
        self._tasks = tasks
        self._serving: set[asyncio.Task[None]] = set()
        self.fault: OSError | LinkError | DiskRefusedError | None = None
        self._spare: ssl.SSLContext | None = None
        self._lingering = 0
        self._stopping = False
        self._binding = asyncio.Lock()
        self._place: Place | None = None
        self._server: asyncio.Server | None = None
        self._published: Published | None = None

    @property
    def broker_sha256(self) -> str:
        """Pin of this instance's certificate."""
        return self._certificate.sha256

    @property
    def socket_path(self) -> Path:
        """Where the socket is now."""
        assert self._place is not None
        return self._place.path

    async def ensure(self) -> bool:
        """Bind and publish again if the socket's name or the discovery file is gone; say whether that was needed.

        Raises:
            OSError: the disk failed.
            SocketPathTooLongError: the only directory left has too long a path.
            DiskRefusedError: the state directory is not ours alone any more.
        """
        async with self._binding:
            if self._place is not None and await asyncio.to_thread(self._stands, self._place):
                return False
            await self._stop_listening()
            await self._listen()
            self.fault = None
            return True

    def _stands(self, place: Place) -> bool:
        return place.stands() and os.path.lexists(self.discovery_path)

    async def keep_standing(self) -> None:
        """Bind and publish again whenever the socket's name is taken away; runs until cancelled."""
        while True:
            async with watch_removals(self.socket_path.parent) as removal:
                try:
                    await self.ensure()
                except (OSError, LinkError, DiskRefusedError) as error:
                    # Sessions that run must not end because new ones can't come; status shows the fault.
                    self.fault = error
                    return
                await removal.wait()

    async def _listen(self) -> None:
        self._place = await asyncio.to_thread(bind, self._environment, self._random)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._accept, sock=self._place.listener, backlog=256)
        descriptor = Descriptor(self.instance_id, str(self._place.path), self.broker_sha256)
        self._published = await asyncio.to_thread(registration.publish, self._control, self._key, descriptor)

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._place is not None:
            await asyncio.to_thread(self._place.remove)

    async def _stop(self) -> None:
        self._stopping = True
        await self._stop_listening()
        for task in self._serving:
            task.cancel()
        if self._published is not None:
            await asyncio.to_thread(registration.withdraw, self._control, self._published)

    def _accept(self) -> Channel:
        return Channel(self._limits, self._begin)

    def _begin(self, channel: Channel) -> None:
        if self._stopping:
            channel.abort()
            return
        task = self._tasks.create_task(self._serve(channel), name="lomi-connection")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, channel: Channel) -> None:
        """Take one connection from its first byte to its last."""
        try:
            with self.gate.connection():
                async with self.gate.handshake():
                    connection = await self._enrol(channel)
                await self._on_connection(connection)
        except EnrolmentRefusedError as error:
            if not channel.closing and channel.in_clear:
                channel.send_nowait(encode_refusal(error.refused))
                await self._linger(channel)
        except LinkError:
            channel.abort()
        finally:
            await channel.close()

    async def _linger(self, channel: Channel) -> None:
        """Let a refused client read why, and go: closing first would cut it off while it still writes."""
        if self._lingering >= _MAX_LINGERING:
            return
        self._lingering += 1
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await channel.closed()
        except TimeoutError:
            pass
        finally:
            self._lingering -= 1

    async def _enrol(self, channel: Channel) -> Connection:
        peer = peer_of(channel.socket)
        if peer.uid != os.getuid():
            raise EnrolmentRefusedError("foreign_user")
        try:
            async with asyncio.timeout(self._limits.accept_seconds):
                return await self._prove(channel, peer)
        except TimeoutError:
            raise EnrolmentRefusedError("too_slow") from None

    def _fresh_context(self) -> ssl.SSLContext:
        return broker_context(self._certificate, self.instance_id)

    async def _prove(self, channel: Channel, peer: Peer) -> Connection:
        """Announce, then prove: the certificate named in clear becomes the only one the handshake accepts."""
        announced = decode_announcement(await channel.receive())
        if announced.instance_id != self.instance_id:
            raise EnrolmentRefusedError("instance_unknown")
        context, self._spare = self._spare or self._fresh_context(), None
        trust_only(context, announced.certificate)
        enrolled = Enrolled(
            instance_id=self.instance_id,
            broker_sha256=self.broker_sha256,
            label=announced.label,
            client_sha256=fingerprint(announced.certificate),
            peer=peer,
            pairing_request_id=self._random(8).hex(),
        )
        channel.check_quiet()
        channel.send_nowait(
            encode_acknowledgement(
                Acknowledgement(self.instance_id, self._certificate.der, enrolled.pairing_request_id)
            )
        )
        # While the client makes its context we make the one for the next client.
        self._spare = self._fresh_context()
        await channel.upgrade(context, server_side=True)
        check_peer(channel.tls, enrolled.client_sha256, client=True)
        return Connection(channel, enrolled, self._limits)


@asynccontextmanager
async def serve(
    home: Path,
    instance_id: str,
    *,
    limits: LinkLimits = DESKTOP,
    on_connection: OnConnection,
    environment: Mapping[str, str] = os.environ,
    random: Callable[[int], bytes] = os.urandom,
) -> AsyncIterator[Endpoint]:
    """Listen for clients until the context ends; then cut what is left and remove socket and discovery file.

    Args:
        home: the state directory; keys and discovery file live in `agent-control` below it.
        instance_id: this broker: one lower-case DNS label, fresh for each start.
        limits: bounds.
        on_connection: called once for each client that proved itself, in a task of its own, to the connection's end;
            must begin with `greet`. A `LinkError` that it lets through ends its connection, any other error the broker.
        environment: where XDG_RUNTIME_DIR is looked up.
        random: source of names and identifiers; keys come from the system.

    Raises:
        SocketPathTooLongError: no directory is short enough.
        DiskRefusedError: the state directory is not ours alone.
        DiscoveryRefusedError: the registration key is damaged.
    """
    if not is_instance_id(instance_id):
        raise ValueError("an instance id is one lower-case DNS label")
    control = await asyncio.to_thread(registration.control_directory, home)
    key = await asyncio.to_thread(registration.registration_key, control)
    await asyncio.to_thread(registration.sweep, control, key)
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as tasks:
        standing: asyncio.Task[None] | None = None
        endpoint = Endpoint(
            instance_id,
            control,
            key,
            limits=limits,
            on_connection=on_connection,
            environment=environment,
            random=random,
            tasks=tasks,
        )
        try:
            await endpoint._listen()  # noqa: SLF001  # the endpoint's life is this function's
            standing = tasks.create_task(endpoint.keep_standing(), name="lomi-socket-name")
            yield endpoint
        except BaseException as error:  # noqa: BLE001  # raised below, outside the group that would wrap it
            failure = error
        finally:
            if standing is not None:
                standing.cancel()
            await endpoint._stop()  # noqa: SLF001
    if failure is not None:
        raise failure
