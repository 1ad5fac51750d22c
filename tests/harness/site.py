"""A local web server whose pages tell it what was done to them, as any real application's would."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

_PAGE = """<!doctype html><title>Form</title><main style="height:3000px">
<form method="post" action="/submit"><input name="text" aria-label="Text"><input type="password" name="secret"
aria-label="Secret"><button>Send</button></form><button type="button" id="count" onclick="tell('click')">Count</button>
<input type="file" aria-label="File">
<input aria-label="Keys" onkeydown="tell('key')" onfocus="this.dataset.f=1">
<script>function tell(what) { fetch('/told?what=' + what + '&tag=' + encodeURIComponent(location.hash)) }
addEventListener('scroll', () => tell('scroll'), {once: true})
const other = new URLSearchParams(location.search).get('to')
if (other) Promise.allSettled([fetch(other + '/fetched', {mode: 'no-cors'}),
  new Promise(end => { const one = new Image(); one.onload = one.onerror = end; one.src = other + '/image' }),
  new Promise(end => {
    const one = new WebSocket(other.replace('http', 'ws') + '/socket'); one.onopen = one.onerror = end }),
]).then(() => tell('tried'))</script></main>"""

_REPOSITORY = (
    '<s:sdk-repository xmlns:s="http://schemas.android.com/sdk/android/repo/repository2/03">'
    '<channel id="channel-0">stable</channel></s:sdk-repository>'
)
_ANDROID = {"/android/repository2-3.xml": _REPOSITORY, "/android/addons_list-5.xml": "<list/>"}
"""An Android repository in which nothing is offered."""


class Site:
    """The running server. `seen` holds (path, fields of query or form) in order of arrival.

    `pages` are further documents by path.
    """

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.pages: dict[str, str] = {}
        self._news = threading.Condition()

    def note(self, path: str, fields: dict[str, str]) -> None:
        """Take one request in."""
        with self._news:
            self.seen.append((path, fields))
            self._news.notify_all()

    def count(self, path: str, **fields: str) -> int:
        """How many requests for a path had these fields."""
        return sum(where == path and fields.items() <= given.items() for where, given in list(self.seen))

    def wait(self, path: str, seconds: float = 20.0, **fields: str) -> bool:
        """Wait until there is one."""
        with self._news:
            return self._news.wait_for(lambda: self.count(path, **fields) > 0, seconds)


@contextlib.contextmanager
def serving() -> Iterator[Site]:
    """A site on a port of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("content-length", "0"))).decode())

        def _answer(self, body: str) -> None:
            parts = urlsplit(self.path)
            fields = {name: values[0] for name, values in parse_qs(parts.query or body).items()}
            site.note(parts.path, fields)
            document = _ANDROID.get(parts.path)
            content = (document or site.pages.get(parts.path) or _PAGE).encode()
            self.send_response(200)
            self.send_header("content-type", "text/xml" if document else "text/html; charset=utf-8")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
