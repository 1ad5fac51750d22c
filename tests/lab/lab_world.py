"""A broker with paper phones and a local page, and what its phones and that page wrote down themselves."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Any

from harness import ALL_SCOPES, ClientEntry, World, opened_world, policy_text
from harness.journal import written_lines
from harness.process import processes_that_name
from harness.site import Site

import lomi
from lomi.client.aio import Lab as AsyncLab
from lomi.client.find import Found
from lomi.client.lab import Lab

FORM = "lomi.paper.form"
LABEL = "qa"
TOKEN = "token of the tests"
DECIDED = ("lomi_android_install_apk", "lomi_android_device_manage")


@contextmanager
def lab_world(
    site: Site,
    phones: Sequence[str] = ("paper-36-1",),
    decide: Sequence[str] = DECIDED,
    always: Mapping[str, str] | None = None,
) -> Iterator[World]:
    """A broker whose one client `qa` may do everything on these phones and on the site; `always` is its environment."""
    client = ClientEntry(
        label=LABEL,
        token_sha256=hashlib.sha256(TOKEN.encode()).hexdigest(),
        scopes=(*ALL_SCOPES, "android.manage"),
        devices=("*",),
        origins=(site.origin,),
        decide=decide,
    )
    with opened_world(policy_text(client, phones=phones), always=always) as made:
        yield made


def connected(world: World) -> AbstractContextManager[Lab]:
    """A blocking client of this world."""
    return lomi.connect(discovery=found(world), label=LABEL, token=TOKEN)


def connected_async(world: World) -> AbstractAsyncContextManager[AsyncLab]:
    """The same for a test with an event loop."""
    return lomi.connect_async(discovery=found(world), label=LABEL, token=TOKEN)


def found(world: World) -> Found:
    """How a client of this world finds its broker."""
    return Found(world.live.discovery_file, world.live.discovery_key)


def journal(world: World, name: str = "paper-36-1") -> list[dict[str, Any]]:
    """What a phone itself recorded."""
    path = world.home / "devices" / "avd" / f"{name}.avd" / "paper-journal.jsonl"
    return written_lines(path)


def phone_pids(world: World) -> dict[int, str]:
    """Processes of simulated phones and their command lines."""
    return {pid: command for pid, command in processes_that_name(world.root) if "emulator_images.paper" in command}
