"""Which tools a client sees: a named profile, tools and families by name, or all."""

from typing import Protocol, TypeVar

import msgspec

from lomi.contract.listing import catalogue
from lomi.contract.model import Input

QA_PROFILE = "qa"
_QA = """
lomi_status lomi_connect lomi_workspace_list lomi_panel_control lomi_operation_get lomi_artifact_import
lomi_android_list lomi_android_open lomi_android_start lomi_android_stop lomi_android_input lomi_android_snapshot
lomi_android_screenshot lomi_android_install_apk lomi_android_launch lomi_android_logcat
lomi_browser_open lomi_browser_navigate lomi_browser_snapshot lomi_browser_click lomi_browser_fill lomi_browser_key
lomi_browser_scroll lomi_browser_wait lomi_browser_screenshot
"""
QA = frozenset(_QA.split())
"""What an agent needs that tests an app on a phone and in a page."""
PROFILES = {QA_PROFILE: QA}

I = TypeVar("I", bound=Input)  # noqa: E741  one input model per tool


class UnknownSelectionError(ValueError):
    """Raised when a profile, family or tool is named that does not exist; the message names what does."""


class Named(Protocol):
    """Anything that names a tool."""

    @property
    def name(self) -> str:
        """The tool's name."""
        ...


class ToolSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The tools that one client sees, and the form of snapshots that it gets unless it asks for another."""

    names: frozenset[str]
    outline: bool = False

    def admits(self, tool: Named) -> bool:
        """Whether the tool is in the selection."""
        return tool.name in self.names

    def defaulted(self, given: I) -> I:
        """The arguments with `form` filled in where the client left it open."""
        if getattr(given, "form", "") is not None:
            return given
        return msgspec.structs.replace(given, form="outline" if self.outline else "elements")


def _named(word: str) -> frozenset[str]:
    tools = catalogue().tools
    found = frozenset(tool.name for tool in tools if word in (tool.name, tool.family))
    if not found:
        families = ", ".join(dict.fromkeys(tool.family for tool in tools))
        raise UnknownSelectionError(f"no tool or family is named {word!r}; families are {families}")
    return found


def select(*, profile: str | None = None, tools: str | None = None) -> ToolSelection:
    """The selection of `--profile` and `--tools` (family and tool names with commas between).

    Both together: the profile's tools and the named ones. Neither: all.

    Raises:
        UnknownSelectionError: no such profile, family or tool.
    """
    if profile is not None and profile not in PROFILES:
        raise UnknownSelectionError(f"no profile is named {profile!r}; profiles are {', '.join(PROFILES)}")
    words = [word.strip() for word in (tools or "").split(",") if word.strip()]
    if profile is None and not words:
        return ToolSelection(names=frozenset(tool.name for tool in catalogue().tools))
    chosen = PROFILES[profile] if profile is not None else frozenset[str]()
    return ToolSelection(names=chosen.union(*(_named(word) for word in words)), outline=profile == QA_PROFILE)
