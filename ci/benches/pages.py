"""Two local pages, served from a process of their own: a small form, and a table of 1,000 rows."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SMALL, BIG = "/small.html", "/big.html"
_ROWS = "".join(
    f"<tr><td>{i}</td><td><a href='#r{i}'>Order {i} — customer Ünï {i}</a></td>"
    f"<td><button>Approve {i}</button></td><td><input aria-label='note {i}'></td></tr>"
    for i in range(1000)
)
_SMALL_PAGE = """<title>small</title><h1>Hello</h1><button onclick="out.textContent = 'pressed ' + ++n">Press</button>
<label>Name <input></label><p id=out></p><script>let n = 0</script>"""
_PAGES = {SMALL: _SMALL_PAGE, BIG: f"<title>big</title><h1>Orders</h1><table>{_ROWS}</table>"}


class Pages(BaseHTTPRequestHandler):
    """The two pages."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request."""
        body = _PAGES.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    """The origin of the pages."""
    command = [sys.executable, "-P", __file__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.terminate()


if __name__ == "__main__":
    serving = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    print(serving.server_port, flush=True)
    serving.serve_forever()
