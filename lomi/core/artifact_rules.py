"""Rules of artifacts: who may still use one, and what a picture's geometry must satisfy."""

import math

from lomi.contract.artifact import (
    Affine,
    AndroidGeometry,
    AndroidSource,
    ArtifactSource,
    BrowserGeometry,
    BrowserSource,
)
from lomi.contract.codes import Details, ErrorCode
from lomi.core.grant import Grant
from lomi.core.refusal import Refusal

_CSS = 100_000
_RATIO = 16
_EDGE = 4096
_HARDWARE_PIXELS = 8_294_400
_ANDROID_EDGE = 1600
_CLOSE = 1e-9


def check_use(source: ArtifactSource, grant: Grant) -> None:
    """Refuse the use of an artifact whose source is no longer within the grant: owning it is not enough.

    Raises:
        Refusal: TARGET_NOT_FOUND when its workspace, phone or origin is out of sight, SCOPE_DENIED without its scope.
    """
    in_sight = grant.admits_workspace(source.workspace_id)
    if isinstance(source, AndroidSource):
        in_sight = in_sight and grant.admits_device(source.device_id)
    elif isinstance(source, BrowserSource):
        in_sight = in_sight and grant.admits_origin(source.origin)
    if not in_sight:
        raise Refusal(ErrorCode.TARGET_NOT_FOUND)
    if source.required_scope not in grant.scopes:
        raise Refusal(ErrorCode.SCOPE_DENIED, "scope_missing")


def image_to_hardware(rotation: int, hardware: tuple[int, int], image: tuple[int, int]) -> Affine:
    """From a picture's pixels to unrotated hardware ones; rotation in quarter turns, sizes as (width, height)."""
    width, height = hardware
    across, down = image
    return (
        (width / across, 0.0, 0.0, height / down, 0.0, 0.0),
        (0.0, height / across, -width / down, 0.0, float(width), 0.0),
        (-width / across, 0.0, 0.0, -height / down, float(width), float(height)),
        (0.0, -height / across, width / down, 0.0, 0.0, float(height)),
    )[rotation]


def hardware_point(affine: Affine, point: tuple[float, float], hardware: tuple[int, int]) -> tuple[int, int]:
    """Where a picture's point lies on the hardware display: floor, then clamp to its pixels."""
    a, b, c, d, shift_x, shift_y = affine
    u, v = point
    x, y = math.floor(a * u + c * v + shift_x), math.floor(b * u + d * v + shift_y)
    return min(max(x, 0), hardware[0] - 1), min(max(y, 0), hardware[1] - 1)


def check_geometry(geometry: BrowserGeometry | AndroidGeometry, size: tuple[int, int]) -> None:
    """Check a geometry against the picture's own pixel size.

    Raises:
        Refusal: ARTIFACT_TOO_LARGE over a pixel bound, ARTIFACT_INVALID where the numbers contradict each other.
    """
    if (geometry.width, geometry.height) != size or min(size) < 1:
        raise _contradiction()
    if isinstance(geometry, BrowserGeometry):
        _check_browser(geometry)
    else:
        _check_android(geometry)


def _check_browser(geometry: BrowserGeometry) -> None:
    if max(geometry.width, geometry.height) > _EDGE:
        raise _too_large(_EDGE, max(geometry.width, geometry.height))
    for value, bound in (
        (geometry.css_width, _CSS),
        (geometry.css_height, _CSS),
        (geometry.device_pixel_ratio, _RATIO),
        (geometry.zoom, _RATIO),
    ):
        if not 0 < value <= bound:
            raise _contradiction()
    if abs(geometry.scale_x - geometry.width / geometry.css_width) > _CLOSE:
        raise _contradiction()
    if abs(geometry.scale_y - geometry.height / geometry.css_height) > _CLOSE:
        raise _contradiction()


def _check_android(geometry: AndroidGeometry) -> None:
    hardware = (geometry.hardware_width, geometry.hardware_height)
    if min(hardware) < 1 or not 0 <= geometry.rotation <= 3:
        raise _contradiction()
    if max(hardware) > _EDGE:
        raise _too_large(_EDGE, max(hardware))
    if hardware[0] * hardware[1] > _HARDWARE_PIXELS:
        raise _too_large(_HARDWARE_PIXELS, hardware[0] * hardware[1])
    if max(geometry.width, geometry.height) > _ANDROID_EDGE:
        raise _too_large(_ANDROID_EDGE, max(geometry.width, geometry.height))
    right = image_to_hardware(geometry.rotation, hardware, (geometry.width, geometry.height))
    if any(not abs(given - wanted) <= _CLOSE for given, wanted in zip(geometry.image_to_hardware, right, strict=True)):
        raise _contradiction()


def _contradiction() -> Refusal:
    return Refusal(ErrorCode.ARTIFACT_INVALID)


def _too_large(limit: int, need: int) -> Refusal:
    return Refusal(ErrorCode.ARTIFACT_TOO_LARGE, details=Details(limit=limit, need=need))
