"""All tools and all reasons, as one closed list each."""

from collections.abc import Iterable
from types import MappingProxyType

from lomi.contract import (
    android,
    artifact,
    browser,
    browser_files,
    chat,
    editor,
    files,
    git,
    operation,
    panel,
    reasons,
    session,
    settings,
    terminal,
    workspace,
)
from lomi.contract.codes import Reason
from lomi.contract.definition import by_name
from lomi.contract.model import Result

ALL = (
    *session.TOOLS,
    *workspace.TOOLS,
    *panel.TOOLS,
    *operation.TOOLS,
    *terminal.TOOLS,
    *browser.TOOLS,
    *browser_files.TOOLS,
    *files.TOOLS,
    *editor.TOOLS,
    *git.TOOLS,
    *artifact.TOOLS,
    *android.TOOLS,
    *chat.TOOLS,
    *settings.TOOLS,
)
"""The 74 definitions, in the order of the contract."""

BY_NAME = MappingProxyType(by_name(ALL))

EVERY_RESULT: tuple[type[Result], ...] = tuple(
    dict.fromkeys(kind for tool in ALL for kind in tool.results if issubclass(kind, Result))
)
"""The result kinds of all operations; `Failure` is implied."""


FAMILY_REASONS = MappingProxyType(
    {
        "common": reasons.COMMON_REASONS,
        "session": session.REASONS,
        "workspace": workspace.REASONS,
        "panel": panel.REASONS,
        "operation": operation.REASONS,
        "terminal": terminal.REASONS,
        "browser": browser.REASONS,
        "files": files.REASONS,
        "editor": editor.REASONS,
        "git": git.REASONS,
        "artifact": artifact.REASONS,
        "android": android.REASONS,
        "chat": chat.REASONS,
        "settings": settings.REASONS,
    }
)
"""The table of each family; `common` for those of no single one."""


def _unique(tables: Iterable[tuple[Reason, ...]]) -> dict[str, Reason]:
    found: dict[str, Reason] = {}
    for table in tables:
        for reason in table:
            if reason.name in found:
                raise ValueError(f"two reasons named {reason.name}")
            found[reason.name] = reason
    return found


REASONS = MappingProxyType(_unique(FAMILY_REASONS.values()))
"""The closed list of reasons, by name."""
