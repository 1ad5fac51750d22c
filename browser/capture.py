"""Pictures of a page: viewport, element or full page; a bounded one to look at and the original's bytes."""

import asyncio
import base64
from collections.abc import Mapping
from contextlib import suppress
from io import BytesIO
from typing import Literal

import msgspec
from PIL import Image

from browser.actions import locate
from browser.display import LOOK_S, Window
from browser.errors import CaptureFailedError, ContextGoneError, RefusedError, StaleRefError, UnresponsiveError
from browser.page import Page
from browser.png import png_size
from browser.wire import ask
from browser.world import World

MOST_INLINE_BYTES = 300_000
MOST_INLINE_EDGE = 8_000
MOST_PIXELS = 48_000_000
CAPTURE_S = 10.0
_DOCUMENTS = 4

_FORMAT: dict[str, object] = {"format": "png", "optimizeForSpeed": True}


class Capture(msgspec.Struct, frozen=True):
    """One picture.

    Attributes:
        png: the bounded picture, at most 300,000 bytes and 8,000 pixels an edge.
        pixels_per_css: picture pixels per CSS pixel of `clip`, the same for both axes.
        clip: x, y, width, height in CSS pixels of the document.
        original: the unscaled picture; the same object as `png` when nothing was scaled.
        uniform: every pixel has one colour: nothing is drawn, or nothing could be seen.
    """

    kind: Literal["viewport", "element", "full_page"]
    png: bytes
    width: int
    height: int
    pixels_per_css: float
    clip: tuple[float, float, float, float]
    original: bytes
    original_width: int
    original_height: int
    original_pixels_per_css: float
    device_scale: float
    navigation_id: str
    uniform: bool | None = None

    @property
    def scaled(self) -> bool:
        """Whether `png` is smaller than the original."""
        return self.png is not self.original


class _Rect(msgspec.Struct, rename="camel"):
    x: float = 0
    y: float = 0
    page_x: float = 0
    page_y: float = 0
    width: float = 0
    height: float = 0
    client_width: float = 0
    client_height: float = 0


class _Metrics(msgspec.Struct, rename="camel"):
    css_layout_viewport: _Rect = msgspec.field(default_factory=_Rect)
    css_content_size: _Rect = msgspec.field(default_factory=_Rect)


class _Picture(msgspec.Struct):
    data: str = ""


class _Box(msgspec.Struct, rename="camel"):
    refused: str | None = None
    x: float = 0
    y: float = 0
    width: float = 0
    height: float = 0
    scroll_x: float = 0
    scroll_y: float = 0


def bounded_png(png: bytes, *, most_bytes: int, most_edge: int, most_width: int | None) -> tuple[bytes, int, int]:
    """A picture within the bounds.

    The same bytes when they fit, else fewer pixels, then fewer colours. Blocking: run it in a thread.
    """
    width, height = png_size(png)
    factor = min(1.0, most_edge / max(width, height), (most_width / width) if most_width else 1.0)
    if factor == 1.0 and len(png) <= most_bytes:
        return png, width, height
    try:
        with Image.open(BytesIO(png)) as opened:
            picture = opened.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise CaptureFailedError("capture_invalid", byte_length=len(png)) from error
    for shrink in (1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1):
        size = (max(1, round(width * factor * shrink)), max(1, round(height * factor * shrink)))
        small = picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
        for colours in (None, 128):
            out = BytesIO()
            (small if colours is None else small.quantize(colours, dither=Image.Dither.NONE)).save(
                out, "PNG", optimize=False, compress_level=6
            )
            if out.tell() <= most_bytes:
                return out.getvalue(), *size
    raise CaptureFailedError("capture_too_large", most_bytes=most_bytes)


def is_uniform(png: bytes) -> bool:
    """Whether every pixel has one colour. Blocking: run it in a thread."""
    with Image.open(BytesIO(png)) as picture:
        extrema = picture.convert("RGB").getextrema()
    return all(isinstance(pair, tuple) and pair[0] == pair[1] for pair in extrema)


async def capture(
    page: Page,
    *,
    full_page: bool = False,
    ref: str | None = None,
    snapshot_id: str | None = None,
    most_width: int | None = None,
    most_bytes: int = MOST_INLINE_BYTES,
    most_edge: int = MOST_INLINE_EDGE,
    deadline_s: float = CAPTURE_S,
) -> Capture:
    """A picture of the viewport, of one element, or of the whole document. Reads only: nothing scrolls.

    Raises:
        CaptureFailedError: ``capture_invalid``, ``capture_too_large``, ``capture_timeout``.
        BlockedError, PageEndedError, StaleRefError, RefusedError (``offscreen``, ``hidden``): no picture can be had.
        ContextGoneError: one document after the other came, each before there was a picture of it.
    """
    page.require_free()
    world = await page.main_world()
    if ref is None and not full_page:
        original, window = await _shown(page, world, deadline_s)
        kind: Literal["viewport", "element", "full_page"] = "viewport"
        clip = (window.x, window.y, window.width, window.height)
        device_scale = window.scale
    else:
        metrics, device_scale = await _measured(page, world)
        kind = "full_page" if ref is None else "element"
        whole = metrics.css_content_size
        clip = (0.0, 0.0, whole.width, whole.height)
        if ref is not None:
            clip = await _element(page, ref, snapshot_id, _viewport_clip(metrics))
        pixels = clip[2] * clip[3] * device_scale**2
        scale = min(1.0, (MOST_PIXELS / pixels) ** 0.5) if pixels else 1.0
        part = {"x": clip[0], "y": clip[1], "width": clip[2], "height": clip[3], "scale": scale}
        original = await _shoot(page, {**_FORMAT, "captureBeyondViewport": True, "clip": part}, deadline_s)
    width, height = png_size(original)
    png, small_width, small_height = original, width, height
    if len(original) > most_bytes or max(width, height) > most_edge or (most_width is not None and width > most_width):
        png, small_width, small_height = await asyncio.to_thread(
            bounded_png, original, most_bytes=most_bytes, most_edge=most_edge, most_width=most_width
        )
    uniform = await asyncio.to_thread(is_uniform, original) if len(original) < 6_000 else False
    return Capture(
        kind=kind,
        png=png,
        width=small_width,
        height=small_height,
        pixels_per_css=small_width / clip[2],
        clip=clip,
        original=original,
        original_width=width,
        original_height=height,
        original_pixels_per_css=width / clip[2],
        device_scale=device_scale,
        navigation_id=page.navigation_id,
        uniform=uniform,
    )


async def _measured(page: Page, world: World) -> tuple[_Metrics, float]:
    metrics, scale = await asyncio.gather(
        ask(page.session, "Page.getLayoutMetrics", {}, _Metrics), world.call("scaleNow", shape=float)
    )
    return metrics, scale


async def _shown(page: Page, world: World, deadline_s: float) -> tuple[bytes, Window]:
    if not page.display.paused:
        look = await page.unless_blocked(page.display.look(world), LOOK_S)
        page.require_free()
        taken = look.result() if look.done else None
        if taken is not None and page.frames.world(world.frame_id) is world:
            return taken
    end = page.clock() + deadline_s
    for _ in range(_DOCUMENTS - 1):
        # Where another document comes meanwhile, it is what the page shows now.
        with suppress(ContextGoneError):
            return await _drawn(page, end - page.clock())
    return await _drawn(page, end - page.clock())


async def _drawn(page: Page, deadline_s: float) -> tuple[bytes, Window]:
    world = await page.main_world()
    # The picture is asked for first: its cost is mostly not the page's, which answers the other question meanwhile.
    return await asyncio.gather(_shoot(page, _FORMAT, deadline_s), _window(world, deadline_s))


async def _window(world: World, deadline_s: float) -> Window:
    await asyncio.sleep(0)  # a picture is asked for by a task of its own
    try:
        return await world.call("windowNow", shape=Window, deadline_s=deadline_s)
    except UnresponsiveError:
        raise CaptureFailedError("capture_timeout") from None


def _viewport_clip(metrics: _Metrics) -> tuple[float, float, float, float]:
    view = metrics.css_layout_viewport
    return view.page_x, view.page_y, view.client_width, view.client_height


async def _element(
    page: Page, ref: str, snapshot_id: str | None, view: tuple[float, float, float, float]
) -> tuple[float, float, float, float]:
    world, _, number = locate(page, ref, snapshot_id)
    try:
        box = await world.call("boxOf", number, shape=_Box)
        place = await page.frames.place(world.frame_id)
    except ContextGoneError:
        raise StaleRefError("stale_ref", ref=ref) from None
    if box.refused in {"stale_ref", "detached"}:
        raise StaleRefError(box.refused, ref=ref)
    if box.refused or box.width < 1 or box.height < 1:
        raise RefusedError(box.refused or "no_box", ref=ref)
    in_x, in_y = place.point(box.x, box.y)
    wide, high = box.width * place.scale_x, box.height * place.scale_y
    x, y = in_x + view[0], in_y + view[1]
    if x + wide <= 0 or y + high <= 0:
        raise RefusedError("offscreen", ref=ref)
    left, top = max(0.0, x), max(0.0, y)
    return left, top, x + wide - left, y + high - top


async def _shoot(page: Page, params: Mapping[str, object], deadline_s: float) -> bytes:
    attempt = await page.unless_blocked(
        ask(page.session, "Page.captureScreenshot", params, _Picture, deadline_s=deadline_s), deadline_s + 1
    )
    page.require_free()
    if not attempt.done:
        raise CaptureFailedError("capture_timeout")
    try:
        return base64.b64decode(attempt.result().data)
    except UnresponsiveError:
        raise CaptureFailedError("capture_timeout") from None
