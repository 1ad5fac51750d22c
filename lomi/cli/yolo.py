"""`lomi yolo on|off`: the one command that adds authority, so only a person at a terminal that is none of ours may."""

import json
import os
import sys
import uuid
from pathlib import Path

import click

from lomi.cli.failing import fail

WORD = "YOLO"


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Say which it is as one JSON object.")
@click.pass_context
def yolo(context: click.Context, as_json: bool) -> None:
    """Let every client of yours pair and decide without asking (on), or stop that (off).

    Without a word it says which it is. Off by default; switching it either way ends every session.
    """
    if context.invoked_subcommand is None:
        from lomi.broker.preferences import PreferencesError, read_preferences
        from lomi.disk.home import state_home

        try:
            chosen = read_preferences(state_home(os.environ)).yolo_mode
        except PreferencesError as damage:
            fail(f"{damage}; YOLO is off", "repair the file, or move it away")
        click.echo(json.dumps({"yolo": chosen}) if as_json else "on" if chosen else "off")


@yolo.command()
def on() -> None:
    """Switch YOLO on, after a warning."""
    from lomi.broker.yolo import WARNING
    from lomi.cli.asking import forget_typed_ahead

    _require_person()
    click.echo(WARNING)
    forget_typed_ahead()
    if click.prompt(f"Type {WORD} to switch it on", default="", show_default=False) != WORD:
        fail("YOLO stays off")
    _switch(on=True)


@yolo.command()
def off() -> None:
    """Switch YOLO off."""
    _require_person()
    _switch(on=False)


def _require_person() -> None:
    from lomi.broker.ancestry import hosted_by_lomi

    if hosted_by_lomi(os.environ, Path("/proc")):
        fail("this terminal belongs to a broker; an agent may be typing here", "use a terminal of your own")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        fail("only a person at a terminal may switch YOLO", "run it by hand, without pipes")


def _switch(*, on: bool) -> None:
    from lomi.broker.owner.answers import YoloAnswer
    from lomi.cli.owner_link import explained, owner_link
    from lomi.link.errors import BrokerAbsentError

    async def ask() -> YoloAnswer | None:
        try:
            async with owner_link() as link:
                return await link.ask("owner.yolo", {"on": on}, YoloAnswer)
        except BrokerAbsentError:
            return None

    word = "on" if on else "off"
    answer = explained(ask())
    if answer is None:
        _switch_offline(on=on)
        click.echo(f"YOLO is {word} for the next broker of this home")
    elif answer.refused is not None:
        fail(f"YOLO stays {'on' if answer.on else 'off'}: {answer.refused}", "see docs/security.md")
    else:
        click.echo(f"YOLO is {word}; sessions ended: {answer.revoked}")


def _switch_offline(*, on: bool) -> None:
    """Save it under the lock of the home, so that no broker starts with the old choice meanwhile."""
    from lomi.broker.host_gate import this_host
    from lomi.broker.preferences import PreferencesError, save_yolo
    from lomi.disk.home import state_home
    from lomi.store.failure import StoreLocked, StoreRefused, StoreUnavailable
    from lomi.store.place import owned

    if on and not this_host().qualified:
        fail("this host is not one of those that Lomi is qualified for", "`lomi doctor` says why")
    home = state_home(os.environ)
    try:
        with owned(home, str(uuid.uuid4())):
            save_yolo(home, on=on)
    except StoreLocked as locked:
        fail(f"{locked}, and it does not answer", "it may be starting or stopping; try again")
    except (StoreRefused, StoreUnavailable) as refused:
        fail(f"the home can't be used: {refused}", "see docs/recovery.md")
    except PreferencesError as damage:
        fail(f"{damage}; it is kept, and nothing is saved over it", "repair the file, or move it away")
