"""`lomi up`: the broker in the foreground with its prompt, or headless with a policy."""

import asyncio
import json
import os
import shlex
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lomi.cli.failing import fail

if TYPE_CHECKING:
    from lomi.broker.policy import Policy
    from lomi.cli.offer import Offer
    from lomi.host import HostSetting

_UNASKED = (
    "hint: `lomi up --headless --policy FILE` asks nobody; else run `lomi up` in front, in a terminal of your own"
)


@click.command()
@click.argument("directory", required=False, type=click.Path(path_type=Path))
@click.option("--headless", is_flag=True, help="No prompt: every decision comes from --policy.")
@click.option(
    "--policy", "policy_file", type=click.Path(path_type=Path), help="The policy file (needed with --headless)."
)
@click.option("--project", type=click.Path(path_type=Path), help="The folder to open; the same as DIRECTORY.")
@click.option("--phone", "phones", multiple=True, metavar="IMAGE", help="Have a phone of this image, such as paper-36.")
@click.option(
    "--origin", "origins", multiple=True, metavar="URL", help="Offer this web origin to clients that pair here."
)
@click.option(
    "--package", "packages", multiple=True, metavar="NAME", help="Offer this Android app to clients that pair here."
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="Offer only these scopes, such as android.* or terminal.execute.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when ready.")
def up(
    directory: Path | None,
    headless: bool,
    policy_file: Path | None,
    project: Path | None,
    phones: tuple[str, ...],
    origins: tuple[str, ...],
    packages: tuple[str, ...],
    scopes: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start the broker and open DIRECTORY (default: here)."""
    from lomi.broker.policy import PolicyError, read_policy
    from lomi.cli.engine import chosen_browser

    if directory is not None and project is not None:
        raise click.UsageError("give DIRECTORY or --project, not both")
    if headless and policy_file is None:
        raise click.UsageError("--headless needs --policy FILE; `lomi policy check FILE` explains one")
    if not headless and policy_file is not None:
        raise click.UsageError("--policy goes with --headless; in the foreground you decide yourself")
    if headless and (scopes or origins or packages):
        raise click.UsageError("--scope, --origin and --package are for the prompt; a policy names its own")
    folder = (project or directory or Path()).absolute()
    if not folder.is_dir():
        fail(f"{folder} is not a folder", "give the folder of your project")
    policy = None
    if policy_file is not None:
        try:
            policy = read_policy(policy_file.absolute())
        except PolicyError as error:
            fail(f"the policy can't be used:\n{error}", "`lomi policy check` lists every fault")
        for client in policy.client:
            if client.any_same_user:
                click.echo(f"any process of this user may pair as {client.label!r}, without a secret", err=True)
    _refuse_inside(policy)
    offer = None if headless else _offer(scopes, origins, packages, phones)
    _check_phones(policy, phones)
    _check_home()
    chosen_browser()
    asked = _Asked(folder=folder, policy=policy, policy_file=policy_file, phones=phones, offer=offer)
    sys.exit(asyncio.run(_serve(asked, as_json=as_json)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the command line asked for."""

    folder: Path
    policy: "Policy | None"
    policy_file: Path | None
    phones: tuple[str, ...]
    offer: "Offer | None"


def _offer(
    scopes: tuple[str, ...], origins: tuple[str, ...], packages: tuple[str, ...], phones: tuple[str, ...]
) -> "Offer":
    from lomi.cli.offer import offer_of

    try:
        return offer_of(scopes, origins=origins, packages=packages, phones=bool(phones))
    except ValueError as error:
        fail(str(error), "docs/ci.md explains scopes and origins, docs/tools.md names the scopes of each tool")


def _refuse_inside(policy: "Policy | None") -> None:
    """End the command where an agent could answer its own prompt: in a terminal of a broker."""
    from lomi.broker.ancestry import hosted_by_lomi

    if policy is None and hosted_by_lomi(os.environ, Path("/proc")):
        fail(
            "this terminal belongs to a broker; an agent may be typing here", "run `lomi up` in a terminal of your own"
        )


def _check_phones(policy: "Policy | None", phones: tuple[str, ...]) -> None:
    """End the command when a phone is to run an image that there is not, or when there are too many phones."""
    from lomi.cli.images import images_unknown
    from lomi.contract.limits import DESKTOP

    named = tuple(device.image for device in policy.device) if policy is not None else ()
    if unknown := images_unknown((*named, *phones)):
        fail("\n".join(unknown), "`lomi images list` says what each one is")
    most = (policy.limits if policy is not None else DESKTOP).devices
    if len(named) + len(phones) > most:
        fail(f"{len(named) + len(phones)} phones are more than limits.devices, {most}", "start fewer")


def _check_home() -> None:
    """End the command when the home can't be a folder of this user alone."""
    from lomi.disk.home import state_home

    home = state_home(os.environ)
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = home.stat()
    except OSError as error:
        fail(f"the home {home} can't be made: {error.strerror}", "choose another with LOMI_HOME")
    if found.st_uid != os.getuid():
        fail(f"the home {home} belongs to another user", "choose another with LOMI_HOME")
    if found.st_mode & 0o077:
        fail(f"others may enter the home {home}", f"run: chmod 700 {shlex.quote(str(home))}")


def _setting(asked: _Asked, loop: asyncio.AbstractEventLoop) -> "HostSetting":
    from lomi.broker.deciders import PolicyDecider
    from lomi.broker.policy import DevicePolicy
    from lomi.cli.prompt import PromptDecider, StandardTerminal
    from lomi.contract.limits import DESKTOP
    from lomi.disk.home import state_home
    from lomi.host import HostSetting

    home, policy = state_home(os.environ), asked.policy
    devices = tuple(DevicePolicy(name=f"phone-{number}", image=image) for number, image in enumerate(asked.phones, 1))
    if policy is not None:
        return HostSetting(
            home=home,
            project=asked.folder,
            policy_file=asked.policy_file,
            limits=policy.limits,
            policy=policy,
            decider=PolicyDecider(),
            asker=None,
            devices=policy.device + devices,
            environment=os.environ,
        )
    offer = asked.offer
    assert offer is not None, "the foreground offers something"
    prompt = PromptDecider(
        StandardTerminal(loop), lambda: offer.grant, apart=offer.apart, pairing_s=float(DESKTOP.pairing_s)
    )
    return HostSetting(
        home=home,
        project=asked.folder,
        policy_file=None,
        limits=DESKTOP,
        policy=None,
        decider=prompt,
        asker=prompt,
        devices=devices,
        environment=os.environ,
    )


async def _serve(asked: _Asked, *, as_json: bool) -> int:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    # Before anything else, since what is read next takes a while. Started with nohup, it outlives its terminal.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    from lomi.broker.yolo import WARNING
    from lomi.cli.prompt import StandardTerminal
    from lomi.disk.refusal import DiskRefusedError
    from lomi.host import open_host
    from lomi.link.errors import LinkError
    from lomi.store.failure import StoreLocked, StoreRefused, StoreUnavailable

    setting = _setting(asked, loop)
    try:
        async with open_host(setting, stop) as ready:
            line = {
                "event": "ready",
                "instanceId": ready.instance_id,
                "discoveryFile": str(ready.discovery_file),
                "discoveryKey": ready.discovery_key,
            }
            if ready.damage:
                click.echo(ready.damage, err=True)
            if as_json:
                if ready.yolo:
                    click.echo("YOLO is on; `lomi yolo off` at a terminal ends it", err=True)
                # After the warning: whoever has read this line may look for it at once.
                click.echo(json.dumps(line))
            else:
                if ready.yolo:
                    click.echo(f"{WARNING}\nYOLO is ON; `lomi yolo off` ends it.", err=True)
                click.echo(f"Lomi is up for {asked.folder} (workspace {ready.workspace_id}). Ctrl-C stops it.")
            if setting.policy is None and (absent := StandardTerminal(loop).absent()) is not None:
                click.echo(f"nobody can be asked, {absent}: every pairing is declined\n{_UNASKED}", err=True)
            await stop.wait()
    except (StoreLocked, StoreRefused, StoreUnavailable, DiskRefusedError, LinkError, ExceptionGroup) as error:
        _explain(_only(error), setting.home)
        raise
    return 0


def _only(error: Exception) -> Exception:
    """What a group of one holds: what fails beside running adapters comes out of their task groups."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _explain(error: Exception, home: Path) -> None:
    """End the command with one line and a hint, if the error is one that the owner can do something about."""
    from devices.faults import DeviceFault
    from lomi.disk.refusal import DiskRefusedError
    from lomi.link.errors import LinkError
    from lomi.store.failure import StoreLocked, StoreRefused, StoreUnavailable

    match error:
        case StoreLocked():
            fail(str(error), "stop it with `lomi down`, or use another LOMI_HOME")
        case StoreRefused():
            fail(str(error), "nothing was changed; see docs/recovery.md")
        case StoreUnavailable():
            fail(f"the home {home} can't be written: {error}", "free disk space on its volume; nothing was lost")
        case DiskRefusedError() | LinkError():
            fail(f"the home {home} can't be used: {error}", "choose another with LOMI_HOME")
        case DeviceFault(reason="socket_path_too_long"):
            fail(f"the home {home} has too long a path for adb's socket", "choose a shorter one with LOMI_HOME")
        case _:
            return
