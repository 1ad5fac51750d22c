"""Downloads: bounded, resumable, and verified before anyone may use them."""

import asyncio
import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from devices.sdk.catalogue import Archive
from devices.sdk.faults import SetupFailed

_CHUNK = 1 << 20
_RETRIES = 3


async def fetch_document(url: str, *, limit: int, within: float) -> bytes:
    """A small document, at most `limit` bytes, in a thread.

    Raises:
        SetupFailed: reason catalogue_unreachable (field status: what the server answered, 0 for nothing) or
            catalogue_invalid.
    """
    return await asyncio.to_thread(_document, url, limit, within)


async def fetch_archive(archive: Archive, target: Path, *, cancelled: Callable[[], bool], within: float = 30.0) -> None:
    """Download to `target`, going on where an earlier try stopped, and verify size and checksum.

    `within` bounds each read in seconds; `cancelled` is asked between reads. A file that fails its checksum is removed.

    Raises:
        SetupFailed: download_failed (what came stays for the next try), download_size or checksum_mismatch.
    """
    await asyncio.to_thread(_archive, archive, target, cancelled, within)


def _open(url: str, start: int, within: float) -> http.client.HTTPResponse:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise SetupFailed("download_failed", "only http and https are fetched")
    headers = {"Range": f"bytes={start}-"} if start else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme was checked
    response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=within)  # noqa: S310
    return response


def _document(url: str, limit: int, within: float) -> bytes:
    try:
        with _open(url, 0, within) as response:
            raw = response.read(limit + 1)
    except (OSError, http.client.HTTPException) as broken:
        status = broken.code if isinstance(broken, urllib.error.HTTPError) else 0
        raise SetupFailed("catalogue_unreachable", f"{url}: {broken}", fields={"status": status}) from broken
    if len(raw) > limit:
        raise SetupFailed("catalogue_invalid", f"more than {limit} bytes at {url}")
    return raw


def _archive(archive: Archive, target: Path, cancelled: Callable[[], bool], within: float) -> None:
    for attempt in range(_RETRIES):
        try:
            _continue(archive, target, cancelled, within)
            if target.stat().st_size == archive.size:
                break
        except (OSError, http.client.HTTPException) as broken:
            if attempt == _RETRIES - 1 or isinstance(broken, urllib.error.HTTPError):
                raise SetupFailed("download_failed", f"{archive.url}: {broken}") from broken
    have = target.stat().st_size
    if have != archive.size:
        fields = {"want": archive.size, "have": have}
        raise SetupFailed("download_size", "the download is shorter than the catalogue says", fields=fields)
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, archive.checksum_type).hexdigest()
    if digest != archive.checksum:
        target.unlink()
        raise SetupFailed("checksum_mismatch", "the download is not what the catalogue names", fields={"have": digest})


def _continue(archive: Archive, target: Path, cancelled: Callable[[], bool], within: float) -> None:
    start = target.stat().st_size if target.exists() else 0
    if start > archive.size:
        target.unlink()
        start = 0
    if start == archive.size:
        return
    with _open(archive.url, start, within) as response:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        with target.open("ab" if resumed else "wb") as file:
            have = start if resumed else 0
            while chunk := response.read1(_CHUNK):
                if cancelled():
                    raise SetupFailed("download_failed", "cancelled")
                have += len(chunk)
                if have > archive.size:
                    raise SetupFailed("download_size", "the download is longer than the catalogue says")
                file.write(chunk)
