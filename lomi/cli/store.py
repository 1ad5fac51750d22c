"""`lomi store reconcile`."""

import asyncio
import os
import time
from typing import TYPE_CHECKING

import click
import msgspec

from lomi.cli.failing import fail

if TYPE_CHECKING:
    from lomi.store.rows import ReconcileReport


@click.group()
def store() -> None:
    """Look after the receipt store."""


@store.command()
@click.option("--ended-sessions", is_flag=True, help="Also receipts of sessions that have ended, whatever their age.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def reconcile(ended_sessions: bool, as_json: bool) -> None:
    """Move settled, expired receipts to small tombstones; a late duplicate is still refused.

    Never happens by itself.
    """
    from lomi.client.find import own_broker
    from lomi.link.errors import BrokerAbsentError
    from lomi.store.failure import StoreLocked, StoreRefused

    try:
        own_broker(os.environ)
        report = asyncio.run(_offline(ended_sessions))
    except BrokerAbsentError:
        fail("there is no store in this home yet", "start a broker once with `lomi up`")
    except StoreLocked:
        from lomi.cli.owner_link import ask_broker
        from lomi.store.rows import ReconcileReport

        report = ask_broker("owner.reconcile", {"ended_sessions": ended_sessions}, ReconcileReport)
    except StoreRefused as refused:
        fail(str(refused), "see docs/recovery.md")
    if as_json:
        click.echo(msgspec.json.encode(report).decode())
    else:
        click.echo(
            f"{report.tombstones} receipts became tombstones, {report.removed} removed, {report.epochs} epochs removed"
        )


async def _offline(ended_sessions: bool) -> "ReconcileReport":
    from lomi.cli.offline import offline_store
    from lomi.disk.home import state_home

    async with offline_store(state_home(os.environ)) as opened:
        return await opened.reconcile(ended_sessions=ended_sessions, now_s=int(time.time()))
