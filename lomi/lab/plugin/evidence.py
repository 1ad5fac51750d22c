"""What a test leaves beside its report: pictures, videos, hierarchies, logs, receipts, and traces of its acts."""

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from lomi.client.acts import Act, Capture
from lomi.client.errors import BrokerFaultError, ToolError
from lomi.client.lab import Page, Phone, Terminal
from lomi.contract.android import AndroidInstall, AndroidLaunch
from lomi.contract.browser import LogEntry, LogKind
from lomi.contract.model import Result
from lomi.lab.plugin.attempt import Attempt
from lomi.lab.records import ArtifactKind, ArtifactRecord

T = TypeVar("T")

BOUND_S = 15.0
"""When this is over, what is still missing is left out."""
_MOST_PACKAGES = 4
_LOGS: tuple[LogKind, ...] = ("console", "javascript_error", "promise_rejection", "network")
_SYSTEM = ("android", "com.android.systemui")


def folder_name(node_id: str, number: int) -> str:
    """A folder for one attempt: readable, short, and of this test alone whatever strangers call their tests."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", node_id.rpartition("/")[2])[:60].strip("-")
    return f"{plain}-{hashlib.sha256(node_id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}-attempt-{number}"


class Evidence:
    """Takes what there is of one attempt; what can't be had is named in `missing`, never raised."""

    def __init__(self, attempt: Attempt, base: Path) -> None:
        self._attempt = attempt
        self._base = base
        self._end = time.monotonic() + BOUND_S
        self._folder: Path | None = None
        self.missing: list[str] = []
        self.errors: list[ToolError | BrokerFaultError] = []

    def take(self, *, pictures: bool, trace: bool, video: bool, rest: bool) -> None:
        """Take pictures, videos, the traces, and the rest: hierarchies, logs, receipts."""
        for number, phone in enumerate(self._attempt.phones, 1):
            if phone.running:
                self._phone(phone, _numbered("phone", number), pictures=pictures, rest=rest)
        for number, page in enumerate(self._attempt.pages, 1):
            if not page.closed:
                self._page(page, _numbered("page", number), pictures=pictures, rest=rest)
        for number, terminal in enumerate(self._attempt.terminals, 1):
            if not terminal.closed and rest:
                self._terminal(terminal, _numbered("terminal", number))
        if rest:
            self._keep("receipts", "receipts.json", msgspec.json.encode(self._attempt.receipts()))
        if trace:
            self._keep("trace", "trace.jsonl", b"".join(_traced(self._attempt.acts())))
        self._films(traces=trace, videos=video)

    def _films(self, *, traces: bool, videos: bool) -> None:
        """What was recorded; a page that is still blank has shown nothing that may be told of."""
        films, lab = self._attempt.films, self._attempt.lab
        if lab is None:
            return
        if traces or videos:
            self.missing += films.troubles
        for number, trace in enumerate(films.traces if traces else (), 1):
            if trace.page.url != "about:blank":
                name = f"{_numbered('page', number)}-trace.zip"
                self._fetch("trace", name, partial(trace.fetch, lab), trace.generation)
        for number, video in enumerate(films.videos if videos else (), 1):
            if isinstance(video.device, Phone) or video.device.url != "about:blank":
                name = f"{_numbered('video', number)}.webp"
                self._fetch("video", name, partial(video.fetch, lab), video.generation)

    def _fetch(self, kind: ArtifactKind, name: str, fetch: Callable[[Path], str], generation: str) -> None:
        """A file that the broker holds as an artifact."""
        try:
            path = self._made() / name
            path.unlink(missing_ok=True)
            if (artifact_id := self._tried(name, partial(fetch, path))) is not None:
                with path.open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                self._add(kind, path, sha256, generation, artifact_id)
        except OSError as error:
            self.missing.append(f"{name}: {error.strerror}")

    def _phone(self, phone: Phone, name: str, *, pictures: bool, rest: bool) -> None:
        generation = phone.generation
        if pictures and (capture := self._tried(f"{name}: picture", phone.capture)) is not None:
            self._picture(name, capture, generation)
        if not rest or (seen := self._tried(f"{name}: hierarchy", phone.snapshot)) is None:
            return
        self._keep("hierarchy", f"{name}-hierarchy.json", msgspec.json.encode(seen), generation)
        launched = [_package(act) for act in reversed(phone.receipts)]
        shown = [node.package for node in seen.nodes if node.package not in _SYSTEM]
        packages = [package for package in dict.fromkeys((*launched, *shown)) if package]
        for package in packages[:_MOST_PACKAGES]:
            if lines := self._tried(f"{name}: log of {package}", partial(phone.log, package)):
                self._keep("logcat", f"{name}-log-{package}.txt", _text(lines), generation)

    def _page(self, page: Page, name: str, *, pictures: bool, rest: bool) -> None:
        if pictures and (capture := self._tried(f"{name}: picture", page.capture)) is not None:
            self._picture(name, capture, page.generation)
        if not rest:
            return
        if (seen := self._tried(f"{name}: elements", page.snapshot)) is not None:
            self._keep("hierarchy", f"{name}-elements.json", msgspec.json.encode(seen), page.generation)
        lines: list[str] = []
        for kind in _LOGS:
            entries = self._tried(f"{name}: {kind}", partial(page.console, kind)) or ()
            lines += [_logged(entry) for entry in entries]
        if lines:
            self._keep("console", f"{name}-console.txt", _text(lines), page.generation)

    def _terminal(self, terminal: Terminal, name: str) -> None:
        if (screen := self._tried(f"{name}: screen", terminal.screen)) is not None:
            self._keep("console", f"{name}-screen.txt", screen.text.encode(), terminal.generation)

    def _tried(self, what: str, take: Callable[[], T]) -> T | None:
        if time.monotonic() > self._end:
            self.missing.append(f"{what}: no time was left")
            return None
        try:
            return take()
        except (ToolError, BrokerFaultError) as error:
            self.errors.append(error)
            self.missing.append(f"{what}: {error}")
            return None

    def _picture(self, name: str, capture: Capture, generation: str) -> None:
        self._keep("picture", f"{name}.png", capture.png, generation, artifact_id=capture.artifact.id)

    def _keep(
        self,
        kind: ArtifactKind,
        name: str,
        content: bytes,
        generation: str | None = None,
        artifact_id: str | None = None,
    ) -> None:
        try:
            path = self._made() / name
            path.write_bytes(content)
        except OSError as error:
            self.missing.append(f"{name}: {error.strerror}")
            return
        self._add(kind, path, hashlib.sha256(content).hexdigest(), generation, artifact_id)

    def _add(
        self, kind: ArtifactKind, path: Path, sha256: str, generation: str | None, artifact_id: str | None
    ) -> None:
        acts = self._attempt.acts()
        self._attempt.artifacts.append(
            ArtifactRecord(
                kind=kind,
                path=path.relative_to(self._base).as_posix(),
                sha256=sha256,
                byte_length=path.stat().st_size,
                generation=generation,
                artifact_id=artifact_id,
                operation_id=acts[-1].operation_id if acts else None,
            )
        )

    def _made(self) -> Path:
        if self._folder is None:
            self._folder = self._base / folder_name(self._attempt.node_id, self._attempt.number)
            self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _logged(entry: LogEntry) -> str:
    request = entry.request
    if isinstance(request, msgspec.UnsetType):
        return f"{entry.kind}: {entry.message}"
    return f"network: {request.method} {request.url} {request.failed or request.status}"


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _package(act: Act[Result]) -> str | None:
    return act.result.package_name if isinstance(act.result, AndroidLaunch | AndroidInstall) else None


def _traced(acts: Iterable[Act[Result]]) -> Iterator[bytes]:
    """One line for each act: what was done, how it ended, what was seen afterwards."""
    for act in acts:
        line = {
            "at": act.at,
            "tookS": round(act.took_s, 4),
            "tool": act.tool,
            "operationId": act.operation_id,
            "state": act.state,
            "effectState": act.effect,
            "generation": act.generation,
            "result": act.result if act.result is not None else act.failure,
            "settled": act.settled,
            "changed": act.changed,
        }
        yield msgspec.json.encode(line) + b"\n"
