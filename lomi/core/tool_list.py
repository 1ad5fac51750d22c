"""The catalogue as clients list it, for one selection of tools."""

import hashlib
from functools import lru_cache

import msgspec

from lomi.contract.listing import Entry, catalogue
from lomi.contract.profiles import ToolSelection
from lomi.core.backend import ListedTool, ToolList


def tool_list(selection: ToolSelection) -> ToolList:
    """The tools of a selection, in the order of the contract."""
    return _listed(selection.names)


@lru_cache(maxsize=16)
def _listed(names: frozenset[str]) -> ToolList:
    tools = tuple(_tool(entry) for entry in catalogue().tools if entry.name in names)
    return ToolList(tools=tools, digest=hashlib.sha256(msgspec.json.encode(tools)).hexdigest())


def _tool(entry: Entry) -> ListedTool:
    return ListedTool(
        name=entry.name,
        description=entry.purpose,
        input_schema=bytes(entry.input_schema),
        output_schema=bytes(entry.output_schema),
        read_only=entry.annotations.read_only_hint,
        destructive=entry.annotations.destructive_hint,
        open_world=entry.annotations.open_world_hint,
        idempotent=entry.annotations.idempotent_hint,
    )
