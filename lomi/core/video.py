"""A video as an animated WebP: frames with their times, thinned out rather than cut short when there is no room.

Pure: pictures in, bytes out. Each frame is encoded by itself when it comes, so that the end costs nothing but joining
them; the container's form is Google's "WebP Container Specification" (RIFF, little-endian, lengths without the header).
"""

import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO

MOST_BYTES = (4 << 20) - 4096
"""Of all frames, so that a whole video is a file artifact of at most 4 MiB."""
MOST_EDGE = 800
MOST_PIXELS = 48_000_000
"""Of a picture as it comes: more of them would be more memory than a frame is worth."""
FASTEST_S = 0.1
"""Least time between two frames at first; it doubles whenever the frames are thinned out."""
_QUALITY = 60
_HEADER = 24
"""Bytes of a frame beside its picture: chunk name, length, and the frame's own place and time."""
_ANIMATED, _ALPHA, _XMP = 0x02, 0x10, 0x04
_CLEARED = 0x01
_LONGEST_MS = (1 << 24) - 1
_TOLD = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmp:CreateDate="{}" xmp:CreatorTool="Lomi"/>'
    "</rdf:RDF></x:xmpmeta>"
)


@dataclass(frozen=True, slots=True)
class Still:
    """One picture as the chunks of a WebP file, and its size in pixels."""

    chunks: bytes
    width: int
    height: int


def still_of(picture: bytes, most_edge: int = MOST_EDGE) -> Still:
    """Encode a JPEG or PNG, scaled down where an edge is longer; blocks.

    Raises:
        OSError, ValueError, SyntaxError: these bytes are no such picture, or one of too many pixels.
    """
    from PIL import Image  # noqa: PLC0415  only those who record pay for it

    try:
        with Image.open(BytesIO(picture), formats=("JPEG", "PNG")) as opened:
            if opened.width * opened.height > MOST_PIXELS:
                raise OSError(f"{opened.width} by {opened.height} pixels are too many")
            opened.draft("RGB", (most_edge, most_edge))
            shown = opened.convert("RGB")
    except Image.DecompressionBombError as bomb:
        raise OSError(str(bomb)) from bomb
    shown.thumbnail((most_edge, most_edge), Image.Resampling.BILINEAR)
    kept = BytesIO()
    shown.save(kept, "WEBP", quality=_QUALITY, method=0)
    return Still(kept.getvalue()[12:], shown.width, shown.height)


class Video:
    """The frames of one recording. Times are seconds on any clock that only grows.

    Attributes:
        interval_s: how long after a frame the next one is worth having.
    """

    def __init__(self, created: float, most_bytes: int = MOST_BYTES) -> None:
        self.interval_s = FASTEST_S
        self._created = created
        self._most = most_bytes
        self._bytes = 0
        self._frames: list[tuple[float, Still]] = []

    @property
    def frames(self) -> int:
        """How many are kept."""
        return len(self._frames)

    def add(self, still: Still, at: float) -> None:
        """Add what is shown from this time on; one that shows the same as the last is left out."""
        if self._frames and self._frames[-1][1] == still:
            return
        self._frames.append((at, still))
        self._bytes += len(still.chunks) + _HEADER
        while self._bytes > self._most and len(self._frames) > 1:
            self._thin()

    def _thin(self) -> None:
        """Every second frame goes, never the first nor the last; the one before it is shown for longer."""
        first, *between, last = self._frames
        self._frames = [first, *between[1::2], last] if between else [last]
        self._bytes = sum(len(still.chunks) + _HEADER for _, still in self._frames)
        self.interval_s *= 2

    def pack(self, end: float) -> bytes | None:
        """The file, whose last frame is shown until `end`; None where no frame ever came."""
        if not self._frames:
            return None
        sizes = {(still.width, still.height) for _, still in self._frames}
        wide, high = max(wide for wide, _ in sizes), max(high for _, high in sizes)
        flags = _ANIMATED | _XMP | (_ALPHA if sizes != {(wide, high)} else 0)
        ends = [at for at, _ in self._frames[1:]] + [end]
        shown = b"".join(
            _chunk(b"ANMF", _place(still, until - at, cleared=bool(flags & _ALPHA)) + still.chunks)
            for (at, still), until in zip(self._frames, ends, strict=True)
        )
        created = datetime.fromtimestamp(self._created, UTC).isoformat(timespec="milliseconds")
        body = b"WEBP" + _chunk(b"VP8X", struct.pack("<I", flags) + _three(wide - 1) + _three(high - 1))
        body += _chunk(b"ANIM", bytes(4) + bytes(2)) + shown + _chunk(b"XMP ", _TOLD.format(created).encode())
        return _chunk(b"RIFF", body)


def _place(still: Still, seconds: float, *, cleared: bool) -> bytes:
    """Where a frame lies, its size and its milliseconds; where sizes differ each one clears the one before it."""
    lasts = min(max(round(seconds * 1000), 1), _LONGEST_MS)
    corner = _three(0) + _three(0)
    return corner + _three(still.width - 1) + _three(still.height - 1) + _three(lasts) + bytes([_CLEARED * cleared])


def _three(number: int) -> bytes:
    return number.to_bytes(3, "little")


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)
