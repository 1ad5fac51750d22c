"""The scheduler of a cluster: Dask's own behind mutual TLS, and the desk at which hosts join. It keeps no devices."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lomi.disk.private import read_private, write_private
from lomi.disk.refusal import DiskRefusedError
from lomi.lab.host_authority import certificate_request, open_authority, pem_of_key
from lomi.lab.host_enrol import Desk, opened_desk
from lomi.lab.host_place import SCHEDULER_NAME, Cluster, ClusterPlace
from lomi.lab.host_security import TlsScheduler, configure, security
from lomi.lab.host_tokens import JoinToken, TokenBook

_MOST = 4096


class NoSchedulerError(Exception):
    """Raised where no scheduler runs on this home."""


class OpenDesk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where hosts join, and the SHA-256 of the certificate that they will see there."""

    host: str
    port: int
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerOrder:
    """Where to listen: an address of this machine that all hosts reach, and two ports (0: any)."""

    place: ClusterPlace
    host: str
    port: int
    join_port: int
    ready: Callable[[str, str], None]
    """Called once with the address for `--engine`, and the first token."""


async def serve_scheduler(order: SchedulerOrder, stop: asyncio.Event) -> None:
    """Serve until `stop`. Both ports speak TLS 1.3 and nothing else.

    Raises:
        OSError: a port is taken.
        DiskRefusedError: the home's cluster folder is not this user's alone.
        AuthorityDamagedError: its authority's files are damaged.
    """
    configure()
    place = order.place
    authority = await asyncio.to_thread(open_authority, place.folder / "authority")
    key = Ed25519PrivateKey.generate()
    own = {
        "key": pem_of_key(key),
        "certificate": authority.sign(certificate_request(key, SCHEDULER_NAME), SCHEDULER_NAME),
        "authority": authority.pem,
    }
    # Kept first, since Dask reads its key and certificate from files; again once the port is known.
    await asyncio.to_thread(lambda: place.keep(Cluster(scheduler="", name=SCHEDULER_NAME), **own))
    book = await asyncio.to_thread(TokenBook, place.folder / "tokens", time.time)
    scheduler = TlsScheduler(
        host=order.host, port=order.port, protocol="tls", security=security(place), dashboard=False
    )
    async with scheduler:
        address = str(scheduler.address)
        await asyncio.to_thread(lambda: place.keep(Cluster(scheduler=address, name=SCHEDULER_NAME), **own))
        desk = Desk(authority, book, address, lambda: frozenset(str(one.name) for one in scheduler.workers.values()))
        async with opened_desk(desk, order.host, order.join_port, place.certificate, place.key) as (port, fingerprint):
            opened = OpenDesk(host=order.host, port=port, fingerprint=fingerprint)
            file = place.folder / "desk.json"
            await asyncio.to_thread(write_private, file, msgspec.json.encode(opened))
            try:
                token = await asyncio.to_thread(new_token, place)
                order.ready(address.replace("tls://", "dask://"), token.text())
                await stop.wait()
            finally:
                await asyncio.to_thread(_forget, file)


def new_token(place: ClusterPlace) -> JoinToken:
    """A token for one host within ten minutes; blocks.

    Raises:
        NoSchedulerError: no scheduler runs on this home.
        DiskRefusedError: its folder is not this user's alone.
    """
    try:
        opened = msgspec.json.decode(read_private(place.folder / "desk.json", _MOST), type=OpenDesk)
    except (DiskRefusedError, msgspec.DecodeError) as error:
        raise NoSchedulerError("no scheduler runs on this home; start one with `lomi lab scheduler`") from error
    token = JoinToken(host=opened.host, port=opened.port, fingerprint=opened.fingerprint, secret=secrets.token_hex(32))
    TokenBook(place.folder / "tokens", time.time).issue(token.secret)
    return token


def _forget(file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
