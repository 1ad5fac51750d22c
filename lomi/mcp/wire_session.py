"""The broker's end of an `mcp` connection: frames of lines in, an MCP session, frames of lines out."""

from collections.abc import AsyncIterator

from lomi.core.backend import Backend
from lomi.link.connection import Wire
from lomi.link.errors import FrameRefusedError
from lomi.link.frames import Frame, Kind
from lomi.mcp.session import serve


async def serve_mcp(wire: Wire, backend: Backend) -> None:
    """Serve one helper until its client closes its side or the connection ends.

    Raises:
        FrameRefusedError: the helper broke the framing.
    """
    broken: FrameRefusedError | None = None

    async def send_line(line: bytes) -> None:
        await wire.send(Frame(Kind.MCP, line))

    async def lines() -> AsyncIterator[bytes]:
        nonlocal broken
        try:
            async for frame in wire.frames():
                if frame.kind is Kind.MCP:
                    yield bytes(frame.body)
        except FrameRefusedError as error:
            # Within the SDK it would come out in a group; to the SDK it is an end like any other.
            broken = error

    await serve(lines(), send_line, backend)
    if broken is not None:
        raise broken
