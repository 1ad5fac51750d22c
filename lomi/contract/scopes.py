"""The 54 scopes of a grant and the dependencies between them (contract section 6)."""

from collections.abc import Iterable

_NAMES = """
    workspace.read workspace.write workspace.close project.open project.close
    panel.create panel.focus panel.move panel.close
    terminal.execute terminal.read
    browser.navigate browser.read browser.interact browser.capture_composite browser.download browser.upload
    files.read files.mutate files.create files.rename files.trash
    editor.read editor.write
    git.read git.write git.execute git.network git.push git.pull git.discard
    artifact.import artifact.import_file artifact.export
    android.read android.control android.interact android.observe android.capture android.launch android.logs
    android.install android.setup android.manage
    chat.read chat.open chat.create chat.draft chat.send chat.stop chat.export
    settings.open settings.read settings.write
"""
SCOPES: tuple[str, ...] = tuple(_NAMES.split())

NEVER_BY_WILDCARD = frozenset({"android.setup", "android.manage", "settings.write"}) | frozenset(
    scope for scope in SCOPES if scope.startswith("git.")
)
"""A wildcard in a policy file never expands to these: the owner must write each one out."""

DEPENDENCIES: dict[str, tuple[str, ...]] = {
    "files.mutate": ("files.read",),
    "files.create": ("files.mutate",),
    "files.rename": ("files.mutate",),
    "files.trash": ("files.mutate",),
    "editor.read": ("files.read",),
    "editor.write": ("editor.read",),
    "artifact.import": ("files.read",),
    "artifact.import_file": ("files.read",),
    "artifact.export": ("files.read", "files.create", "files.mutate"),
    "git.read": ("files.read",),
    **{f"git.{verb}": ("git.read", "git.write", "git.execute") for verb in ("write", "execute", "network", "discard")},
    "git.push": ("git.read", "git.write", "git.execute", "git.network"),
    "git.pull": ("git.read", "git.write", "git.execute", "git.network"),
    "android.control": ("android.read",),
    **{f"android.{verb}": ("android.control",) for verb in ("launch", "logs", "interact", "observe", "capture")},
    "android.install": ("android.control", "files.read"),
    "android.setup": ("android.read",),
    "android.manage": ("android.read",),
    "browser.download": ("browser.read",),
    "browser.upload": ("browser.read", "browser.interact"),
    "panel.move": ("workspace.write",),
    "workspace.close": ("workspace.write", "panel.close"),
    "project.close": ("workspace.close",),
    "project.open": ("workspace.write", "panel.create"),
    "settings.write": ("settings.read",),
    "chat.open": ("chat.read", "panel.create", "panel.focus"),
    "chat.create": ("chat.open",),
    **{f"chat.{verb}": ("chat.read",) for verb in ("draft", "send", "stop", "export")},
}


def closure(scopes: Iterable[str]) -> frozenset[str]:
    """All scopes that `scopes` stand on, themselves included."""
    found: set[str] = set()
    waiting = list(scopes)
    while waiting:
        scope = waiting.pop()
        if scope not in found:
            found.add(scope)
            waiting.extend(DEPENDENCIES.get(scope, ()))
    return frozenset(found)


def missing_dependencies(scopes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each scope whose closure is not in `scopes`: the scopes that are missing, in catalogue order."""
    have = frozenset(scopes)
    lacking = {scope: closure((scope,)) - have for scope in SCOPES if scope in have}
    return {scope: tuple(s for s in SCOPES if s in gone) for scope, gone in lacking.items() if gone}
