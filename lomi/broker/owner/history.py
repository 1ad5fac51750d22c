"""Stored receipts as the owner reads them. Works on an open store, whether a broker runs over it or not."""

import msgspec

from lomi.broker.owner.answers import ReceiptPage, ReceiptRow
from lomi.store import Store, StoredReceipt

MOST_ROWS = 500


class _Ending(msgspec.Struct, frozen=True):
    """What a result says of itself: a failed one its code and reason, one about a file the file's hash."""

    kind: str = ""
    code: str | None = None
    reason: str | None = None
    sha256: str | None = None


async def receipt_page(
    store: Store, *, session: str | None, since_s: int | None, before: int | None, limit: int
) -> ReceiptPage:
    """At most `limit` (and 500) receipts, newest first; `before` is the sequence of the last one already seen.

    Raises:
        StoreUnavailable: the disk failed.
    """
    wanted = max(1, min(limit, MOST_ROWS))
    found = await store.receipts(session_id=session, since_s=since_s, before=before, limit=wanted + 1)
    return ReceiptPage(rows=tuple(_row(receipt) for receipt in found[:wanted]), more=len(found) > wanted)


def _row(receipt: StoredReceipt) -> ReceiptRow:
    ending = _ending(receipt.result)
    return ReceiptRow(
        sequence=receipt.sequence,
        operation_id=receipt.operation_id,
        session=receipt.session_id,
        label=receipt.client_label,
        tool=receipt.tool,
        workspace=receipt.workspace_id,
        resource=receipt.resource,
        generation=receipt.generation,
        state=receipt.state,
        effect=receipt.effect,
        decided_by=receipt.decided_by,
        code=ending.code,
        reason=ending.reason,
        created_s=receipt.created_s,
        updated_s=receipt.updated_s,
        sha256=ending.sha256,
    )


def _ending(result: bytes | None) -> _Ending:
    if result is None:
        return _Ending()
    try:
        ending = msgspec.json.decode(result, type=_Ending)
    except msgspec.DecodeError:
        return _Ending()
    return ending if ending.kind == "failure" else _Ending(sha256=ending.sha256)
