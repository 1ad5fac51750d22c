"""What a foreground `lomi up` offers to whoever asks to pair, and what of it must be asked for by its own word."""

from dataclasses import dataclass

import msgspec

from lomi.broker.policy import ClientPolicy, is_origin
from lomi.contract.scopes import SCOPES, closure
from lomi.core.grant import EVERY, Grant

REACH: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("runs any command with your rights", ("terminal.execute",)),
    (
        "changes files of your projects",
        ("files.mutate", "files.create", "files.rename", "files.trash", "editor.write", "artifact.export"),
    ),
    ("sends to AI providers, which may cost money", ("chat.send",)),
)
"""What reaches beyond phones and pages, in words: named apart at the prompt, and given by `all` or `--scope` alone."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What `y` gives, and the scopes that `all` gives too."""

    grant: Grant
    apart: frozenset[str]


def offer_of(scopes: tuple[str, ...], *, origins: tuple[str, ...], packages: tuple[str, ...], phones: bool) -> Offer:
    """The offer of a command line; without `scopes` everything that a policy's `*` brings.

    What the named scopes stand on comes with them. One that is named exactly is meant, and comes with `y`.

    Raises:
        ValueError: a scope or an origin is none, or pages are to be offered without an origin.
    """
    entry = ClientPolicy(label="prompt", scopes=scopes or (EVERY,), origins=origins)
    for scope in scopes:
        if not msgspec.structs.replace(entry, scopes=(scope,)).expanded_scopes():
            raise ValueError(f"no scope is named {scope!r}")
    for origin in origins:
        if not is_origin(origin):
            raise ValueError(f"{origin!r} is no origin; write scheme://host[:port]")
    whole = closure({"workspace.read", *entry.expanded_scopes()})
    if not origins:
        if scopes and any(scope.startswith("browser.") for scope in scopes):
            raise ValueError("browser scopes need an --origin")
        whole = frozenset(scope for scope in whole if not scope.startswith("browser."))
    meant = closure(scope for scope in scopes if scope in SCOPES)
    apart = frozenset(scope for _, reaching in REACH for scope in reaching if scope in whole) - meant
    grant = Grant(
        scopes=whole - apart,
        workspaces=frozenset({EVERY}),
        devices=frozenset({EVERY}) if phones else frozenset(),
        packages=frozenset(packages or (EVERY,)) if phones else frozenset(),
        origins=entry.normal_origins(),
        terminal_profile="bash",
        decider="prompt",
    )
    return Offer(grant, apart)


def reach_of(scopes: frozenset[str]) -> list[str]:
    """Those of `scopes` that reach beyond phones and pages, a line for each kind."""
    return [
        f"{' '.join(s for s in reaching if s in scopes)}: {words}"
        for words, reaching in REACH
        if not scopes.isdisjoint(reaching)
    ]
