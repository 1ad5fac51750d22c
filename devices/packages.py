"""Packages on one phone: who is installed, streamed install with typed failures, launch that proves delivery."""

import asyncio
import re
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from devices.actor.actor import DeviceActor
from devices.actor.life import Host
from devices.adb.shell import Answer, ShellLane, quote
from devices.apk import read_apk
from devices.app_processes import AppProcesses
from devices.faults import ChannelLost, PackageRefused
from devices.state import CRASH_LINE

_PACKAGE = re.compile(r"^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+$")
_ACTIVITY = re.compile(r"^\.?[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*$")
_FAILURE = re.compile(r"Failure \[(?P<code>[A-Z][A-Z0-9_]+)(?::\s*(?P<detail>[^\]]*))?")
_UNRESOLVED = re.compile(
    r"Error: Activity not started|unable to resolve Intent|does not exist|Error type 3", re.IGNORECASE
)
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Version:
    """An installed version: the name people see and the code that orders."""

    name: str
    code: str


@dataclass(frozen=True, slots=True)
class Installed:
    """What an install did."""

    package: str
    before: Version | None
    after: Version | None


@dataclass(frozen=True, slots=True)
class Launched:
    """A delivered launch intent; it proves delivery and nothing more."""

    package: str
    activity: str | None


def check_package(name: str) -> str:
    """The name, if it is a package name and nothing else.

    Raises:
        PackageRefused: reason bad_name.
    """
    if len(name) > 255 or _PACKAGE.fullmatch(name) is None:
        raise PackageRefused("bad_name", "not a package name")
    return name


def check_activity(name: str) -> str:
    """The name, if it is an activity name and nothing else.

    Raises:
        PackageRefused: reason bad_name.
    """
    if len(name) > 512 or _ACTIVITY.fullmatch(name) is None:
        raise PackageRefused("bad_name", "not an activity name")
    return name


def version_in(dump: str, package: str) -> Version | None:
    """The version that `dumpsys package` tells of `package`, None when it is not installed."""
    start = dump.find(f"Package [{package}]")
    if start < 0:
        return None
    following = dump.find("\n  Package [", start + 1)
    block = dump[start : following if following >= 0 else len(dump)]
    code, name = re.search(r"versionCode=(\d+)", block), re.search(r"versionName=(.*)", block)
    return Version(name[1].strip() if name else "", code[1] if code else "")


def verdict_of(output: str) -> tuple[str, str] | None:
    """None for a success, else the installer's code and its words.

    Raises:
        ChannelLost: the installer said neither.
    """
    if match := _FAILURE.search(output):
        return match["code"], (match["detail"] or "").strip()
    if re.search(r"^Success\b", output, re.MULTILINE):
        return None
    raise ChannelLost("channel_lost", "the installer gave no verdict", effect="unknown", evidence=output[-2000:])


class Packages:
    """Package calls of one phone. At most `installs` of the whole fleet run at once."""

    def __init__(self, actor: DeviceActor, host: Host, processes: AppProcesses) -> None:
        self._actor = actor
        self._host = host
        self._processes = processes

    async def version(self, package: str, *, generation: str | None = None) -> Version | None:
        """The installed version, None when the package is not installed.

        Raises:
            PackageRefused: bad_name. NotRunning, ChannelLost: the device cannot be asked.
        """
        _, lanes = self._actor.usable(generation)
        answer = await lanes.look.run(f"dumpsys package {check_package(package)}", within=15.0, limit=8 << 20)
        return version_in(answer.text, package)

    async def install(
        self,
        apk: Path,
        *,
        generation: str | None = None,
        effect: AbstractAsyncContextManager[None] | None = None,
        within: float = 180.0,
    ) -> Installed:
        """Check an APK and stream it into the package installer, keeping the application's data.

        Raises:
            PackageRefused: bad_apk before a byte was sent; install_failed with the installer's code, the installed
                version is unchanged then.
            NotRunning: before a byte was sent. ChannelLost: effect unknown once bytes were sent.
        """
        identity = await asyncio.to_thread(read_apk, apk)
        package, size = identity.package, (await asyncio.to_thread(apk.stat)).st_size
        before = await self.version(package, generation=generation)
        async with self._host.installs:
            running, _ = self._actor.usable(generation)
            service = f"exec:cmd package 'install' '-r' '-S' '{size}'"
            async with (
                self._host.server.client.open(running.identity.ports.serial, service) as stream,
                effect or nullcontext(),
            ):
                output = await self._stream(apk, size, stream.reader, stream.writer, within)
                failed = verdict_of(output)
                if failed is not None:
                    raise PackageRefused(
                        "install_failed", failed[1] or failed[0], fields={"code": failed[0]}, evidence=output[-2000:]
                    )
        return Installed(package, before, await self.version(package, generation=generation))

    async def launch(
        self,
        package: str,
        activity: str | None = None,
        *,
        generation: str | None = None,
        effect: AbstractAsyncContextManager[None] | None = None,
    ) -> Launched:
        """Send the launch intent of an application, or of one exact activity.

        Raises:
            PackageRefused: bad_name, not_installed or no_launcher before anything is sent, not_delivered after it.
            NotRunning, ChannelLost: the device cannot be asked; effect unknown once the intent was sent.
        """
        running, lanes = self._actor.usable(generation)
        check_package(package)
        if activity is None:
            component = await self._launcher(lanes.look, package)
        else:
            component = f"{package}/{check_activity(activity)}"
        line = f"am start -W -a android.intent.action.MAIN -c android.intent.category.LAUNCHER -n {quote(component)}"
        if activity is not None:
            line = f"am start -W -n {quote(component)}"
        self._actor.usable(generation)
        await lanes.act.run(line, within=40.0, effect=effect, check=_delivered)
        await self._note_process(running.identity.generation, lanes.look, package)
        return Launched(package, activity)

    async def _note_process(self, generation: str, lane: ShellLane, package: str) -> None:
        """Note what was launched for its log; the launch stands whether or not the device says it."""
        try:
            told = (await lane.run(f"pidof {package}; echo ~~; {CRASH_LINE}", within=5.0)).text
        except ChannelLost:
            return
        pids, _, crashes = told.partition("~~\n")
        first = pids.split()[:1]
        if first and first[0].isdecimal():
            self._processes.note_living(generation, package, int(first[0]), crashes)

    async def _launcher(self, lane: ShellLane, package: str) -> str:
        answer = await lane.run(
            f"cmd package resolve-activity --brief -c android.intent.category.LAUNCHER {package}", within=15.0
        )
        found = answer.text.strip().splitlines()[-1:] or [""]
        if found[0].startswith(f"{package}/"):
            return found[0]
        installed = await lane.run(f"pm path {package}", within=15.0)
        if not installed.text.startswith("package:"):
            raise PackageRefused("not_installed", f"{package} is not installed")
        raise PackageRefused("no_launcher", f"{package} has nothing to launch")

    async def _stream(
        self, apk: Path, size: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, within: float
    ) -> str:
        """Send exactly `size` bytes and read the verdict; the installer may refuse before it has read all."""
        sent = 0
        try:
            async with asyncio.timeout(within):
                file = await asyncio.to_thread(apk.open, "rb")
                try:
                    while sent < size and (chunk := await asyncio.to_thread(file.read, min(_CHUNK, size - sent))):
                        writer.write(chunk)
                        await writer.drain()
                        sent += len(chunk)
                except ConnectionError:
                    pass
                finally:
                    await asyncio.to_thread(file.close)
                return (await reader.read(65536)).decode("utf-8", "replace") if sent else ""
        except TimeoutError:
            raise ChannelLost("adb_timeout", "no verdict in time", effect="unknown") from None
        except OSError as broken:
            raise ChannelLost("channel_lost", str(broken), effect="unknown") from broken


def _delivered(answer: Answer) -> None:
    """Judge `am start`: a time-out of its wait is a delivered intent, an unresolved or refused one is none."""
    words = answer.words
    if _UNRESOLVED.search(words):
        raise PackageRefused("not_delivered", "the intent resolves to nothing", evidence=words[-2000:])
    if "SecurityException" in words or "Permission Denial" in words:
        raise PackageRefused("not_delivered", "the activity may not be started from outside", evidence=words[-2000:])
    if answer.code == 0 and "Starting: Intent" in answer.text and "Error" not in words:
        return
    raise PackageRefused("not_delivered", "the device did not confirm", effect="unknown", evidence=words[-2000:])
