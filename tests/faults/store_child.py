"""A process that works on a store until it is killed, and says on stdout what was acknowledged.

Run: store_child.py ROLE HOME. Roles: `write` reserves and settles receipts, `image` stores pictures, `hold` owns the
home until its stdin ends, `fork` does so but first forks a child that keeps the store's descriptors. The failpoint
comes from the environment.
"""

import asyncio
import os
import struct
import sys
import time
import zlib
from pathlib import Path

from lomi.contract.artifact import AndroidSource
from lomi.contract.codes import EffectState, OperationState
from lomi.contract.limits import DESKTOP
from lomi.contract.model import Input
from lomi.core.failpoints import Failpoints
from lomi.core.grant import Grant
from lomi.core.ids import ProjectId, SessionId, WorkspaceId
from lomi.core.port import Call, TakenImage, Workspace
from lomi.store import NewReceipt, Store

SOURCE = AndroidSource(workspace_id="w1", panel_id="p1", device_id="d1", generation="g1")
GRANT = Grant(scopes=frozenset({"android.capture"}), workspaces=frozenset({"*"}), devices=frozenset({"*"}))


class SystemClock:
    """The real clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def time(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def call(session: str = "s1") -> Call[Input]:
    """A call of a session that may capture any phone in any workspace."""
    workspace = Workspace(id=WorkspaceId("w1"), project_id=ProjectId("p1"), name="main")
    return Call(tool="t", input=Input(), session_id=SessionId(session), grant=GRANT, workspace=workspace)


def png(seed: int = 0, extra: int = 0) -> bytes:
    """A real one-pixel PNG, made longer by `extra` bytes of text."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes([0, seed % 256, 0, 0])))
    text = chunk(b"tEXt", b"n\0" + bytes(extra)) if extra else b""
    return b"\x89PNG\r\n\x1a\n" + header + text + pixels + chunk(b"IEND", b"")


def receipt(number: int, epoch: str) -> NewReceipt:
    """A receipt with a key of its own."""
    return NewReceipt(
        operation_id=f"{number:040x}",
        session_id="s1",
        client_label="qa",
        tool="t",
        fingerprint=number.to_bytes(32, "big"),
        state=OperationState.RUNNING,
        project_id="p1",
        retry_epoch=epoch,
        request_key=f"key-{number}",
        workspace_id="w1",
    )


def open_store(home: Path, instance: str = "child"):
    """The store of a home with desktop limits."""
    return Store.open(
        home, instance_id=instance, limits=DESKTOP, clock=SystemClock(), failpoints=Failpoints(os.environ)
    )


def say(word: str, what: object) -> None:
    """Tell the test."""
    sys.stdout.write(f"{word} {what}\n")
    sys.stdout.flush()


async def write(store: Store) -> None:
    """Reserve and settle for ever: one settled alone, then a few at once."""
    number = int(os.environ.get("FIRST", "1"))
    epoch = f"{number:040d}"
    await store.put_epoch(epoch, "s1", int(time.time()) + 86_400)

    async def one(mine: int) -> None:
        await store.reserve(receipt(mine, epoch))
        say("reserved", mine)
        await store.settle(f"{mine:040x}", OperationState.SUCCEEDED, EffectState.COMPLETE, b"{}")
        say("settled", mine)

    while True:
        await one(number)
        await asyncio.gather(*(one(number + step) for step in range(1, 5)))
        say("counted", await store.bump("w"))
        number += 5


async def image(store: Store) -> None:
    """Store pictures for ever."""
    for number in range(1000):
        stored = await store.artifacts.put_image(call(), png(number, 5000), SOURCE, None)
        say("stored", stored.id)


async def taken(store: Store) -> None:
    """Store pictures for ever that are still to be taken."""
    for number in range(1000):

        async def taking(number: int = number) -> TakenImage:
            await asyncio.sleep(0.02)
            return TakenImage(png(number, 5000), SOURCE, None)

        stored = await store.artifacts.put_taken(call(), "w1", taking)
        say("stored", stored.id)


async def hold(store: Store) -> None:
    """Own the home until stdin ends."""
    say("owned", store.namespace_uuid)
    await asyncio.to_thread(sys.stdin.read)


async def main(role: str, home: Path) -> None:
    """Play a role."""
    async with open_store(home) as store:
        if role == "fork":
            child = os.fork()
            if child == 0:
                # It keeps every descriptor of the store, lets go of the test's pipes, and does nothing until told.
                os.close(0)
                os.close(1)
                os.read(int(os.environ["KEEP"]), 1)
                os._exit(0)
            say("forked", child)
        await {"write": write, "image": image, "taken": taken, "hold": hold, "fork": hold}[role](store)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
