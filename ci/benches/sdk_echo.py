"""The yardstick of a call: the SDK's low-level server over its own stdio transport, with one echo tool."""

import asyncio

import mcp_types as types
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server


async def list_tools(
    _context: ServerRequestContext[object], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    """One tool."""
    return types.ListToolsResult(tools=[types.Tool(name="echo", input_schema={"type": "object"})])


async def call_tool(
    _context: ServerRequestContext[object], params: types.CallToolRequestParams
) -> types.CallToolResult:
    """An answer of the same shape as ours."""
    said = {"controlApiVersion": "1.0", "status": "ok", "data": {"tool": params.name, "arguments": "{}"}}
    return types.CallToolResult(content=[types.TextContent(type="text", text="echo")], structured_content=said)


async def main() -> None:
    """Serve until stdin ends."""
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


asyncio.run(main())
