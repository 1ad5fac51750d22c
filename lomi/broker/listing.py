"""What each client sees in tools/list: rendered once per selection from the definitions."""

import hashlib
from collections.abc import Mapping

from lomi.contract.profiles import ToolSelection, select
from lomi.contract.schema import input_schema, output_schema
from lomi.contract.tools import ALL
from lomi.core.backend import ListedTool, ToolList


class Listings:
    """The lists that were asked for so far."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, ...], ToolList] = {}

    def select(self, options: Mapping[str, str]) -> ToolSelection:
        """The selection that a client's hello asks for.

        Raises:
            UnknownSelectionError: an unknown profile, family or tool.
        """
        return select(profile=options.get("profile"), tools=options.get("tools"))

    def of(self, selection: ToolSelection) -> ToolList:
        """The list of a selection; the same value for the same tools."""
        chosen = tuple(definition for definition in ALL if selection.admits(definition))
        names = tuple(definition.name for definition in chosen)
        if names not in self._made:
            tools = tuple(
                ListedTool(
                    name=definition.name,
                    description=definition.purpose,
                    input_schema=input_schema(definition),
                    output_schema=output_schema(definition),
                    read_only=not definition.mutation,
                    destructive=definition.destructive,
                    open_world=definition.open_world,
                )
                for definition in chosen
            )
            digest = hashlib.sha256(b"\0".join(t.name.encode() + t.input_schema + t.output_schema for t in tools))
            self._made[names] = ToolList(tools=tools, digest=digest.hexdigest())
        return self._made[names]
