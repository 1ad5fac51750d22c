"""Logs, requests, response bodies and traces of a page."""

import shutil
import tempfile
from pathlib import Path

import msgspec

from browser.page import Page
from browser.port import views
from browser.port.faults import reading
from browser.port.lives import Lives
from browser.port.transfers import download_source, length_of, pieces_of
from browser.transfers import MOST_BYTES
from lomi.contract.browser import BrowserLogs, BrowserLogsInput
from lomi.contract.codes import ErrorCode
from lomi.core.port import Call, Ledger, Reply, StoredArtifact
from lomi.core.refusal import Refusal


class BrowserRecords:
    """The handler of the logs tool."""

    def __init__(self, lives: Lives, ledger: Ledger) -> None:
        self._lives = lives
        self._ledger = ledger
        lives.on_lease_ended.append(self._drop_trace)

    async def logs(self, call: Call[BrowserLogsInput]) -> Reply:
        """A page of one log; with it, where asked for, a body or a trace as an artifact."""
        given, page = call.input, self._lives.page(call.generation)
        with reading():
            stored = await self._artifact(call, page)
            data, lines = self._read(page, given)
        if stored is not None:
            data = msgspec.structs.replace(data, artifact=stored.wire)
            lines = [f"artifactId {stored.id}, {stored.byte_length} bytes, sha256 {stored.sha256}", *lines]
        return Reply(data=data, text="\n".join(lines) or "no messages")

    def _read(self, page: Page, given: BrowserLogsInput) -> tuple[BrowserLogs, list[str]]:
        if given.log_kind == "network":
            requests = page.network.read(cursor=given.cursor, limit=given.limit)
            lines = [f"{entry.sequence} {views.network_line(entry)}" for entry in requests.entries]
            return views.network_data(page, requests, given), lines
        read = page.logs.read(given.log_kind, cursor=given.cursor, limit=given.limit)
        lines = [f"{entry.sequence} {entry.level or entry.kind}: {entry.message}" for entry in read.entries]
        return views.logs_data(read, given, page.origin), lines

    async def _artifact(self, call: Call[BrowserLogsInput], page: Page) -> StoredArtifact | None:
        given = call.input
        if given.body_of is not None:
            body = await page.network.body(given.body_of)
            return await self._ledger.artifacts.put_bytes(call, body, download_source(page, given))
        if given.trace is None:
            return None
        self._require_lease(call)
        if given.trace == "start":
            await page.profile.trace.start()
            return None
        return await self._stopped(call, page)

    async def _stopped(self, call: Call[BrowserLogsInput], page: Page) -> StoredArtifact:
        folder = Path(tempfile.mkdtemp(prefix="lomi-trace-"))
        try:
            await page.profile.trace.stop(folder / "trace.zip")
            trace, source = folder / "trace.zip", download_source(page, call.input)
            most = min(await length_of(trace), MOST_BYTES)
            return await self._ledger.artifacts.put_stream(call, pieces_of(trace), source, most=most)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _require_lease(self, call: Call[BrowserLogsInput]) -> None:
        """A trace records all that is done in the page, so only whoever may do it may record it."""
        assert call.generation is not None
        held = self._ledger.lease(call.generation)
        if held is None or held.session_id != call.session_id:
            raise Refusal(ErrorCode.CONTROL_REVOKED, "lease_lost")

    def _drop_trace(self, page: Page) -> None:
        """Whoever has the page now, a person perhaps, is not recorded for the one who had it."""
        page.profile.trace.drop()
