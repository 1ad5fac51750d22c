"""`lomi receipts`: the history of what was done, through the running broker, or from the store when none runs."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable

import click
import msgspec

from lomi.broker.owner.answers import ReceiptPage, ReceiptRow
from lomi.cli.failing import fail
from lomi.cli.shown import Since, age, short, table

PAGE = 200
Fetch = Callable[[int | None, int], Awaitable[ReceiptPage]]


@click.command()
@click.option("--session", metavar="ID", help="Only receipts of this session.")
@click.option("--since", type=Since(), metavar="WHEN", help="Only receipts from then on: 15m, 2h, 3d, or an ISO date.")
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="At most so many.")
@click.option("--all", "everything", is_flag=True, help="Without a limit.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def receipts(session: str | None, since: int | None, limit: int, everything: bool, as_json: bool) -> None:
    """Show stored receipts, newest first. Without a broker the store is opened as the next broker would open it.

    What a dead broker left running is then settled as outcome_unknown: nobody can know it any more.
    """
    most = sys.maxsize if everything else limit
    rows, more = _through_broker(session, since, most) or _offline(session, since, most)
    if as_json:
        click.echo(msgspec.json.encode({"receipts": rows, "more": more}).decode())
        return
    if not rows and session is not None:
        click.echo("hint: `lomi receipts --all` names the sessions that have some", err=True)
    click.echo("\n".join(lines_of(rows, more=more, now=time.time())))


def every_receipt() -> list[ReceiptRow]:
    """All receipts of this home, newest first; what keeps them from being read ends the command."""
    rows, _ = _through_broker(None, None, sys.maxsize) or _offline(None, None, sys.maxsize)
    return rows


def lines_of(rows: list[ReceiptRow], *, more: bool, now: float) -> list[str]:
    """The receipts for a person."""
    shown = table(
        ("AGO", "OPERATION", "TOOL", "SESSION", "CLIENT", "TARGET", "OUTCOME", "DECIDED BY"),
        [
            (
                age(now - row.created_s),
                row.operation_id[:12],
                row.tool,
                row.session,
                short(row.label, 24),
                row.generation or short(row.resource or row.workspace or "-", 24),
                _outcome(row),
                row.decided_by or "-",
            )
            for row in rows
        ],
    )
    if more:
        shown.append(f"the newest {len(rows)}; there are older ones: --limit N or --all")
    return shown or ["no receipts"]


def _outcome(row: ReceiptRow) -> str:
    why = " ".join(word for word in (row.code, row.reason and f"({row.reason})") if word)
    return f"{row.state.value}/{row.effect.value}" + (f" {why}" if why else "")


async def _collect(fetch: Fetch, most: int) -> tuple[list[ReceiptRow], bool]:
    """At most `most` rows, page by page, and whether there are more."""
    rows: list[ReceiptRow] = []
    while True:
        page = await fetch(rows[-1].sequence if rows else None, min(PAGE, most - len(rows)))
        rows += page.rows
        if not page.more or len(rows) >= most:
            return rows, page.more


def _through_broker(session: str | None, since: int | None, most: int) -> tuple[list[ReceiptRow], bool] | None:
    """From the running broker; None when there is none."""
    from lomi.cli.owner_link import explained, owner_link
    from lomi.link.errors import BrokerAbsentError

    async def ask() -> tuple[list[ReceiptRow], bool] | None:
        try:
            async with owner_link() as link:

                async def fetch(before: int | None, limit: int) -> ReceiptPage:
                    wanted = {"session": session, "since_s": since, "before": before, "limit": limit}
                    return await link.ask("owner.receipts", wanted, ReceiptPage)

                return await _collect(fetch, most)
        except BrokerAbsentError:
            return None

    return explained(ask())


def _offline(session: str | None, since: int | None, most: int) -> tuple[list[ReceiptRow], bool]:
    from lomi.broker.owner.history import receipt_page
    from lomi.cli.offline import offline_store
    from lomi.disk.home import state_home
    from lomi.store import StoreLocked, StoreRefused, StoreUnavailable
    from lomi.store.place import DIRECTORY

    home = state_home(os.environ)
    if not (home / DIRECTORY).is_dir():
        fail("there is no store in this home yet", "start a broker once with `lomi up`")

    async def read() -> tuple[list[ReceiptRow], bool]:
        async with offline_store(home) as store:

            async def fetch(before: int | None, limit: int) -> ReceiptPage:
                return await receipt_page(store, session=session, since_s=since, before=before, limit=limit)

            return await _collect(fetch, most)

    try:
        return asyncio.run(read())
    except StoreLocked as locked:
        fail(f"{locked}, and it does not answer", "it may be starting or stopping; try again, or see `lomi doctor`")
    except StoreRefused as refused:
        fail(str(refused), "see docs/recovery.md")
    except StoreUnavailable as failed:
        fail(f"the store can't be read: {failed}", "`lomi doctor` looks at the disk")
