"""`lomi ps`: who holds what since when."""

import asyncio
from contextlib import suppress

import click

from lomi.broker.owner.answers import Holdings, ResourceRow, SessionRow
from lomi.cli.shown import age, printable, short, table

_HEADS = {"android": "DEVICE", "browser": "PAGE", "terminal": "TERMINAL"}


@click.command()
@click.option("--watch", is_flag=True, help="Show it again and again until Ctrl-C.")
@click.option(
    "--every", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, metavar="SECONDS", help="How often."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (with --watch one a line).")
def ps(watch: bool, every: float, as_json: bool) -> None:
    """Show sessions, grants, leases, devices, pages, terminals and operations: who holds what since when."""
    import msgspec

    from lomi.cli.owner_link import explained, owner_link

    def show(seen: Holdings) -> None:
        if as_json:
            click.echo(msgspec.json.encode(seen).decode())
        else:
            if watch:
                click.clear()
            click.echo("\n".join(lines_of(seen)))

    async def ask() -> None:
        async with owner_link() as link:
            show(await link.ask("owner.ps", {}, Holdings))
            while watch:
                await asyncio.sleep(every)
                show(await link.ask("owner.ps", {}, Holdings))

    # Ctrl-C is how watching ends.
    with suppress(KeyboardInterrupt):
        explained(ask())


def lines_of(seen: Holdings) -> list[str]:
    """The holdings for a person; every text of a stranger stays on its line."""
    blocks = [_sessions(seen.sessions), _leases(seen)]
    blocks += [_resources(seen.resources, kind, head) for kind, head in _HEADS.items()]
    blocks.append(_operations(seen))
    shown = [block for block in blocks if block]
    lines = ["YOLO is ON: any process of this user pairs without asking", ""] if seen.yolo else []
    for block in shown or [["nobody is connected and nothing runs"]]:
        lines += [*block, ""]
    return lines[:-1]


def _sessions(rows: tuple[SessionRow, ...]) -> list[str]:
    return table(
        ("SESSION", "CLIENT", "PID", "SINCE", "STATE", "GRANT"),
        [(row.id, short(row.label), str(row.pid), age(row.age_s), row.phase, _grant(row)) for row in rows],
    )


def _grant(row: SessionRow) -> str:
    """A grant in one line: who gave it, and how far it reaches."""
    if not row.granted_by:
        return "none"
    reach = [f"{len(row.scopes)} scopes"]
    for name, values in (
        ("workspaces", row.workspaces),
        ("devices", row.devices),
        ("packages", row.packages),
        ("origins", row.origins),
    ):
        if values:
            reach.append(f"{name} {'all' if '*' in values else len(values)}")
    return f"by {row.granted_by}: " + ", ".join(reach)


def _leases(seen: Holdings) -> list[str]:
    heads = ("LEASE", "GENERATION", "SESSION", "CLIENT", "SINCE", "IDLE")
    rows = [
        (row.id, row.generation, row.session, short(row.label), age(row.age_s), age(row.idle_s)) for row in seen.leases
    ]
    return table(heads, rows)


def _resources(rows: tuple[ResourceRow, ...], kind: str, head: str) -> list[str]:
    return table(
        (head, "PANELS", "GENERATION", "STATE", "HELD BY"),
        [
            (
                short(row.title or row.name),
                " ".join(row.panels) or "-",
                row.generation or "-",
                row.state,
                "a person" if row.taken else row.holder or "-",
            )
            for row in rows
            if row.kind == kind
        ],
    )


def _operations(seen: Holdings) -> list[str]:
    rows = [
        (row.id[:12], row.tool, row.target or "-", row.session, printable(row.state.value), age(row.age_s))
        for row in seen.operations
    ]
    return table(("OPERATION", "TOOL", "TARGET", "SESSION", "STATE", "SINCE"), rows)
