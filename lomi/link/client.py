"""The client's side of the wire: find the broker, check it, prove ourselves."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from lomi.link import discovery
from lomi.link.certificate import HELPER_NAME, Certificate, broker_name, fingerprint, issue
from lomi.link.channel import Channel
from lomi.link.connection import BrokerConnection
from lomi.link.errors import BrokerAbsentError, ChannelClosedError, EnrolmentRefusedError
from lomi.link.limits import DESKTOP, LinkLimits
from lomi.link.messages import (
    Announcement,
    Hello,
    Welcome,
    decode_acknowledgement,
    decode_welcome,
    encode_announcement,
    encode_hello,
    is_label,
    token_key,
    token_proof,
)
from lomi.link.peer import peer_of
from lomi.link.tls import check_peer, client_context, trust_only


@asynccontextmanager
async def connect(
    discovery_path: Path,
    public_key_hex: str,
    *,
    label: str,
    token: str | None = None,
    purpose: str = "calls",
    options: Mapping[str, str] | None = None,
    limits: LinkLimits = DESKTOP,
) -> AsyncIterator[BrokerConnection]:
    """Connect to the broker that the discovery file names; the connection closes with the context.

    Args:
        discovery_path: absolute path of the discovery file.
        public_key_hex: the key its signature must fit, 64 hex digits.
        label: our name as people see it, 1 to 80 characters without control characters.
        token: client token; it is never sent, only proven.
        purpose: `calls` or `mcp`.
        options: small settings of the purpose.
        limits: deadlines.

    Raises:
        BrokerAbsentError: no file, or nobody listens where it points.
        DiscoveryRefusedError: the file is not to be trusted.
        EnrolmentRefusedError: one side did not accept the other.
    """
    hello = _Introduction(label, token, purpose, dict(options or {}))
    descriptor = await asyncio.to_thread(discovery.read, discovery_path, public_key_hex)
    try:
        connection = await _open(descriptor, hello, limits)
    except BrokerAbsentError:
        # The broker may just be moving to another socket; what it published since then decides.
        moved = await asyncio.to_thread(discovery.read, discovery_path, public_key_hex)
        if moved == descriptor:
            raise
        connection = await _open(moved, hello, limits)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def connect_endpoint(
    endpoint: Path,
    instance_id: str,
    broker_sha256: str,
    *,
    label: str,
    token: str | None = None,
    purpose: str = "calls",
    options: Mapping[str, str] | None = None,
    limits: LinkLimits = DESKTOP,
) -> AsyncIterator[BrokerConnection]:
    """Connect to a broker whose socket, instance and pin are known; see `connect`."""
    descriptor = discovery.Descriptor(instance_id, str(endpoint), broker_sha256)
    connection = await _open(descriptor, _Introduction(label, token, purpose, dict(options or {})), limits)
    try:
        yield connection
    finally:
        await connection.close()


class _Introduction(NamedTuple):
    """What we say of ourselves."""

    label: str
    token: str | None
    purpose: str
    options: Mapping[str, str]


async def _open(descriptor: discovery.Descriptor, introduction: _Introduction, limits: LinkLimits) -> BrokerConnection:
    if not is_label(introduction.label):
        raise EnrolmentRefusedError("label_invalid")
    loop = asyncio.get_running_loop()
    try:
        _transport, channel = await loop.create_unix_connection(lambda: Channel(limits), descriptor.endpoint)
    except OSError as error:
        raise BrokerAbsentError("socket_absent") from error
    try:
        # The broker's own bounds are its queue and its accept deadline; we wait for both.
        async with asyncio.timeout(2 * limits.accept_seconds + limits.handshake_queue_seconds):
            return await _enrol(channel, descriptor, introduction)
    except ChannelClosedError as error:
        channel.abort()
        raise EnrolmentRefusedError("not_accepted") from error
    except TimeoutError as error:
        channel.abort()
        raise EnrolmentRefusedError("too_slow") from error
    except BaseException:
        channel.abort()
        raise


async def _enrol(channel: Channel, descriptor: discovery.Descriptor, introduction: _Introduction) -> BrokerConnection:
    instance_id, broker_sha256 = descriptor.instance_id, descriptor.broker_sha256
    certificate = issue(HELPER_NAME, server=False)
    await _prove(channel, certificate, instance_id, broker_sha256, introduction.label)
    welcome = await _welcome(channel, instance_id)
    proof = None
    if introduction.token is not None:
        proof = token_proof(token_key(introduction.token), instance_id, certificate.sha256, broker_sha256)
    await channel.send(encode_hello(Hello(introduction.purpose, proof, introduction.options)))
    return BrokerConnection(channel, welcome)


async def _prove(channel: Channel, certificate: Certificate, instance_id: str, broker_sha256: str, label: str) -> None:
    if peer_of(channel.socket).uid != os.getuid():
        raise EnrolmentRefusedError("foreign_user")
    channel.send_nowait(encode_announcement(Announcement(instance_id, label, certificate.der)))
    context = client_context(certificate)
    answer = decode_acknowledgement(await channel.receive())
    if answer.instance_id != instance_id:
        raise EnrolmentRefusedError("instance_unknown")
    if fingerprint(answer.certificate) != broker_sha256:
        raise EnrolmentRefusedError("certificate_mismatch")
    trust_only(context, answer.certificate)
    await channel.upgrade(context, server_side=False, server_name=broker_name(instance_id))
    check_peer(channel.tls, broker_sha256, client=False)


async def _welcome(channel: Channel, instance_id: str) -> Welcome:
    """Wait for the broker's first words: in TLS 1.3 our own handshake ends before the broker has judged us."""
    welcome = decode_welcome(await channel.receive())
    if welcome.instance_id != instance_id:
        raise EnrolmentRefusedError("instance_unknown")
    return welcome
