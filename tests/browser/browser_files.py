"""A web server of large files: it makes them as they are fetched, and counts and hashes what is sent to it."""

import contextlib
import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_BLOCK = hashlib.shake_256(b"lomi").digest(1 << 20)

PAGE = """<!doctype html><title>Files</title>
<label>Attachment <input type=file id=f></label><label>Other <input type=file id=g></label>
<input type=file id=unseen style="display:none" onchange="picked.textContent = unseen.files[0].name">
<button onclick="send()">Send</button><button onclick="unseen.click()">Pick</button>
<a href="/attached?size=70000" download>Get</a><p id=out></p><p id=picked></p><script>
async function send() {
  const told = await fetch('/take', {method: 'POST', body: f.files[0], headers: {'x-name': f.files[0].name}})
  out.textContent = 'sent ' + await told.text()
}</script>"""


def pieces(size: int) -> Iterator[bytes]:
    """The bytes of the file of a size: each piece differs from the one before."""
    number = 0
    while size > 0:
        piece = (number.to_bytes(8, "big") + _BLOCK[8:])[:size]
        yield piece
        size -= len(piece)
        number += 1


def sha256(size: int) -> str:
    """The hash of that file."""
    digest = hashlib.sha256()
    for piece in pieces(size):
        digest.update(piece)
    return digest.hexdigest()


class FileSite:
    """The running server. `taken` holds name, length and hash of each body sent to it."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.pages: dict[str, str] = {"/": PAGE}
        self.redirects: dict[str, str] = {"/moved": "/file?size=1"}
        self.taken: list[tuple[str, int, str]] = []
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: FileSite

    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        parts = urlsplit(self.path)
        page = self.site.pages.get(parts.path)
        if page is not None:
            self._head(200, "text/html; charset=utf-8", len(page.encode()))
            self.wfile.write(page.encode())
            return
        if parts.path in self.site.redirects:
            self.send_response(302)
            self.send_header("location", self.site.redirects[parts.path])
            self.send_header("content-length", "0")
            self.end_headers()
            return
        if parts.path not in ("/file", "/attached"):
            self._head(404, "text/plain", 0)
            return
        size = int(parse_qs(parts.query)["size"][0])
        more = {"content-disposition": 'attachment; filename="note.bin"'} if parts.path == "/attached" else {}
        self._head(200, "application/octet-stream", size, **more)
        with contextlib.suppress(ConnectionError):
            for piece in pieces(size):
                self.wfile.write(piece)

    def do_POST(self) -> None:
        left, digest = int(self.headers["content-length"]), hashlib.sha256()
        length = left
        while left > 0:
            piece = self.rfile.read(min(left, 1 << 20))
            digest.update(piece)
            left -= len(piece)
        self.site.taken.append((self.headers.get("x-name", ""), length, digest.hexdigest()))
        self._head(200, "text/plain", len("ok"))
        self.wfile.write(b"ok")

    def _head(self, status: int, media: str, length: int, **more: str) -> None:
        self.send_response(status)
        for name, value in {"content-type": media, "content-length": str(length), **more}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving_files() -> Iterator[FileSite]:
    """A site on a port of its own."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.site = FileSite(server.server_address[1])  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield handler.site  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
