"""The container of a video: read back by Pillow, whole within its bound whatever comes in."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lomi.core.video import Still, Video, still_of
from lomi.report.picture import video_size


def picture(colour: tuple[int, int, int], size: tuple[int, int] = (16, 16)) -> bytes:
    """A PNG of one colour."""
    kept = io.BytesIO()
    Image.new("RGB", size, colour).save(kept, "PNG")
    return kept.getvalue()


def lasts(content: bytes) -> list[int]:
    """How long each frame is shown, in milliseconds."""
    found = []
    with Image.open(io.BytesIO(content)) as shown:
        for number in range(shown.n_frames):
            shown.seek(number)
            shown.load()
            found.append(shown.info["duration"])
    return found


def test_frames_last_until_the_next_one_and_say_when_it_began() -> None:
    """Times, order, colours and the wall clock of the start are read back by another's decoder."""
    video = Video(1_764_489_600.25)
    for at, colour in ((10.0, (255, 0, 0)), (10.5, (0, 255, 0)), (12.0, (0, 0, 255))):
        video.add(still_of(picture(colour)), at)
    content = video.pack(15.0)
    assert content is not None
    assert lasts(content) == [500, 1500, 3000]
    assert video_size(content) == (16, 16)
    with Image.open(io.BytesIO(content)) as shown:
        assert b'xmp:CreateDate="2025-11-30T08:00:00.250+00:00"' in shown.info["xmp"]
        shown.seek(1)
        assert shown.convert("RGB").getpixel((8, 8))[1] > 200


def test_a_frame_of_another_size_leaves_nothing_of_the_one_before() -> None:
    """A phone that turns: the canvas holds both, and the smaller frame stands alone on it."""
    video = Video(0.0)
    video.add(still_of(picture((255, 0, 0), (40, 20))), 0.0)
    video.add(still_of(picture((0, 0, 255), (20, 40))), 1.0)
    content = video.pack(2.0)
    assert content is not None
    assert video_size(content) == (40, 40)
    with Image.open(io.BytesIO(content)) as shown:
        shown.seek(1)
        seen = shown.convert("RGBA")
        assert seen.getpixel((10, 10))[2] > 200
        assert seen.getpixel((35, 10))[3] == 0


def test_large_pictures_are_scaled_and_broken_ones_refused() -> None:
    """No edge is over 800 pixels; bytes that are no picture raise."""
    still = still_of(picture((1, 2, 3), (1600, 900)))
    assert (still.width, still.height) == (800, 450)
    with pytest.raises(OSError, match="cannot identify"):
        still_of(b"no picture")


def test_without_frames_there_is_no_file() -> None:
    """A target that never showed anything has no video."""
    assert Video(0.0).pack(1.0) is None


@given(st.lists(st.integers(1, 400), min_size=1, max_size=60), st.integers(600, 4_000))
@settings(max_examples=60, deadline=None)
def test_memory_is_bounded_and_the_whole_time_is_covered(sizes: list[int], most: int) -> None:
    """However many frames come, they stay within the bound, the last one is kept, and the times still add up."""
    video = Video(0.0, most_bytes=most)
    for number, size in enumerate(sizes):
        video.add(Still(bytes([number]) * size, 1, 1), float(number))
    content = video.pack(float(len(sizes)))
    assert content is not None
    assert len(content) <= most + 700 + len(sizes)
    frames = content.split(b"ANMF")[1:]
    shown = sum(int.from_bytes(frame[16:19], "little") for frame in frames)
    assert bytes([len(sizes) - 1]) * sizes[-1] in content
    assert shown == pytest.approx(1000 * (len(sizes) - video_begin(frames)), abs=len(frames))


def video_begin(frames: list[bytes]) -> int:
    """The second of the first frame that is kept: its bytes are its number."""
    return frames[0][20]
