"""A person's own SDK, read only, and Google's tools as they are found in one: judged by files, never by exit codes."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devices.sdk.catalogue import parse_local_package, revision_text
from devices.sdk.faults import ManageRefused, SetupFailed
from devices.world import OutputTail, World

_DEPTH = 5
_MAX_XML = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """An installed package as its `package.xml` tells it."""

    path: str
    version: str
    name: str
    folder: Path


@dataclass(frozen=True, slots=True)
class FrontEnds:
    """The tools an SDK has, by absolute path; None for one it lacks."""

    sdkmanager: Path | None
    avdmanager: Path | None
    android: Path | None
    emulator: Path | None


def installed_in(sdk: Path) -> tuple[Found, ...]:
    """The packages of an SDK, by their own `package.xml`, in path order; blocking, reads only."""
    found: dict[str, Found] = {}
    for root, folders, files in os.walk(sdk):
        here = Path(root)
        if len(here.relative_to(sdk).parts) >= _DEPTH or here.name in {".temp", "licenses"}:
            folders.clear()
        if "package.xml" in files:
            folders.clear()
            document = here / "package.xml"
            read = parse_local_package(document.read_bytes()) if document.stat().st_size <= _MAX_XML else None
            if read is not None:
                found[read[0]] = Found(read[0], revision_text(read[1]), read[2], here)
    return tuple(found[path] for path in sorted(found))


def front_ends(sdk: Path) -> FrontEnds:
    """The tools below an SDK; the newest numbered command-line tools after `latest`; blocking."""
    bins = [sdk / "cmdline-tools" / "latest" / "bin"]
    bins += sorted((sdk / "cmdline-tools").glob("[0-9]*/bin"), reverse=True)
    bins += [sdk / "tools" / "bin"]

    def tool(name: str, *places: Path) -> Path | None:
        return next((place / name for place in places if os.access(place / name, os.X_OK)), None)

    return FrontEnds(
        tool("sdkmanager", *bins),
        tool("avdmanager", *bins),
        tool("android", *bins, sdk / "bin"),
        tool("emulator", sdk / "emulator"),
    )


async def install_with_tool(
    sdk: Path, tools: FrontEnds, package: str, *, environment: Mapping[str, str], world: World, within: float = 3600.0
) -> Found:
    """Let Google's own tool install a package whose licence was agreed to; what is on disk afterwards decides.

    The `android` CLI is preferred, `sdkmanager` is its deprecated elder. Their exit codes are not believed.

    Raises:
        SetupFailed: reason install_failed with the tool's last words.
    """
    if tools.android is not None:
        argv = [str(tools.android), f"--sdk={sdk}", "sdk", "install", package.replace(";", "/")]
    elif tools.sdkmanager is not None:
        argv = [str(tools.sdkmanager), f"--sdk_root={sdk}", "--install", package]
    else:
        raise SetupFailed("install_failed", "the SDK has neither android nor sdkmanager")
    words = await _run(argv, environment, sdk, world, within)
    for found in await asyncio.to_thread(installed_in, sdk):
        if found.path == package:
            return found
    raise SetupFailed("install_failed", f"{package} is not on disk", effect="unknown", evidence=words)


async def create_with_tool(
    sdk: Path,
    tools: FrontEnds,
    avd_home: Path,
    *,
    name: str,
    image: str,
    device: str,
    environment: Mapping[str, str],
    world: World,
    within: float = 120.0,
) -> Path:
    """Let avdmanager make an AVD; its question about a custom hardware profile is answered no.

    Raises:
        ManageRefused: reason avd_failed with the tool's last words; what is on disk decides.
    """
    if tools.avdmanager is None:
        raise ManageRefused("avd_failed", "the SDK has no avdmanager")
    asked = [str(tools.avdmanager), "create", "avd", "-n", name, "-k", image, "-d", device, "--force"]
    argv = ["/bin/sh", "-c", 'echo no | "$0" "$@"', *asked]
    words = await _run(argv, {**environment, "ANDROID_AVD_HOME": str(avd_home)}, sdk, world, within)
    config = avd_home / f"{name}.avd" / "config.ini"
    if not config.is_file() or not (avd_home / f"{name}.ini").is_file():
        raise ManageRefused("avd_failed", "no AVD is on disk", effect="unknown", evidence=words)
    return config


async def _run(argv: list[str], environment: Mapping[str, str], directory: Path, world: World, within: float) -> str:
    async with OutputTail() as tail:
        try:
            child = await world.spawn(argv, environment=environment, output=tail.child_end, directory=directory)
        except OSError as broken:
            raise SetupFailed("install_failed", str(broken)) from broken
        tail.handed_over()
        try:
            async with asyncio.timeout(within):
                await child.wait()
        except TimeoutError:
            pass
        finally:
            if child.returncode is None:
                os.killpg(child.pid, 9)
                await child.wait()
        return tail.text()
