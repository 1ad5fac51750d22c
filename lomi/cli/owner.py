"""`lomi status|down|revoke|take`: look, and reduce authority. Nothing here adds any."""

import os
import select

import click
import msgspec

from lomi.cli.failing import fail

STOPPED_WITHIN_S = 30.0


def _show(value: msgspec.Struct, text: str, *, as_json: bool) -> None:
    click.echo(msgspec.json.encode(value).decode() if as_json else text)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(as_json: bool) -> None:
    """Show the broker, its sessions, its limits, and the tools without an adapter."""
    from lomi.broker.owner.answers import OwnerStatus
    from lomi.cli.owner_link import ask_broker
    from lomi.cli.shown import age, printable

    seen = ask_broker("owner.status", {}, OwnerStatus)
    lines = [f"broker {seen.instance_id}, pid {seen.pid}", f"tools with an adapter: {len(seen.tools_working)}"]
    if seen.yolo:
        lines.insert(1, "YOLO is ON: any process of this user pairs without asking (`lomi yolo off`)")
    if seen.tools_absent:
        lines.append("no adapter in this build: " + " ".join(seen.tools_absent))
    lines += [f"note: {printable(line)}" for line in seen.limitations]
    lines += [f"{name}: {used} of {limit}" for name, used, limit in seen.usage]
    for row in seen.sessions:
        lines.append(
            f"session {row.id} '{printable(row.label)}' pid {row.pid}: {row.phase} for {age(row.age_s)}, "
            f"{row.operations} operations under way"
        )
        lines += [f"  lease {held}" for held in row.leases]
    _show(seen, "\n".join(lines), as_json=as_json)


@click.command()
def down() -> None:
    """Stop the running broker, and wait until it has ended; what runs may settle for five seconds."""
    from lomi.broker.owner.answers import Done, OwnerStatus
    from lomi.cli.owner_link import ask_broker

    pid = ask_broker("owner.status", {}, OwnerStatus).pid
    try:
        process: int | None = os.pidfd_open(pid)
    except (AttributeError, OSError):
        process = None
    ask_broker("owner.down", {}, Done)
    if process is None:
        click.echo("the broker is stopping")
        return
    ended, _, _ = select.select([process], [], [], STOPPED_WITHIN_S)
    os.close(process)
    click.echo(
        "the broker has stopped" if ended else "the broker is still stopping; `lomi status` says when it is gone"
    )


@click.command()
@click.argument("session", required=False)
@click.option("--all", "everyone", is_flag=True, help="Revoke every session.")
def revoke(session: str | None, everyone: bool) -> None:
    """End the authority of SESSION (see `lomi ps`), or of everyone."""
    from lomi.broker.owner.answers import Done
    from lomi.cli.owner_link import ask_broker

    if everyone == (session is not None):
        raise click.UsageError("give a session id, or --all")
    if everyone:
        done = ask_broker("owner.revoke_all", {}, Done)
    else:
        done = ask_broker("owner.revoke", {"name": session}, Done)
        if not done.count:
            fail(f"no session {session!r}", "`lomi ps` lists them")
    click.echo(f"revoked {done.count}")


@click.command()
@click.argument("panel")
@click.option("--give-back", is_flag=True, help="Return control: leases may be claimed again.")
def take(panel: str, give_back: bool) -> None:
    """Take PANEL (or a phone by its name) over: its lease ends at once; none is given until you give it back."""
    from lomi.broker.owner.answers import Done
    from lomi.cli.owner_link import ask_broker

    done = ask_broker("owner.give_back" if give_back else "owner.take", {"name": panel}, Done)
    if done.refused is not None:
        fail(f"not given back: {done.refused}", "use a terminal of your own")
    if not done.count:
        fail(f"no panel {panel!r} with something to control", "`lomi ps` lists them")
    click.echo("given back" if give_back else "taken")
