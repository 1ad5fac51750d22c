"""The rules of artifacts: who may use one, and geometries that hold."""

import contextlib

import msgspec
import pytest

from lomi.contract.artifact import AndroidGeometry, BrowserGeometry, ProjectSource
from lomi.contract.codes import ErrorCode
from lomi.core.artifact_rules import check_geometry, check_use, hardware_point, image_to_hardware
from lomi.core.grant import Grant
from lomi.core.refusal import Refusal

GRANT = Grant(
    scopes=frozenset({"android.capture", "files.read"}), workspaces=frozenset({"w1"}), devices=frozenset({"d1"})
)


def test_a_project_file_needs_only_its_scope_and_workspace() -> None:
    """The rule itself: a file's artifact is usable while files.read and the workspace are granted."""
    source = ProjectSource(kind="file", workspace_id="w1", relative_path="a.txt")
    check_use(source, GRANT)
    with pytest.raises(Refusal, match="SCOPE_DENIED"):
        check_use(source, msgspec.structs.replace(GRANT, scopes=frozenset({"android.capture"})))


@pytest.mark.parametrize(
    ("rotation", "expected"), [(0, (144, 384)), (1, (504, 256)), (2, (576, 896)), (3, (216, 1024))]
)
def test_a_point_of_a_picture_lies_where_the_contract_says(rotation: int, expected: tuple[int, int]) -> None:
    """The contract's four vectors, and the clamp at the edges."""
    affine = image_to_hardware(rotation, (720, 1280), (360, 640))
    assert hardware_point(affine, (72, 192), (720, 1280)) == expected
    assert hardware_point(affine, (-5000, -5000), (720, 1280)) in {(0, 0), (719, 0), (719, 1279), (0, 1279)}


def phone_geometry(**changes: object) -> AndroidGeometry:
    values: dict[str, object] = {
        "width": 360,
        "height": 640,
        "hardware_width": 720,
        "hardware_height": 1280,
        "rotation": 0,
        "image_to_hardware": image_to_hardware(0, (720, 1280), (360, 640)),
    }
    return AndroidGeometry(**(values | changes))  # type: ignore[arg-type]


def page_geometry(**changes: object) -> BrowserGeometry:
    values: dict[str, object] = {
        "width": 1280,
        "height": 720,
        "css_width": 1280.0,
        "css_height": 720.0,
        "scale_x": 1.0,
        "scale_y": 1.0,
        "device_pixel_ratio": 1.0,
        "zoom": 1.0,
        "crop": "viewport",
    }
    return BrowserGeometry(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("geometry", "code"),
    [
        (phone_geometry(), None),
        (page_geometry(), None),
        (page_geometry(css_width=640.0, scale_x=2.0), None),
        (phone_geometry(rotation=1), ErrorCode.ARTIFACT_INVALID),
        (phone_geometry(rotation=4), ErrorCode.ARTIFACT_INVALID),
        (phone_geometry(hardware_width=0), ErrorCode.ARTIFACT_INVALID),
        (phone_geometry(hardware_width=4097), ErrorCode.ARTIFACT_TOO_LARGE),
        (phone_geometry(hardware_width=4096, hardware_height=2026), ErrorCode.ARTIFACT_TOO_LARGE),
        (
            phone_geometry(width=1601, image_to_hardware=image_to_hardware(0, (720, 1280), (1601, 640))),
            ErrorCode.ARTIFACT_TOO_LARGE,
        ),
        (phone_geometry(image_to_hardware=(float("nan"), 0.0, 0.0, 2.0, 0.0, 0.0)), ErrorCode.ARTIFACT_INVALID),
        (page_geometry(width=4097), ErrorCode.ARTIFACT_TOO_LARGE),
        (page_geometry(scale_x=1.00000001), ErrorCode.ARTIFACT_INVALID),
        (page_geometry(zoom=16.5), ErrorCode.ARTIFACT_INVALID),
        (page_geometry(device_pixel_ratio=0.0), ErrorCode.ARTIFACT_INVALID),
        (page_geometry(css_width=100_001.0), ErrorCode.ARTIFACT_INVALID),
        (page_geometry(css_height=float("inf")), ErrorCode.ARTIFACT_INVALID),
    ],
)
def test_a_geometry_that_contradicts_itself_is_refused(
    geometry: AndroidGeometry | BrowserGeometry, code: ErrorCode | None
) -> None:
    """Bounds and formulas of the contract, each at its edge."""
    with contextlib.nullcontext() if code is None else pytest.raises(Refusal) as refusal:
        check_geometry(geometry, (geometry.width, geometry.height))
    if code is not None:
        assert refusal is not None
        assert refusal.value.code is code


def test_a_geometry_must_have_the_pictures_own_size() -> None:
    """Pixels of the file and of the geometry are the same ones."""
    with pytest.raises(Refusal, match="ARTIFACT_INVALID"):
        check_geometry(phone_geometry(), (361, 640))
