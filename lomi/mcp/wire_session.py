"""The broker's end of an `mcp` connection: frames of lines in, an MCP session, frames of lines out."""

from collections.abc import AsyncIterator

from lomi.core.backend import Backend
from lomi.link.connection import Wire
from lomi.link.frames import Frame, Kind
from lomi.mcp.session import serve


async def serve_mcp(wire: Wire, backend: Backend) -> None:
    """Serve one helper until its client closes its side or the connection ends.

    Raises:
        FrameRefusedError: the helper broke the framing.
    """

    async def send_line(line: bytes) -> None:
        await wire.send(Frame(Kind.MCP, line))

    await serve(_lines(wire), send_line, backend)


async def _lines(wire: Wire) -> AsyncIterator[bytes]:
    async for frame in wire.frames():
        if frame.kind is Kind.MCP:
            yield bytes(frame.body)
