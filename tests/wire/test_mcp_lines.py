"""The judge of lines and the journal of the pipe, alone."""

import asyncio
import contextlib
import fcntl
import json
import os
import pty

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lomi.core.json_text import DuplicateKeyError, MalformedJsonError, read_object
from lomi.mcp.journal import Journal
from lomi.mcp.lines import RefusedLine, read_line
from lomi.mcp.stdio import LineReader, LineWriter

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=8,
)


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=200))
@example(b"[" * 5000)
@example(b'{"id":' + b"1" * 5000 + b"}")
@example(b'{"a":' * 3000)
@example(b"\xef\xbb\xbf{}")
@example(b"\xff\xfe{\x00}\x00")
def test_any_bytes_are_judged(line: bytes) -> None:
    """Whatever comes is read, dropped or refused; nothing else is raised."""
    with contextlib.suppress(RefusedLine):
        read_line(line)


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON), st.integers(0, 3))
def test_arguments_stay_as_they_came(arguments: dict[str, object], indent: int) -> None:
    """The raw arguments of any call are the bytes of the line, and are not among the parameters that the SDK sees."""
    raw = json.dumps(arguments, indent=indent or None).replace("\n", " ").encode()
    line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":%b}}' % raw
    incoming = read_line(line)
    assert incoming is not None
    assert (incoming.arguments, incoming.params) == (raw, {"name": "x"})


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", -32700, None),
        (b"NaN", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\udc00"}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"\\ud800":1}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":["\xc3\x28"]}', -32700, None),
        (b"7", -32600, None),
        (b'{"jsonrpc":"1.0","id":1,"method":"x"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":"a","method":"x","params":{"y":"' + b"z" * 70000 + b'"}}', -32602, "a"),
    ],
)
def test_refused_lines(line: bytes, code: int, number: object) -> None:
    """Each kind of bad line is refused with its code, and with its id where that is known."""
    with pytest.raises(RefusedLine) as refused:
        read_line(line)
    assert (refused.value.code, refused.value.id) == (code, number)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"  ",
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":{"y":"' + b"z" * 70000 + b'"}}',
    ],
)
def test_dropped_lines(line: bytes) -> None:
    """Empty lines, answers to nothing and huge notifications are dropped without a word."""
    assert read_line(line) is None


def test_null_arguments_are_none() -> None:
    """`arguments: null` and no arguments are an empty object."""
    for given_arguments in (b"", b',"arguments":null'):
        line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"%b}}' % given_arguments
        incoming = read_line(line)
        assert incoming is not None
        assert incoming.arguments == b"{}"


@settings(max_examples=20, deadline=None)
@given(JSON)
def test_read_object_agrees_with_the_standard_library(value: object) -> None:
    """Valid JSON is read as the standard library reads it."""
    text = json.dumps(value).encode()
    assert read_object(text) == (json.loads(text) if isinstance(value, dict) else None)


def test_read_object_refuses() -> None:
    """Duplicate keys at any depth and text that is not JSON are told apart."""
    for text in (b'{"a":1,"a":1}', b'[[{"b":{"a":1,"c":2,"a":3}}]]', b'{"\\u0061":1,"a":2}'):
        with pytest.raises(DuplicateKeyError):
            read_object(text)
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    for text in (deep, b'{"a":1e400,"b":"a\\":"}'):
        assert read_object(text) == json.loads(text)
    for text in (b"", b"{", b"Infinity", b'"\\ud83d"', b'"\\ud83d\\ud83d"', b'"\\ude42\\ud83d"', b"\x00"):
        with pytest.raises(MalformedJsonError):
            read_object(text)


def test_journal() -> None:
    """The journal knows which requests lack an answer and how to open another session, in order."""
    journal = Journal()
    first = b'{"jsonrpc":"2.0","id":"o","method":"initialize","params":{"x":1}}'
    ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    for bad in (b'"\xff"', b"1" * 5000, b'"\\ud83d"'):
        journal.outgoing(b'{"jsonrpc":"2.0","id":"o","method":"initialize","params":{"x":%b}}' % bad)
    assert journal.under_way() == []
    journal.outgoing(first)
    assert (journal.opening(), journal.under_way()) == ([], [first])
    journal.incoming(b'{"jsonrpc":"2.0","id":"o","result":{}}')
    journal.outgoing(ready)
    calls = [b'{"jsonrpc":"2.0","id":%d,"method":"tools/call"}' % number for number in range(4)]
    for line in [*calls, b"not JSON", b"[1]", b'{"jsonrpc":"2.0","id":9,"result":{}}']:
        journal.outgoing(line)
    journal.outgoing(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"2"}}')
    journal.incoming(bytearray(b'{"jsonrpc":"2.0","id":1,"error":{}}'))
    journal.incoming(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}')
    assert journal.under_way() == [calls[0], calls[3]]
    replayed, after = journal.opening()
    opening = json.loads(replayed)
    replay = opening.pop("id")
    assert opening == {"jsonrpc": "2.0", "method": "initialize", "params": {"x": 1}}
    assert after == ready
    answer = {"jsonrpc": "2.0", "id": replay, "result": {}}
    assert not journal.incoming(msgspec.json.encode(answer))
    assert journal.incoming(msgspec.json.encode({**answer, "id": "other"}))
    assert journal.under_way() == [calls[0], calls[3]]


async def test_a_line_goes_out_in_the_step_that_sends_it() -> None:
    """Nothing is before it, so it needs no other task; what a full pipe did not take follows whole and in order."""
    incoming, outgoing = os.pipe()
    try:
        writer = LineWriter(outgoing)
        await writer.send(b"first")
        assert os.read(incoming, 100) == b"first\n"
        long = b"x" * (1 << 20)
        await writer.send(long)
        await writer.send(b"last")
        running = asyncio.ensure_future(writer.run())
        with os.fdopen(incoming, "rb", closefd=False) as lines:
            assert await asyncio.to_thread(lines.readline) == long + b"\n"
            assert await asyncio.to_thread(lines.readline) == b"last\n"
        running.cancel()
        await asyncio.wait({running})
    finally:
        os.close(incoming)
        os.close(outgoing)


async def test_nothing_is_read_while_a_line_is_on_its_way() -> None:
    """A client that floods meanwhile is held back by its pipe, whose room is all it gets."""
    incoming, outgoing = os.pipe()
    os.set_blocking(outgoing, False)
    taken = 0
    try:
        os.write(outgoing, b"first\n")
        lines = LineReader(incoming).lines()
        assert await anext(lines) == b"first"
        with contextlib.suppress(BlockingIOError):
            while True:
                taken += os.write(outgoing, b"x" * 4096)
                await asyncio.sleep(0)
        assert taken == fcntl.fcntl(outgoing, fcntl.F_GETPIPE_SZ)
        os.close(outgoing)
        assert [line async for line in lines] == []
    finally:
        os.close(incoming)


async def test_a_line_that_came_while_nobody_read_is_not_too_slow() -> None:
    """The time that the line before it was on its way for is not the client's."""
    incoming, outgoing = os.pipe()
    said = []
    try:
        os.write(outgoing, b"first\nse")
        async for line in LineReader(incoming, line_seconds=0.5).lines():
            said.append(line)
            for piece in (b"co", b"nd\n") if len(said) == 1 else ():
                os.write(outgoing, piece)
                await asyncio.sleep(0.3)
            if len(said) == 2:
                os.close(outgoing)
        assert said == [b"first", b"second"]
    finally:
        os.close(incoming)


async def test_a_terminal_that_is_gone_is_the_end_of_input() -> None:
    """The read fails then; nobody may wait for it, or ask for it again and again."""
    ours, theirs = pty.openpty()
    try:
        os.write(theirs, b"first\r\n")
        lines = LineReader(ours).lines()
        assert (await anext(lines)).rstrip() == b"first"
        os.close(theirs)
        async with asyncio.timeout(5):
            assert [line async for line in lines] == []
    finally:
        os.close(ours)
