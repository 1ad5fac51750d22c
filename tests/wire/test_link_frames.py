"""The framing: every cut of the stream gives the same frames, and every breach is refused early."""

import asyncio
import contextlib
import os
import socket
import tracemalloc
from collections.abc import AsyncIterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_peers import hurried, until

from lomi.link.channel import Channel
from lomi.link.errors import ChannelClosedError, FrameRefusedError, PeerNotReadingError
from lomi.link.frames import JSON_ONLY, Frame, FrameParser, Kind, encode
from lomi.link.limits import DESKTOP, MAX_BODY, LinkLimits

JSON = Frame(Kind.JSON, b"{}")


def written(*frames: Frame) -> bytes:
    """The bytes of frames on the wire."""
    return b"".join(encode(*frames))


def refusal(stream: bytes) -> str:
    """Feed what must be refused and return the reason; it is the same for every later byte."""
    parser = FrameParser()
    with pytest.raises(FrameRefusedError) as caught:
        list(parser.feed(stream))
    with pytest.raises(FrameRefusedError):
        list(parser.feed(b"x"))
    return caught.value.reason


class TestParser:
    """Bytes in, frames out."""

    @given(
        st.lists(st.tuples(st.sampled_from([Kind.JSON, Kind.CANCEL, Kind.MCP]), st.binary(min_size=1, max_size=300))),
        st.lists(st.integers(1, 400)),
    )
    @settings(deadline=None, max_examples=100)
    def test_every_cut_gives_the_same_frames(self, messages: list[tuple[Kind, bytes]], cuts: list[int]) -> None:
        """However the stream is cut into pieces, the frames come out as they went in."""
        frames = [Frame(kind, body) for kind, body in messages]
        stream = written(*frames)
        parser = FrameParser()
        found: list[Frame] = []
        for cut in cuts:
            found += parser.feed(stream[:cut])
            stream = stream[cut:]
        found += parser.feed(stream)
        assert found == frames
        assert not parser.partial

    def test_single_bytes_give_the_same_frames(self) -> None:
        """A stream in pieces of one byte, a large body and a picture among them, comes out whole."""
        frames = [JSON, Frame(Kind.BINARY, os.urandom(100_000)), Frame(Kind.MCP, b"x"), Frame(Kind.CANCEL, b"y" * 300)]
        parser = FrameParser()
        found = [frame for byte in written(*frames) for frame in parser.feed(bytes([byte]))]
        assert found == frames

    def test_the_largest_body_passes_and_one_more_byte_does_not(self) -> None:
        """8 MiB is the limit of a body, on both sides."""
        largest = Frame(Kind.MCP, bytes(MAX_BODY))
        assert list(FrameParser().feed(written(largest))) == [largest]
        with pytest.raises(ValueError, match="not between"):
            encode(Frame(Kind.MCP, bytes(MAX_BODY + 1)))
        assert refusal((MAX_BODY + 2).to_bytes(4)) == "frame_too_large"

    def test_an_oversize_length_is_refused_before_anything_is_kept(self) -> None:
        """Four bytes suffice to refuse, and nothing is allocated for the body."""
        tracemalloc.start()
        try:
            assert refusal(b"\xff\xff\xff\xff") == "frame_too_large"
            assert tracemalloc.get_traced_memory()[1] < 64 << 10
        finally:
            tracemalloc.stop()

    def test_an_announced_body_is_kept_only_as_it_comes(self) -> None:
        """A header that announces 8 MiB costs nothing until bytes follow."""
        tracemalloc.start()
        try:
            parser = FrameParser()
            assert list(parser.feed((MAX_BODY + 1).to_bytes(4) + b"\x01" + b"begin")) == []
            assert tracemalloc.get_traced_memory()[1] < 64 << 10
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize(
        ("stream", "reason"),
        [
            (b"\0\0\0\0", "frame_empty"),
            (b"\0\0\0\x01", "frame_empty"),
            (b"\0\0\0\x02\x00", "frame_kind_unknown"),
            (b"\0\0\0\x02\x05", "frame_kind_unknown"),
            (b"\0\0\0\x02\xff", "frame_kind_unknown"),
            (b"\0\0\0\x02\x02", "binary_without_header"),
            (written(Frame(Kind.MCP, b"x")) + b"\0\0\0\x02\x02", "binary_without_header"),
            (written(JSON, Frame(Kind.BINARY, b"x")) + b"\0\0\0\x02\x02", "binary_without_header"),
            (b"GET / HTTP/1.1\r\n\r\n", "frame_too_large"),
        ],
    )
    def test_a_breach_is_refused_at_its_header(self, stream: bytes, reason: str) -> None:
        """Zero length, no body, unknown kind, a picture without its JSON frame: refused with the header alone."""
        assert refusal(stream) == reason

    def test_frames_before_a_breach_are_delivered(self) -> None:
        """What came in order is handed out before the refusal."""
        feeding = FrameParser().feed(written(JSON) + b"\0\0\0\0")
        assert next(feeding) == JSON
        with pytest.raises(FrameRefusedError):
            next(feeding)

    def test_a_narrowed_parser_takes_one_frame_of_the_wanted_kind(self) -> None:
        """Narrowing holds for exactly the next frame."""
        parser = FrameParser()
        parser.narrow(2, JSON_ONLY)
        assert list(parser.feed(written(JSON, Frame(Kind.MCP, b"large enough")))) == [
            JSON,
            Frame(Kind.MCP, b"large enough"),
        ]
        for frame, reason in (
            (Frame(Kind.JSON, b"{ }"), "frame_too_large"),
            (Frame(Kind.MCP, b"x"), "frame_kind_unexpected"),
        ):
            parser = FrameParser()
            parser.narrow(2, JSON_ONLY)
            with pytest.raises(FrameRefusedError) as caught:
                list(parser.feed(written(frame)))
            assert caught.value.reason == reason

    @pytest.mark.parametrize(
        "frames",
        [[Frame(Kind.JSON, b"")], [Frame(Kind.BINARY, b"x")], [Frame(Kind.MCP, b"x"), Frame(Kind.BINARY, b"x")]],
    )
    def test_our_own_bad_frames_are_not_sent(self, frames: list[Frame]) -> None:
        """An empty body or a picture on its own is a mistake of the caller."""
        with pytest.raises(ValueError, match="frame"):
            encode(*frames)


@contextlib.asynccontextmanager
async def pair(limits: LinkLimits = DESKTOP) -> AsyncIterator[tuple[Channel, socket.socket]]:
    """A channel past its first frame, and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)
    loop = asyncio.get_running_loop()
    _transport, channel = await loop.create_unix_connection(lambda: Channel(limits), sock=ours)
    channel._clear = False
    channel._parser = FrameParser()
    try:
        yield channel, theirs
    finally:
        theirs.close()
        await channel.close()


async def send(end: socket.socket, content: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(end, content)


class TestChannel:
    """The same over a real socket, where time counts too."""

    async def test_half_a_frame_must_be_finished_in_time(self) -> None:
        """A frame that is not complete within its seconds ends the connection."""
        async with pair(LinkLimits(frame_seconds=0.05)) as (channel, end):
            await send(end, written(JSON)[:-1])
            with pytest.raises(FrameRefusedError) as caught:
                await channel.receive()
            assert caught.value.reason == "frame_too_slow"
            assert channel.closing

    async def test_the_seconds_run_from_the_first_byte(self) -> None:
        """Bytes that keep trickling in do not extend the deadline."""
        async with pair(LinkLimits(frame_seconds=0.1)) as (channel, end):
            async with asyncio.TaskGroup() as tasks:

                async def trickle() -> None:
                    for byte in written(Frame(Kind.MCP, bytes(1000))):
                        if channel.closing:
                            return
                        await send(end, bytes([byte]))
                        await asyncio.sleep(0.01)

                tasks.create_task(trickle())
                with pytest.raises(FrameRefusedError) as caught:
                    await channel.receive()
            assert caught.value.reason == "frame_too_slow"

    async def test_a_frame_in_single_bytes_arrives(self) -> None:
        """Pieces of one byte are fine as long as they come in time."""
        async with pair() as (channel, end):
            for byte in written(Frame(Kind.MCP, b"in pieces")):
                await send(end, bytes([byte]))
                await asyncio.sleep(0)
            assert await channel.receive() == Frame(Kind.MCP, b"in pieces")

    async def test_idle_has_no_limit_and_no_timer(self) -> None:
        """Between frames no timer is pending, so that an idle connection costs nothing and never ends by itself."""
        async with pair(LinkLimits(frame_seconds=0.05)) as (channel, end):
            await send(end, written(JSON)[:3])
            await send(end, written(JSON)[3:])
            await channel.receive()
            assert channel._deadline is None
            assert not channel.closing

    async def test_an_end_inside_a_frame_is_told_from_a_clean_one(self) -> None:
        """EOF between frames ends the iteration; EOF inside one is a breach."""
        async with pair() as (channel, end):
            await send(end, written(JSON))
            end.close()
            assert [frame async for frame in channel.frames()] == [JSON]
        async with pair() as (channel, end):
            await send(end, written(JSON)[:-1])
            end.close()
            with pytest.raises(FrameRefusedError) as caught:
                await channel.receive()
            assert caught.value.reason == "frame_incomplete"

    async def test_frames_before_a_breach_are_received(self) -> None:
        """What came in order is received before the connection is reported broken."""
        async with pair() as (channel, end):
            await send(end, written(JSON) + b"\0\0\0\0")
            assert await channel.receive() == JSON
            with pytest.raises(FrameRefusedError):
                await channel.receive()

    async def test_a_flood_is_held_back_by_the_socket(self) -> None:
        """A peer that sends more than is received is slowed down, not stored."""
        async with pair() as (channel, end):
            frame = written(Frame(Kind.MCP, bytes(100_000)))
            async with asyncio.TaskGroup() as tasks:

                async def flood() -> None:
                    for _ in range(100):
                        await send(end, frame)

                flooding = tasks.create_task(flood())
                first = await channel.receive()
                for _ in range(200):
                    await asyncio.sleep(0)
                assert channel._queued < 3 << 20
                assert not flooding.done()
                received = [first] + [await channel.receive() for _ in range(99)]
            assert all(len(found.body) == 100_000 for found in received)

    async def test_our_own_slowness_is_not_the_peers(self) -> None:
        """A frame that is late because we did not read is not refused."""
        async with pair() as (channel, end):
            stream = written(Frame(Kind.MCP, bytes(2 << 20)), Frame(Kind.MCP, bytes(2 << 20)))
            with hurried() as forward:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(send(end, stream))
                    await until(lambda: channel._paused)
                    assert channel._deadline is None
                    forward(DESKTOP.frame_seconds)
                    assert len((await channel.receive()).body) == 2 << 20
                    assert len((await channel.receive()).body) == 2 << 20

    async def test_a_peer_that_does_not_read_is_cut_off(self) -> None:
        """Unread bytes are waited for up to their limit."""
        async with pair(LinkLimits(send_seconds=0.05)) as (channel, _end):
            with pytest.raises(PeerNotReadingError):
                await channel.send(Frame(Kind.MCP, bytes(8 << 20)))
            with pytest.raises(ChannelClosedError):
                await channel.send(JSON)

    async def test_senders_do_not_interleave_and_cancelling_tears_nothing(self) -> None:
        """Many senders, some cancelled while they wait: every frame arrives whole, pictures right after their JSON."""
        async with pair() as (channel, end):
            picture = bytes(300_000)
            async with asyncio.TaskGroup() as tasks:
                sending = [tasks.create_task(channel.send(JSON, Frame(Kind.BINARY, picture))) for _ in range(20)]
                await asyncio.sleep(0)
                for task in sending[::2]:
                    task.cancel()
                parser, found = FrameParser(), []
                while len(found) < 40:
                    found += parser.feed(await asyncio.get_running_loop().sock_recv(end, 1 << 20))
            assert found == [JSON, Frame(Kind.BINARY, picture)] * 20

    async def test_a_closed_channel_says_so(self) -> None:
        """Sending and receiving after the end are refused, and closing twice is fine."""
        async with pair() as (channel, _end):
            await channel.close()
            await channel.close()
            with pytest.raises(ChannelClosedError):
                await channel.send(JSON)
            with pytest.raises(ChannelClosedError):
                await channel.receive()
