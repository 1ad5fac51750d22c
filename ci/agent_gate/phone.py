"""A simulated phone for a tool server that is not Lomi: an emulator process, and an adb server that knows it alone."""

import asyncio
import os
import random
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import adbutils

from agent_gate.draw import write_apps
from agent_gate.judge import read_journal
from agent_gate.stage import StageError
from emulator_images.avd_files import create_avd
from emulator_images.images import find_image, load_images
from lomi.demo.place import IMAGE

ADB = Path(adbutils.__file__).parent / "binaries" / "adb"
NAME = "gate"
BOOT_S = 60.0
END_S = 5.0
_EVEN = range(20_000, 31_000, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPhone:
    """A booted phone. `environment` leads adb and what uses it to this phone's own server."""

    serial: str
    journal: Path
    environment: Mapping[str, str]


def _environment(root: Path, port: int) -> dict[str, str]:
    sdk = root / "sdk"
    return {
        "HOME": str(root),  # where such servers keep the socket of a daemon that would outlive this phone
        "ANDROID_USER_HOME": str(root),
        "ANDROID_EMULATOR_HOME": str(root),
        "ANDROID_AVD_HOME": str(root / "avd"),
        "ANDROID_HOME": str(sdk),
        "XDG_RUNTIME_DIR": str(root / "run"),
        "ANDROID_ADB_SERVER_PORT": str(port),
        "ADB_VENDOR_KEYS": str(root / "adbkey"),
        "ANDROID_ADB_LOG_PATH": str(root / "adb.log"),
        "ADB_MDNS": "0",
        "ADB_USB": "0",
        "ADB_EMU": "0",
        "ADB_LOCAL_TRANSPORT_MAX_PORT": "1",
        "PATH": f"{sdk / 'platform-tools'}{os.pathsep}{os.environ.get('PATH', '')}",
        "PAPER_APPS": str(root / "apps"),
    }


def _lay_out(root: Path, words: Mapping[str, str]) -> None:
    """The folders, the apps, an AVD, and a platform-tools folder that holds the adb of the adbutils wheel."""
    for name in ("avd", "run", "sdk/platform-tools"):
        (root / name).mkdir(parents=True)
    write_apps(words, root / "apps")
    (root / "sdk" / "platform-tools" / "adb").symlink_to(ADB)
    create_avd(find_image(load_images(), IMAGE), root / "avd", NAME)


def free_pairs(count: int) -> list[int]:
    """Even ports, each free together with the next one; none that the system gives to whoever asks for any."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_EVEN, len(_EVEN)):
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise StageError("no two neighbouring ports are free")


@asynccontextmanager
async def opened_phone(given: Mapping[str, str], words: Mapping[str, str]) -> AsyncIterator[OwnPhone]:
    """Boot a phone with the apps that have these words; it, its adb server and its files end with the context.

    Raises:
        StageError: it did not boot.
    """
    root = Path(tempfile.mkdtemp(prefix="lomi-gate-phone-"))
    try:
        await asyncio.to_thread(_lay_out, root, words)
        console, server = free_pairs(2)
        cache = {"npm_config_cache": str(Path.home() / ".npm")}  # what npx has fetched stays fetched
        environment = {**cache, **given, **_environment(root, server)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        keys = await _started([str(ADB), "keygen", str(root / "adbkey")], environment)
        await keys.wait()
        async with _running([str(ADB), "nodaemon", "server"], environment):
            await _listening(server)
            image = find_image(load_images(), IMAGE)
            arguments = [f"@{NAME}", "-port", str(console), *image.boot_arguments()]
            async with _running([sys.executable, "-m", "emulator_images.paper", *arguments], environment):
                journal = root / "avd" / f"{NAME}.avd" / "paper-journal.jsonl"
                await _booted(journal, f"emulator-{console}", environment)
                yield OwnPhone(serial=f"emulator-{console}", journal=journal, environment=environment)
    finally:
        await asyncio.to_thread(shutil.rmtree, root, ignore_errors=True)


async def _started(command: list[str], environment: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command,
        env=dict(environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


@asynccontextmanager
async def _running(command: list[str], environment: Mapping[str, str]) -> AsyncIterator[None]:
    process = await _started(command, environment)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(END_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _listening(port: int) -> None:
    async with asyncio.timeout(BOOT_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def _booted(journal: Path, serial: str, environment: Mapping[str, str]) -> None:
    """Wait until the phone says that it is booted and its adb server lets a shell in."""
    try:
        async with asyncio.timeout(BOOT_S):
            while True:
                if any(entry.get("event") == "booted" for entry in read_journal(journal)):
                    break
                await asyncio.sleep(0.05)
            waiting = await _started([str(ADB), "-s", serial, "wait-for-device", "shell", "true"], environment)
            await waiting.wait()
    except TimeoutError as error:
        raise StageError(f"the phone did not boot within {BOOT_S:.0f} s") from error
