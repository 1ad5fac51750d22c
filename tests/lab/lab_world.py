"""A broker with paper phones and a local page, and what its phones and that page wrote down themselves."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from harness import ALL_SCOPES, ClientEntry, World, opened_world, policy_text
from harness.process import processes_that_name
from harness.site import Site

from lomi.client.find import Found

FORM = "lomi.paper.form"


@contextmanager
def lab_world(site: Site, phones: Sequence[str] = ("paper-36-1",), **entry: Any) -> Iterator[World]:
    """A broker whose one client `qa` may do everything on these phones and on the site."""
    client = ClientEntry(
        label="qa",
        scopes=(*ALL_SCOPES, "android.manage"),
        devices=("*",),
        origins=(site.origin,),
        **{"decide": (), **entry},
    )
    with opened_world(policy_text(client, phones=phones)) as made:
        yield made


def found(world: World) -> Found:
    """How a client of this world finds its broker."""
    return Found(world.live.discovery_file, world.live.discovery_key)


def journal(world: World, name: str = "paper-36-1") -> list[dict[str, Any]]:
    """What a phone itself recorded."""
    path = world.home / "devices" / "avd" / f"{name}.avd" / "paper-journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def phone_pids(world: World) -> dict[int, str]:
    """Processes of simulated phones and their command lines."""
    return {pid: command for pid, command in processes_that_name(world.root) if "emulator_images.paper" in command}
