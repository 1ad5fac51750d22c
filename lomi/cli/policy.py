"""`lomi policy check|token`."""

import hashlib
import json
import secrets
from pathlib import Path

import click

from lomi.cli.failing import fail
from lomi.cli.shown import printable

HINT = "docs/ci.md explains a policy, field by field"


@click.group()
def policy() -> None:
    """Check a policy file, or make a client token."""


@policy.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(file: Path, as_json: bool) -> None:
    """Explain FILE in words, or say everything that is wrong with it."""
    from lomi.broker.policy import PolicyError, explain, read_policy
    from lomi.cli.images import images_unknown

    lines: list[str] = []
    try:
        checked = read_policy(file.absolute())
        faults = [f"{file.absolute()}: {fault}" for fault in images_unknown(device.image for device in checked.device)]
        lines = explain(checked)
    except PolicyError as error:
        faults = str(error).splitlines()
    if not faults:
        click.echo(
            json.dumps({"ok": True, "explanation": lines}) if as_json else "\n".join(printable(line) for line in lines)
        )
        return
    if as_json:
        click.echo(json.dumps({"ok": False, "faults": faults}))
        raise SystemExit(1)
    fail("\n".join(printable(fault) for fault in faults), HINT)


@policy.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def token(as_json: bool) -> None:
    """Make a client token: the client gets it as LOMI_CLIENT_TOKEN, the policy file its hash as token_sha256."""
    made = secrets.token_urlsafe(32)
    digest = hashlib.sha256(made.encode()).hexdigest()
    if as_json:
        click.echo(json.dumps({"LOMI_CLIENT_TOKEN": made, "token_sha256": digest}))
    else:
        click.echo(f'LOMI_CLIENT_TOKEN={made}\ntoken_sha256 = "{digest}"')
