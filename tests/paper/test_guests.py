"""Who is let in at a phone's ports, when, and what one of them can break."""

import asyncio
import contextlib
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator

import pytest

from emulator_images.paper.guests import Guests, Session


@contextlib.asynccontextmanager
async def a_door(guests: Guests, serve: Session) -> AsyncIterator[int]:
    """A loopback port at which guests are served."""
    server = await asyncio.start_server(guests.door(serve), "127.0.0.1", 0)
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def all_that_comes(port: int, said: bytes = b"") -> bytes:
    """Connect, say something, and read to the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            return await reader.read()
        return b""
    finally:
        writer.close()


async def test_nobody_is_let_in_once_the_phone_ends() -> None:
    """A client that was accepted while the phone ended is hung up on; nothing waits for it."""
    served: list[int] = []

    async def serve(reader: StreamReader, _: StreamWriter) -> None:
        served.append(1)
        await reader.read()

    ending = asyncio.Event()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group, a_door(Guests(group, ending), serve) as port:
        ending.set()
        assert await all_that_comes(port) == b""
    assert served == []


async def test_a_session_that_fails_costs_its_own_connection(capfd: pytest.CaptureFixture[str]) -> None:
    """What goes wrong for one client is told on standard error; the next is served, and all are let go at the end."""

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        if await reader.readexactly(1) == b"x":
            raise KeyError("a mistake of ours")
        writer.write(b"well")
        await writer.drain()
        await asyncio.Event().wait()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        guests = Guests(group, asyncio.Event())
        async with a_door(guests, serve) as port:
            assert await all_that_comes(port, b"x") == b""
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"y")
            assert await reader.readexactly(4) == b"well"
            guests.let_go()
            writer.close()
    assert "a mistake of ours" in capfd.readouterr().err
