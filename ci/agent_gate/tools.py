"""A tool server as its clients meet it: started over stdio, listed, called; by the SDK's own MCP client."""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TextIO

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, CallToolResult, ImageContent, TextContent, Tool

from agent_gate.talk import MOST_DEEP, Picture, ToolResult, ToolSchema

CALL_S = 120.0
NO_OBJECT = f"The arguments are not a JSON object of valid Unicode, nested at most {MOST_DEEP} deep."
NO_FORM = "the server's answer is not in MCP's form."
CLOSED = "Connection closed"
"""What the SDK says of a server that is gone; its code alone is also what servers use for errors of their own."""
MOST_TOOLS = 10_000
_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class ToolsError(Exception):
    """Raised when a tool server can't be used; the message is one line for a person."""


class Tools:
    """The tools of one server. Models get names that their APIs allow."""

    def __init__(self, client: Client, listed: Sequence[Tool]) -> None:
        self._client = client
        self._names = {_NAME.sub("_", tool.name)[:64]: tool.name for tool in listed}
        self.schemas = tuple(
            ToolSchema(
                name=_NAME.sub("_", tool.name)[:64], description=tool.description or "", schema=tool.input_schema
            )
            for tool in listed
        )

    @property
    def instructions(self) -> str:
        """What the server wants a model to be told."""
        return self._client.instructions or ""

    async def call(self, call_id: str, name: str, arguments: Mapping[str, object] | None) -> ToolResult:
        """Call a tool; whatever goes wrong is a result that the model can read.

        Raises:
            ToolsError: the server is gone.
        """
        if name not in self._names:
            return ToolResult(call_id=call_id, text=f"There is no tool named {name!r}.", is_error=True)
        if arguments is None:
            return ToolResult(call_id=call_id, text=NO_OBJECT, is_error=True)
        try:
            result = await self._client.call_tool(self._names[name], dict(arguments), read_timeout_seconds=CALL_S)
        except MCPError as error:
            if (error.code, error.message) == (CONNECTION_CLOSED, CLOSED):
                raise ToolsError("the tool server ended while it was called") from error
            return ToolResult(call_id=call_id, text=f"The call failed: {error.message}", is_error=True)
        except ValueError:
            return ToolResult(call_id=call_id, text=f"The call failed: {NO_FORM}", is_error=True)
        return _read(call_id, result)


def _read(call_id: str, result: CallToolResult) -> ToolResult:
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    pictures = tuple(
        Picture(media_type=block.mime_type, base64=block.data)
        for block in result.content
        if isinstance(block, ImageContent)
    )
    if not texts and not pictures and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    return ToolResult(call_id=call_id, text="\n".join(texts), pictures=pictures, is_error=bool(result.is_error))


@asynccontextmanager
async def opened_tools(
    command: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path, seconds: float
) -> AsyncIterator[Tools]:
    """Start a server in a folder, with its standard error in `log`; it ends with the context.

    Raises:
        ToolsError: it has not told of its tools within `seconds`, or not in MCP's form, or lists them without an end.
    """
    server = StdioServerParameters(
        command=command[0],
        args=list(command[1:]),
        env=dict(environment),
        cwd=directory,
        encoding_error_handler="replace",  # a line that is no UTF-8 is no message either, and must not end the gate
    )
    async with AsyncExitStack() as stack:
        errors = stack.enter_context(log.open("a", encoding="utf-8", errors="backslashreplace"))
        stack.enter_context(_logged(errors))
        try:
            async with asyncio.timeout(seconds):
                client = await stack.enter_async_context(Client(stdio_client(server, errlog=errors), mode="auto"))
                listed = await _listed(client)
        except TimeoutError as error:
            raise ToolsError(f"the tool server did not tell of its tools within {seconds} s") from error
        except ValueError as error:
            raise ToolsError(f"the tool server did not tell of its tools: {NO_FORM}") from error
        yield Tools(client, listed)


@contextmanager
def _logged(target: TextIO) -> Iterator[None]:
    """What the SDK has to say of a server goes into the log: it quotes the server, and a terminal is ruled by that."""
    handler = logging.StreamHandler(target)
    loggers = [logging.getLogger(name) for name in ("mcp", "client")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True


async def _listed(client: Client) -> list[Tool]:
    listed: list[Tool] = []
    cursor: str | None = None
    met: set[str | None] = set()
    while cursor not in met and len(listed) <= MOST_TOOLS:
        met.add(cursor)
        page = await client.list_tools(cursor=cursor)
        listed += page.tools
        cursor = page.next_cursor
        if cursor is None:
            return listed
    raise ToolsError("the tool server lists its tools without an end")
