"""`lomi lab scheduler`, `token` and `host`: many hosts as one lab."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from lomi.cli.failing import fail, installing

if TYPE_CHECKING:
    from lomi.broker.policy import Policy
    from lomi.lab.host_place import ClusterPlace
    from lomi.lab.host_policy import Access

T = TypeVar("T")
_NEEDED = f"many hosts need Dask and pytest; {installing('distributed>=2026.7', 'pytest>=9')}"
_JOINING = {
    "token_malformed": "that is no token; copy the whole line that `lomi lab token` printed",
    "token_unknown": "the scheduler knows no such token; get one with `lomi lab token` on its host",
    "token_used": "a token admits one host; get another with `lomi lab token` on the scheduler's host",
    "token_expired": "a token lasts ten minutes; get another with `lomi lab token` on the scheduler's host",
    "fingerprint_mismatch": "who answered is not who made the token: a wrong machine, or a new scheduler",
    "scheduler_unreachable": "nobody answered there; is the port open between the two machines?",
    "name_taken": "a member of the cluster is called so; choose another name with --name",
    "name_invalid": "choose a name with --name: lower-case letters, digits, dots and dashes, at most 63",
}


def _place() -> "ClusterPlace":
    from lomi.disk.home import state_home
    from lomi.lab.host_place import ClusterPlace

    return ClusterPlace(state_home(os.environ))


def _until_signalled(work: Callable[[asyncio.Event], Coroutine[object, object, T]]) -> T:
    async def run() -> T:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        return await work(stop)

    return asyncio.run(run())


@click.command()
@click.option(
    "--listen", default="127.0.0.1:8786", show_default=True, metavar="HOST:PORT", help="Reached by all hosts."
)
@click.option("--join-port", default=0, help="The port at which hosts join; default any free one.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line when ready.")
def lab_scheduler(listen: str, join_port: int, as_json: bool) -> None:
    """Give shards of runs to hosts; prints where to run, and a token for the first host."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise click.UsageError("--listen is HOST:PORT")
    try:
        from lomi.lab.host_scheduler import SchedulerOrder, serve_scheduler
    except ImportError:
        fail("the scheduler can't be started here", _NEEDED)
    from lomi.disk.refusal import DiskRefusedError
    from lomi.lab.host_authority import AuthorityDamagedError

    def ready(engine: str, token: str) -> None:
        if as_json:
            click.echo(json.dumps({"event": "ready", "engine": engine, "token": token}))
        else:
            click.echo(f"run with   --engine {engine}\njoin with  lomi lab host --join {token}")
            click.echo("A token admits one host within ten minutes; `lomi lab token` prints another.")

    order = SchedulerOrder(place=_place(), host=host, port=int(port), join_port=join_port, ready=ready)
    try:
        _until_signalled(lambda stop: serve_scheduler(order, stop))
    except OSError as error:
        fail(f"{listen} can't be listened on: {error}", "--listen names an address of this machine and a free port")
    except (DiskRefusedError, AuthorityDamagedError) as error:
        fail(f"the home can't be used: {error}", "choose another with LOMI_HOME")


@click.command()
def lab_token() -> None:
    """Print a token with which one more host may join, within ten minutes."""
    from lomi.disk.refusal import DiskRefusedError

    try:
        from lomi.lab.host_scheduler import NoSchedulerError, new_token
    except ImportError:
        fail("no token can be made here", _NEEDED)
    try:
        click.echo(new_token(_place()).text())
    except NoSchedulerError as error:
        fail("no scheduler runs on this home", str(error).partition("; ")[2])
    except DiskRefusedError as error:
        fail(f"the home can't be used: {error}", "choose another with LOMI_HOME")


@click.command()
@click.option("--join", "token", metavar="TOKEN", help="Become a member first; once for each host.")
@click.option("--name", help="What this host is called; default its host name.")
@click.option("--phones", default=1, show_default=True, help="Phones in the policy, where this host has none yet.")
@click.option("--image", default="paper-36", show_default=True, help="Their image.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="A policy of your own instead.")
@click.option("--slots", default=0, help="Shards without phones at once; default one a processor.")
@click.option("--listen", metavar="ADDRESS", help="The address other hosts reach this one at.")
@click.option("--only-join", is_flag=True, help="Become a member that can start runs, and serve nothing.")
def lab_host(
    token: str | None,
    name: str | None,
    phones: int,
    image: str,
    policy_file: Path | None,
    slots: int,
    listen: str | None,
    only_join: bool,
) -> None:
    """Be a host of a lab: its own broker, its own phones, its own policy. Serves until SIGTERM or Ctrl-C."""
    place = _place()
    member = _joined(place, token, name or socket.gethostname().partition(".")[0].lower())
    if only_join:
        click.echo(f"{member} is a member; run with --engine {place.read().scheduler.replace('tls://', 'dask://')}")
        return
    try:
        from lomi.lab.host_serving import HostEndedError, HostOrder, serve_host
    except ImportError:
        fail("this can't be a host", _NEEDED)
    from importlib.metadata import version

    from lomi.demo.record import DemoFailedError
    from lomi.lab.host_orders import HostFacts

    access = _access(place, policy_file, image, phones)
    policy = _read_policy(access.policy)
    facts = HostFacts(
        name=member,
        phones=_phones(policy),
        slots=slots or os.cpu_count() or 1,
        browsers=policy.limits.browsers,
        version=version("lomi-lab"),
    )
    order = HostOrder(
        place=place,
        access=access,
        facts=facts,
        environment=os.environ,
        listen=listen,
        told=lambda line: click.echo(line, err=True),
    )
    try:
        _until_signalled(lambda stop: serve_host(order, stop))
    except (HostEndedError, DemoFailedError) as error:
        fail(str(error), f"the broker's words are in {place.folder / 'logs' / 'broker.log'}")
    sys.exit(0)


def _joined(place: "ClusterPlace", token: str | None, name: str) -> str:
    """Join if there is a token; our name in the cluster."""
    from lomi.disk.refusal import DiskRefusedError
    from lomi.lab.host_enrol import JoinRefusedError, join
    from lomi.lab.host_place import ClusterAbsentError
    from lomi.lab.host_tokens import TokenRefusedError, parse_token

    try:
        if token is not None:
            return asyncio.run(join(parse_token(token), place, name)).name
        return place.read().name
    except (JoinRefusedError, TokenRefusedError) as refused:
        fail(f"this host was not admitted ({refused.reason})", _JOINING.get(refused.reason))
    except ClusterAbsentError as absent:
        said, _, hint = str(absent).partition("; ")
        fail(said, hint or None)
    except DiskRefusedError as error:
        fail(f"the home can't be used: {error}", "choose another with LOMI_HOME")


def _access(place: "ClusterPlace", policy_file: Path | None, image: str, phones: int) -> "Access":
    from lomi.disk.refusal import DiskRefusedError
    from lomi.lab.host_policy import Access, TokenMissingError, own_access

    if policy_file is None:
        try:
            return own_access(place.folder, image, phones)
        except TokenMissingError as error:
            fail(str(error), "put the token's file back, or move the policy away: a new one comes with a new token")
        except DiskRefusedError as error:
            fail(f"the home can't be used: {error}", "choose another with LOMI_HOME")
    label, token = os.environ.get("LOMI_CLIENT_LABEL"), os.environ.get("LOMI_CLIENT_TOKEN")
    if not label or not token:
        fail("--policy needs the client that runs tests", "LOMI_CLIENT_LABEL and LOMI_CLIENT_TOKEN name and prove it")
    return Access(policy_file.absolute(), label, token)


def _read_policy(path: Path) -> "Policy":
    from lomi.broker.policy import PolicyError, read_policy

    try:
        return read_policy(path)
    except PolicyError as error:
        fail(f"the policy can't be used:\n{error}", "`lomi policy check` lists every fault")


def _phones(policy: "Policy") -> dict[str, int]:
    """How many phones there are of the one image.

    Raises:
        CommandFailed: there are several images.
    """
    images = [device.image for device in policy.device]
    if len(set(images)) > 1:
        fail("a host offers phones of one image", "give each image a host (a home) of its own")
    return {image: images.count(image) for image in images}
