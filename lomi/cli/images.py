"""`lomi images`: the phone images there are, what they are locked to, and whether they keep their promise."""

import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from emulator_images.images import BadManifestError, Image, UnknownImageError, find_image, load_images
from emulator_images.locks import (
    BadLockError,
    ImageDriftError,
    Lock,
    NotOfferedError,
    Offer,
    apply_lock,
    read_lock,
    with_locked,
    write_lock,
)
from lomi.cli.failing import fail
from lomi.cli.shown import size, table

if TYPE_CHECKING:
    from emulator_images.verification import Verdict

_MIB = 1 << 20
GOOGLE = "https://dl.google.com/android/repository/"
lock_option = click.option(
    "--lock",
    "lock_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("emulator-images.lock"),
    show_default=True,
    help="The lock file; keep it under version control.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def images() -> None:
    """Phones are made of images: paper-36 and the like are simulated, the others run Google's emulator."""


def _known(lock_file: Path) -> tuple[Mapping[str, Image], Lock]:
    try:
        lock = read_lock(lock_file)
        return apply_lock(load_images(), lock), lock
    except (BadLockError, BadManifestError) as error:
        fail(str(error), "the file is damaged: restore it, or move it away and lock again")


def _chosen(known: Mapping[str, Image], name: str) -> Image:
    try:
        return find_image(known, name)
    except UnknownImageError as error:
        fail(str(error), "`lomi images list` lists them")


@images.command("list")
@lock_option
@json_option
def list_(lock_file: Path, as_json: bool) -> None:
    """List every image."""
    known, _ = _known(lock_file)
    if as_json:
        click.echo(msgspec.json.encode(list(known.values())).decode())
        return
    rows = [
        (
            image.name,
            "SIMULATED" if image.simulated else "real",
            str(image.api),
            image.abi,
            f"{image.hardware.width}x{image.hardware.height}",
            size(image.ram_mib * _MIB),
            size(image.disk_mib * _MIB),
            image.checksum[:19] if image.checksum else "no",
        )
        for image in known.values()
    ]
    click.echo("\n".join(table(("IMAGE", "KIND", "API", "ABI", "DISPLAY", "RAM", "DISK", "LOCKED"), rows)))


@images.command()
@click.argument("name")
@lock_option
@json_option
def show(name: str, lock_file: Path, as_json: bool) -> None:
    """Show one image whole."""
    known, _ = _known(lock_file)
    image = _chosen(known, name)
    plain = msgspec.to_builtins(image)
    if as_json:
        click.echo(msgspec.json.encode(image).decode())
        return
    for key, value in plain.items():
        click.echo(f"{key:12} {' '.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")


@images.command()
@click.argument("names", nargs=-1, required=True)
@lock_option
@click.option("--renew", is_flag=True, help="Replace what an image was locked to, on purpose.")
@click.option("--catalogue", default=GOOGLE, show_default=True, metavar="URL", help="Where real images are offered.")
def lock(names: Sequence[str], lock_file: Path, renew: bool, catalogue: str) -> None:
    """Pin the content of NAMES in the lock file; paper images need no network."""
    known, present = _known(lock_file)
    chosen = [_chosen(known, name) for name in names]
    try:
        made = with_locked(present, chosen, _offers(chosen, catalogue), renew=renew)
        write_lock(lock_file, made)
    except ImageDriftError as error:
        fail(str(error), "--renew takes the new content on purpose")
    except NotOfferedError as error:
        fail(str(error), "choose another image: `lomi images list`")
    except OSError as error:
        fail(f"{lock_file} can't be written: {error.strerror}", "--lock names another file")
    for image in chosen:
        click.echo(f"{image.name} is locked to {made.images[image.name].checksum}")


def _offers(chosen: Sequence[Image], url: str) -> Callable[[str], Offer | None]:
    """What the catalogue offers; it is read only when a real image is among the chosen ones."""
    if all(image.package is None for image in chosen):
        return lambda _package: None
    from devices.sdk.catalogue import HostKind
    from devices.sdk.faults import SetupFailed
    from devices.sdk.setup import Setup
    from devices.world import World

    host = HostKind(
        "macosx" if sys.platform == "darwin" else "linux", "x64" if platform.machine() == "x86_64" else "aarch64"
    )

    async def read() -> Callable[[str], Offer | None]:
        setup = Setup(Path(tempfile.gettempdir()), host=host, world=World(), base_url=url)
        found = await setup.catalogue()

        def offer(path: str) -> Offer | None:
            package = found.find(path, channel=0)
            if package is None:
                return None
            archive = package.archive
            checksum = f"{archive.checksum_type}:{archive.checksum}"
            return Offer(path, package.version, archive.url, archive.size, checksum)

        return offer

    try:
        return asyncio.run(read())
    except SetupFailed as failed:
        fail(f"the catalogue can't be read: {failed}", "check the network, or name a mirror with --catalogue")


@images.command()
@click.argument("name")
@lock_option
@json_option
def verify(name: str, lock_file: Path, as_json: bool) -> None:
    """Boot NAME twice and compare: the same hierarchy, on paper the same picture, and the locked content."""
    from emulator_images.verification import BootFailedError
    from emulator_images.verification import verify as boot_twice

    known, _ = _known(lock_file)
    image = _runnable(_chosen(known, name))

    async def boot() -> "Verdict":
        with tempfile.TemporaryDirectory(prefix="lomi-verify-") as place:
            return await boot_twice(image, environment=os.environ, spawn=_spawn, directory=Path(place))

    try:
        verdict = asyncio.run(boot())
    except BootFailedError as failed:
        fail(str(failed), "`lomi doctor` says what real images need")
    except OSError as error:
        fail(f"{image.command[0]} can't be run: {error.strerror}", "`lomi doctor` says what real images need")
    if as_json:
        click.echo(msgspec.json.encode({"reproducible": verdict.reproducible, **msgspec.to_builtins(verdict)}).decode())
    else:
        click.echo("\n".join(_verdict_lines(image, verdict)))
    if not verdict.reproducible:
        raise SystemExit(1)


def _verdict_lines(image: Image, verdict: "Verdict") -> list[str]:
    words = {True: "the same", False: "DIFFERENT"}
    picture = words[verdict.same_picture] if image.simulated else "not compared (renderers differ)"
    content = {None: "not locked", True: "as locked", False: "NOT AS LOCKED"}[verdict.content]
    return [
        f"{image.name}: {'reproducible' if verdict.reproducible else 'NOT REPRODUCIBLE'}",
        f"  hierarchy {words[verdict.same_hierarchy]}: {verdict.first.hierarchy}",
        f"  picture   {picture}: {verdict.first.picture}",
        f"  content   {content}",
    ]


def _runnable(image: Image) -> Image:
    """A real image with its emulator by absolute path, from the SDK that ANDROID_HOME names."""
    if image.simulated:
        return image
    named = os.environ.get("ANDROID_HOME") or os.environ.get("ANDROID_SDK_ROOT")
    if not named:
        fail(f"{image.name} is a real image and ANDROID_HOME names no SDK", "paper images run without one")
    return msgspec.structs.replace(image, command=(str(Path(named) / image.command[0]), *image.command[1:]))


async def _spawn(command: Sequence[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    silent = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        *command, stdin=silent, stdout=silent, stderr=silent, env=dict(environment)
    )


@images.command()
@click.argument("name")
@click.argument("avd")
@lock_option
@click.option("--avd-home", type=click.Path(path_type=Path, file_okay=False), help="Where.  [default: in LOMI_HOME]")
@click.option("--replace", is_flag=True, help="Write the two files of an existing AVD anew.")
def create(name: str, avd: str, lock_file: Path, avd_home: Path | None, replace: bool) -> None:
    """Make an AVD named AVD of the image NAME, for an emulator that you start yourself."""
    from emulator_images.avd_files import AvdExistsError, BadAvdNameError, create_avd
    from lomi.disk.home import state_home

    known, _ = _known(lock_file)
    image = _chosen(known, name)
    place = (avd_home or state_home(os.environ) / "devices" / "avd").absolute()
    try:
        made = create_avd(image, place, avd, replace=replace)
    except BadAvdNameError as error:
        fail(str(error))
    except AvdExistsError as error:
        fail(str(error), "--replace writes it anew")
    except OSError as error:
        fail(f"{place} can't be written: {error.strerror}", "--avd-home names another folder")
    click.echo(str(made))


def images_unknown(names: Iterable[str]) -> list[str]:
    """A fault in words for each name that no image has."""
    images, faults = load_images(), []
    for name in names:
        try:
            find_image(images, name)
        except UnknownImageError as unknown:
            faults.append(f"no image is named {name!r}; known are {', '.join(unknown.known)}")
    return faults
