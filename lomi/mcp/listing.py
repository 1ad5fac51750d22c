"""The catalogue as MCP lists it, for one selection of tools."""

import hashlib
from collections.abc import Mapping

import msgspec

from lomi.contract.definition import Definition
from lomi.contract.session import TOOLS
from lomi.core.backend import ListedTool, ToolList


def tool_list(selection: Mapping[str, str]) -> ToolList:
    """The tools of a selection (`profile`, `tools`: names and families with commas between), all without one."""
    wanted = {name.strip() for name in selection.get("tools", "").split(",") if name.strip()}
    tools = tuple(_listed(tool) for tool in TOOLS if not wanted or wanted & {tool.name, tool.family})
    return ToolList(tools=tools, digest=hashlib.sha256(msgspec.json.encode(tools)).hexdigest())


def _listed(tool: Definition) -> ListedTool:
    return ListedTool(
        name=tool.name,
        description=tool.purpose,
        input_schema=b'{"type":"object"}',
        output_schema=b'{"type":"object"}',
        read_only=not tool.mutation,
        destructive=tool.destructive,
        open_world=tool.open_world,
    )
