"""Proves that an image is reproducible: two boots of fresh AVDs must show the same hierarchy and, on paper, picture."""

import asyncio
import hashlib
import os
import re
import socket
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from emulator_images.avd_files import create_avd
from emulator_images.direct_adb import DirectAdb, NoAnswerError
from emulator_images.images import Image
from emulator_images.locks import paper_digest

_CLOCK = re.compile(rb"\b\d{1,2}:\d{2}\b")
_CONSOLES = range(31000, 32766, 2)
"""Below the ports that the kernel gives to whoever connects: one of those is soon taken before an emulator binds it."""
Spawn = Callable[[Sequence[str], Mapping[str, str]], Awaitable[asyncio.subprocess.Process]]


@dataclass(frozen=True, slots=True)
class Probe:
    """What one boot showed: SHA-256 of the hierarchy and of the picture, and the boot's id."""

    hierarchy: str
    picture: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Two boots side by side. `content` tells whether the content is what the image is locked to (None: unlocked)."""

    image: str
    first: Probe
    second: Probe
    content: bool | None

    @property
    def same_hierarchy(self) -> bool:
        """Whether both boots showed the same hierarchy."""
        return self.first.hierarchy == self.second.hierarchy

    @property
    def same_picture(self) -> bool:
        """Whether both boots showed the same picture, byte for byte."""
        return self.first.picture == self.second.picture

    @property
    def reproducible(self) -> bool:
        """What the image promises: the hierarchy, on simulated phones the picture too, and the locked content."""
        return self.same_hierarchy and self.same_picture and self.content is not False


class BootFailedError(Exception):
    """Raised when the emulator ended or did not become ready in time; carries what it printed last."""


async def verify(image: Image, *, environment: Mapping[str, str], spawn: Spawn, directory: Path) -> Verdict:
    """Boot the image twice in fresh AVDs below `directory` and compare.

    On real images the picture is not compared: renderers differ; both probes carry the picture of the first.

    Raises:
        BootFailedError: a boot failed.
    """
    probes: list[Probe] = []
    for number in (1, 2):
        with tempfile.TemporaryDirectory(prefix=f"boot{number}-", dir=directory) as home:
            probes.append(await _boot_once(image, Path(home), environment, spawn))
    first, second = probes
    if not image.simulated:
        second = Probe(second.hierarchy, first.picture, second.boot_id)
    content = None if image.checksum is None or not image.simulated else image.checksum == paper_digest()
    return Verdict(image.name, first, second, content)


async def _boot_once(image: Image, home: Path, environment: Mapping[str, str], spawn: Spawn) -> Probe:
    create_avd(image, home, "verify")
    console_port, adb_port = _free_pair(os.getpid())
    places = {
        "HOME": str(home),
        "ANDROID_USER_HOME": str(home),
        "ANDROID_EMULATOR_HOME": str(home),
        "ANDROID_AVD_HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
    }
    command = (
        *image.command,
        "-avd",
        "verify",
        "-ports",
        f"{console_port},{adb_port}",
        "-skip-adb-auth",
        *image.boot_arguments(),
    )
    process = await spawn(command, {**environment, **places})
    try:
        async with asyncio.timeout(image.ready.boot_seconds):
            adb = await _ready(image, process, adb_port)
            return await _probe(image, adb)
    except TimeoutError as error:
        raise BootFailedError(f"{image.name} was not ready after {image.ready.boot_seconds} s") from error
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _ready(image: Image, process: asyncio.subprocess.Process, port: int) -> DirectAdb:
    adb = DirectAdb("127.0.0.1", port)
    good = 0
    while good < image.ready.stable_polls:
        if process.returncode is not None:
            raise BootFailedError(f"{image.name}: the emulator ended with code {process.returncode}")
        await asyncio.sleep(image.ready.poll_seconds)
        question = "getprop sys.boot_completed; getprop init.svc.bootanim; " + "; ".join(
            f"service check {name}" for name in image.ready.services
        )
        try:
            answer = (await adb.run(question)).decode("utf-8", "replace").split("\n")
        except NoAnswerError:
            good = 0
            continue
        booted = [line.strip() for line in answer[:2]] == ["1", "stopped"]
        found = [line for line in answer[2:] if line.strip().endswith(": found")]
        good = good + 1 if booted and len(found) == len(image.ready.services) else 0
    return adb


async def _probe(image: Image, adb: DirectAdb) -> Probe:
    boot_id = (await adb.run("cat /proc/sys/kernel/random/boot_id")).decode("ascii", "replace").strip()
    hierarchy = await adb.run("uiautomator dump /dev/tty")
    if not image.simulated:
        hierarchy = _CLOCK.sub(b"--:--", hierarchy)
    picture = await adb.run("screencap -p")
    return Probe(hashlib.sha256(hierarchy).hexdigest(), hashlib.sha256(picture).hexdigest(), boot_id)


def _free_pair(first: int) -> tuple[int, int]:
    """Two neighbouring ports, the first one even, that nobody has; looked for from the `first` pair on, round about."""
    for step in range(len(_CONSOLES)):
        console = _CONSOLES[(first + step) % len(_CONSOLES)]
        with socket.socket() as even, socket.socket() as odd:
            try:
                even.bind(("127.0.0.1", console))
                odd.bind(("127.0.0.1", console + 1))
            except OSError:
                continue
            return console, console + 1
    raise BootFailedError("no two neighbouring ports are free")
