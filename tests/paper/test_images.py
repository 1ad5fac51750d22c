"""The manifest, the lock and the verification of images."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from emulator_images.avd_files import AvdExistsError, BadAvdNameError, create_avd
from emulator_images.images import UnknownImageError, find_image, load_images
from emulator_images.locks import (
    BadLockError,
    ImageDriftError,
    Lock,
    NotOfferedError,
    Offer,
    apply_lock,
    paper_digest,
    read_lock,
    with_locked,
    write_lock,
)
from emulator_images.paper import avd
from emulator_images.verification import BootFailedError, verify

ATD = "atd-34-x86_64"


def offer(package: str, checksum: str = "sha1:aa", revision: str = "3.0.0") -> Offer:
    return Offer(package, revision, "https://mirror.test/x.zip", 100, checksum)


async def spawn(command: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    quiet = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(*command, env=environment, stdin=quiet, stdout=quiet, stderr=quiet)


def test_manifest_names_paper_and_unlocked_real_images() -> None:
    """The manifest holds paper for each API level, and ATD and Google APIs images for two ABIs, none of them locked."""
    images = load_images()
    assert {f"paper-{api}" for api in (30, 33, 34, 35, 36)} <= images.keys()
    for api in (30, 33, 34, 35, 36):
        for abi in ("x86_64", "arm64-v8a"):
            assert images[f"atd-{api}-{abi}"].package == f"system-images;android-{api};aosp_atd;{abi}"
            assert images[f"google-{api}-{abi}"].package == f"system-images;android-{api};google_apis;{abi}"
    assert not any(image.locked for image in images.values())
    assert {image.name for image in images.values() if image.simulated} == {n for n in images if n.startswith("paper")}


def test_unknown_image_names_the_known_ones() -> None:
    """Asking for an image that does not exist tells which do."""
    with pytest.raises(UnknownImageError, match="paper-36"):
        find_image(load_images(), "paper-99")


def test_lock_pins_offers_and_refuses_drift(tmp_path: Path) -> None:
    """A locked image keeps its content; an offer of other content is refused unless renewal is asked for."""
    image = load_images()[ATD]
    lock = with_locked(Lock(), [image], offer)
    write_lock(tmp_path / "images.lock", lock)
    again = read_lock(tmp_path / "images.lock")
    assert again == lock
    assert with_locked(again, [image], offer) == again
    with pytest.raises(ImageDriftError) as drift:
        with_locked(again, [image], lambda package: offer(package, "sha1:bb"))
    assert (drift.value.locked.checksum, drift.value.found.checksum) == ("sha1:aa", "sha1:bb")
    renewed = with_locked(again, [image], lambda package: offer(package, "sha1:bb"), renew=True)
    assert renewed.images[ATD].checksum == "sha1:bb"
    pinned = apply_lock(load_images(), again)[ATD]
    assert (pinned.locked, pinned.revision, pinned.checksum) == (True, "3.0.0", "sha1:aa")


def test_lock_of_what_is_not_offered_is_refused() -> None:
    """An image whose package the catalogue lacks cannot be locked."""
    with pytest.raises(NotOfferedError, match="aosp_atd"):
        with_locked(Lock(), [load_images()[ATD]], lambda _package: None)


def test_damaged_lock_is_refused(tmp_path: Path) -> None:
    """A lock file that is not one is an error, never an empty lock; a missing one is empty."""
    (tmp_path / "images.lock").write_text('{"version": 1, "images": {"x": {}}}')
    with pytest.raises(BadLockError):
        read_lock(tmp_path / "images.lock")
    assert read_lock(tmp_path / "none.lock") == Lock()


def test_paper_is_locked_to_its_sources(tmp_path: Path) -> None:
    """Paper's checksum changes with any byte of its sources and with nothing else."""
    (tmp_path / "a.py").write_text("1\n")
    (tmp_path / "notes.txt").write_text("x")
    first = paper_digest(tmp_path)
    (tmp_path / "notes.txt").write_text("y")
    assert paper_digest(tmp_path) == first
    (tmp_path / "a.py").write_text("2\n")
    assert paper_digest(tmp_path) != first
    lock = with_locked(Lock(), [load_images()["paper-36"]], lambda _package: None)
    assert lock.images["paper-36"].checksum == paper_digest()


def test_created_avd_is_what_the_emulator_reads(tmp_path: Path) -> None:
    """The AVD files of an image carry its display, API level and ABI, and point real images to their content."""
    images = load_images()
    create_avd(images["paper-34"], tmp_path, "one")
    read = avd.load(tmp_path, "one")
    assert (read.width, read.height, read.density, read.api, read.abi) == (720, 1280, 320, 34, "x86_64")
    create_avd(images[ATD], tmp_path, "two")
    config = avd.read_ini(tmp_path / "two.avd" / "config.ini")
    assert config["image.sysdir.1"] == "system-images/android-34/aosp_atd/x86_64/"
    assert config["hw.cpu.arch"] == "x86_64"
    with pytest.raises(AvdExistsError):
        create_avd(images[ATD], tmp_path, "two")
    with pytest.raises(BadAvdNameError):
        create_avd(images[ATD], tmp_path, "../three")


async def test_paper_verifies_as_reproducible(tmp_path: Path) -> None:
    """Two boots of a paper image show the same hierarchy and picture, hash for hash, under different boot ids."""
    images = apply_lock(load_images(), with_locked(Lock(), [load_images()["paper-36"]], lambda _package: None))
    verdict = await verify(images["paper-36"], environment=dict(os.environ), spawn=spawn, directory=tmp_path)
    assert verdict.reproducible
    assert verdict.same_picture
    assert verdict.content is True
    assert list(tmp_path.iterdir()) == []


async def test_emulator_that_ends_at_once_fails_verification(tmp_path: Path) -> None:
    """An emulator that exits is reported as such and leaves nothing behind."""
    plan = tmp_path / "plan.toml"
    plan.write_text('[[fault]]\nname = "exit_early"\n')
    with pytest.raises(BootFailedError, match="ended with code 1"):
        await verify(
            load_images()["paper-36"],
            environment={**os.environ, "PAPER_FAULTS": str(plan)},
            spawn=spawn,
            directory=tmp_path,
        )
    assert [path.name for path in tmp_path.iterdir()] == ["plan.toml"]


async def test_a_boot_takes_ports_that_nobody_else_is_given(tmp_path: Path) -> None:
    """The emulator binds its ports late: they are none of those that the kernel gives to whoever connects somewhere."""
    seen: list[str] = []

    async def ended(command: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
        seen.extend(command)
        return await spawn(["false"], environment)

    with pytest.raises(BootFailedError, match="ended with code 1"):
        await verify(load_images()["paper-36"], environment=dict(os.environ), spawn=ended, directory=tmp_path)
    console, adb = (int(word) for word in seen[seen.index("-ports") + 1].split(","))
    assert (console % 2, adb) == (0, console + 1)
    assert adb < 32768, "Linux gives 32768 and above unless told otherwise"
