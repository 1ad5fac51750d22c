"""Reading heads and bodies: strict towards the engine, lenient towards servers, never in two ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browser.egress.framing import CHUNKED, UNTIL_CLOSE, ChunkedScanner, FramingError
from browser.egress.request_head import parse_request_head
from browser.egress.request_headers import HeaderReader, MalformedHeadError
from browser.egress.response_head import MalformedResponseError, parse_response_head


def request(target: str = "http://a.test/x", *, method: str = "GET", host: str = "a.test", more: str = "") -> bytes:
    """Return a request head."""
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode("latin-1")


def test_a_request_is_passed_on_without_what_belongs_to_this_hop() -> None:
    """Credentials, Connection and all it names stay here; the target becomes origin form."""
    head = parse_request_head(
        request(
            "http://A.test:80/p?q=1",
            host="a.test",
            more="Proxy-Authorization: Basic x\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\n"
            "Upgrade: h2c\r\nCookie: c=1\r\nProxy-Connection: close\r\n",
        )
    )
    assert head.wire() == b"GET /p?q=1 HTTP/1.1\r\nHost: a.test\r\nCookie: c=1\r\n\r\n"
    assert (head.host, head.port, head.headers.authorization, head.headers.close) == ("a.test", 80, b"Basic x", True)


@pytest.mark.parametrize(
    ("more", "document"),
    [
        ("Upgrade-Insecure-Requests: 1\r\n", True),
        ("Sec-Fetch-Mode: navigate\r\n", True),
        ("Sec-Fetch-Mode: cors\r\nAccept: text/html\r\n", False),
    ],
)
def test_a_navigation_is_known_by_its_headers(more: str, document: bool) -> None:
    """Chromium marks every navigation of a page or a frame with one of two headers."""
    assert parse_request_head(request(more=more)).document is document


@pytest.mark.parametrize(
    "head",
    [
        request(more="Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
        request(more="Content-Length: 1\r\nContent-Length: 1\r\n"),
        request(more="Content-Length: 1\r\nContent-Length: 2\r\n"),
        request(more="Content-Length: 1, 1\r\n"),
        request(more="Content-Length: +1\r\n"),
        request(more="Content-Length: -1\r\n"),
        request(more="Content-Length: 0x1\r\n"),
        request(more="Content-Length: \r\n"),
        request(more="Content-Length: 9999999999999999\r\n"),
        request(more="Transfer-Encoding: gzip, chunked\r\n"),
        request(more="Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        request(more="Transfer-Encoding: identity\r\n"),
        request(more="Transfer-Encoding : chunked\r\n"),
        request(more="X: a\r\n b\r\n"),
        request(more=" X: a\r\n"),
        request(more="X: a\nY: b\r\n"),
        request(more="X: a\rY: b\r\n"),
        request(more="X: a\x00\r\n"),
        request(more="X\r\n"),
        request(more=": x\r\n"),
        request(more="Host: a.test\r\n"),
        request(more="Host: b.test\r\n"),
        request(more="Connection: host\r\n"),
        request(more="Connection: content-length\r\nContent-Length: 1\r\n"),
        request(more="Proxy-Authorization: Basic x\r\nProxy-Authorization: Basic y\r\n"),
        request(host="b.test"),
        request(host="a.test:81"),
        request(host=""),
        request("/x"),
        request("*"),
        request("https://a.test/x"),
        request("ftp://a.test/x"),
        request("http://user@a.test/x"),
        request("http://user:p@a.test/x"),
        request("http://a.test/x#f"),
        request("http://a.test?x"),
        request("http:///x", host=""),
        request("http://a.test\\@b.test/x"),
        request("http://a.test:99999/x"),
        request("http://a.test./x", host="a.test."),
        request("http://2130706433/x", host="2130706433"),
        request("http://0177.0.0.1/x", host="0177.0.0.1"),
        request("a.test", method="CONNECT"),
        request("a.test:443", method="CONNECT", host="b.test:443"),
        request("http://a.test:443/", method="CONNECT"),
        request("a.test:443", method="CONNECT", host="a.test:443", more="Content-Length: 0\r\n"),
        request("a.test:443", method="CONNECT", host="a.test:443", more="Transfer-Encoding: chunked\r\n"),
        request(method="GE T"),
        request().replace(b"HTTP/1.1", b"HTTP/1.0"),
        request().replace(b"HTTP/1.1", b"HTTP/2.0"),
        request().replace(b"Host: a.test\r\n", b""),
        request(more="X: 1\r\n" * 300),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(head: bytes) -> None:
    """Smuggling needs two readings of one head; each such head is refused whole."""
    with pytest.raises(MalformedHeadError):
        parse_request_head(head)


@given(st.binary(max_size=400))
def test_any_bytes_are_a_head_or_are_refused(noise: bytes) -> None:
    """The reader fails in one way only."""
    for head in (noise, b"GET http://a.test/ HTTP/1.1\r\n" + noise + b"\r\n\r\n"):
        try:
            parsed = parse_request_head(head)
        except MalformedHeadError:
            continue
        assert parsed.wire().count(b"\r\n\r\n") == 1


@given(st.binary(max_size=400))
def test_any_bytes_are_an_answer_or_are_refused(noise: bytes) -> None:
    """What is written to the engine holds no line a server slipped in, whatever it sent."""
    for head in (noise, b"HTTP/1.1 200 OK\r\n" + noise + b"\r\n\r\n"):
        try:
            parsed = parse_response_head(head, method="GET")
        except MalformedResponseError:
            continue
        assert parsed.wire.endswith(b"\r\n\r\n")
        assert parsed.wire.count(b"\r\n\r\n") == 1
        assert b"\x00" not in parsed.wire
        assert b"\n" not in parsed.wire.replace(b"\r\n", b"")


@pytest.mark.parametrize(
    ("head", "method", "framing", "keep"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 5, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "GET", 5, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n", "GET", 5, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", "GET", 5, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: Keep-Alive\r\n\r\n", "GET", 5, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", "GET", CHUNKED, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", "GET", CHUNKED, False),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET", UNTIL_CLOSE, False),
        (b"HTTP/1.1 200 OK\r\n\r\n", "GET", UNTIL_CLOSE, False),
        (b"HTTP/1.1 200\r\n\r\n", "GET", UNTIL_CLOSE, False),
        (b"HTTP/1.1 200 OK\nContent-Length: 5\n\n", "GET", 5, True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "GET", 0, True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "GET", 0, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HEAD", 0, True),
        (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\n", "GET", 5, True),
    ],
)
def test_an_answer_is_framed_as_browsers_do(head: bytes, method: str, framing: int, keep: bool) -> None:
    """Old, sloppy and modern servers are all understood."""
    parsed = parse_response_head(head, method=method)
    assert (parsed.framing, parsed.keep) == (framing, keep)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 407 Proxy\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"hello\r\n\r\n",
    ],
)
def test_an_answer_that_speaks_for_the_proxy_or_cannot_be_framed_is_refused(head: bytes) -> None:
    """A server may not ask for the proxy's credential, switch protocols, or leave its length open to choice."""
    with pytest.raises(MalformedResponseError):
        parse_response_head(head, method="GET")


def test_a_server_cannot_forge_the_proxy_mark() -> None:
    """Headers of this hop are dropped from what a server sends."""
    parsed = parse_response_head(
        b"HTTP/1.1 200 OK\r\nLomi-Egress: own_port\r\nProxy-Authenticate: Basic\r\nX: 1\r\n\r\n", method="GET"
    )
    assert b"Lomi-Egress" not in parsed.wire
    assert b"Proxy-Authenticate" not in parsed.wire
    assert b"X: 1" in parsed.wire


def test_remembered_header_lines_read_the_same_and_stay_few() -> None:
    """A remembered block is the block that was read; the memory is bounded and takes in nothing refused."""
    reader = HeaderReader()
    for number in range(1_000):
        block = b"Host: a.test\r\nX: %d\r\n\r\n" % number
        assert reader.read(block) == reader.read(block) == HeaderReader().read(block)
    assert len(reader._known) <= 128
    for _ in range(2):
        with pytest.raises(MalformedHeadError):
            reader.read(b"Host: a.test\r\nHost: a.test\r\n\r\n")


def chunked(chunks: list[bytes]) -> bytes:
    """Return a chunked body."""
    return b"".join(b"%x;e=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks if chunk) + b"0\r\nT: 1\r\n\r\n"


@given(st.lists(st.binary(max_size=40), max_size=6), st.lists(st.integers(1, 20), max_size=60), st.binary(max_size=9))
def test_a_chunked_body_ends_where_it_ends_however_it_arrives(
    chunks: list[bytes], cuts: list[int], rest: bytes
) -> None:
    """Cut into any pieces and followed by any bytes, the body is exactly the body."""
    body = chunked(chunks)
    stream, scanner, taken, position = body + rest, ChunkedScanner(), 0, 0
    for step in [*cuts, len(stream)]:
        piece = stream[position : position + step]
        position += step
        taken += scanner.feed(piece)
        if scanner.done:
            break
    assert scanner.done
    assert taken == len(body)


@pytest.mark.parametrize(
    "body",
    [
        b"x\r\n",
        b"5\n",
        b"-1\r\n",
        b"5\r\nhelloXX",
        b"5\r\nhello\n",
        b"10000000000000000\r\n",
        b"\r\n",
        b"0\r\n" + b"a" * 5000,
    ],
)
def test_a_broken_chunked_body_is_refused(body: bytes) -> None:
    """Sizes and line ends are held to the letter, and lines to a length."""
    with pytest.raises(FramingError):
        ChunkedScanner().feed(body)
