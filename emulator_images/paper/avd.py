"""An AVD on disk: its settings, its locks and the file by which a running one is found."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

LOCK_NAMES = ("hardware-qemu.ini.lock", "multiinstance.lock")
RELEASES = {28: "9", 29: "10", 30: "11", 31: "12", 32: "12", 33: "13", 34: "14", 35: "15", 36: "16"}


class UnknownAvdError(Exception):
    """Raised when no AVD of that name exists; the text is the emulator's."""


class AvdLockedError(Exception):
    """Raised when another process uses the AVD; the text is the emulator's."""


@dataclass(frozen=True, slots=True)
class Avd:
    """A virtual device as its files describe it; pixels and dots per inch for the display."""

    name: str
    directory: Path
    width: int
    height: int
    density: int
    api: int
    abi: str
    ram_mib: int
    data_bytes: int
    hardware_keyboard: bool
    label: str


@dataclass(frozen=True, slots=True)
class AndroidDirectories:
    """Where the emulator's files live, worked out from the environment as the real one does."""

    avd_home: Path
    emulator_home: Path
    running: Path
    console_token: Path


def directories(environment: Mapping[str, str]) -> AndroidDirectories:
    """The directories that `environment` names, with the real emulator's fall-backs."""
    home = Path(environment.get("HOME") or "/")
    user = Path(environment.get("ANDROID_USER_HOME") or home / ".android")
    emulator_home = Path(environment.get("ANDROID_EMULATOR_HOME") or user)
    avd_home = Path(environment.get("ANDROID_AVD_HOME") or emulator_home / "avd")
    runtime = environment.get("XDG_RUNTIME_DIR")
    running = Path(runtime) / "avd" / "running" if runtime else emulator_home / "avd" / "running"
    token_home = emulator_home if environment.get("ANDROID_EMULATOR_HOME") else home
    return AndroidDirectories(avd_home, emulator_home, running, token_home / ".emulator_console_auth_token")


def read_ini(path: Path) -> dict[str, str]:
    """The `key=value` and `key = value` lines of an ini file without sections."""
    pairs = (line.partition("=") for line in path.read_text("utf-8").splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs if not key.lstrip().startswith("#")}


def names(avd_home: Path) -> list[str]:
    """Names of the AVDs in a home, sorted."""
    return sorted(path.stem for path in avd_home.glob("*.ini")) if avd_home.is_dir() else []


def load(avd_home: Path, name: str) -> Avd:
    """Read `NAME.ini` and `NAME.avd/config.ini`.

    Raises:
        UnknownAvdError: either is missing.
    """
    pointer = avd_home / f"{name}.ini"
    try:
        target = read_ini(pointer)
        directory = Path(target.get("path") or avd_home / f"{name}.avd")
        if not directory.is_dir():
            directory = avd_home / f"{name}.avd"
        config = read_ini(directory / "config.ini")
    except OSError as error:
        message = (
            f"Unknown AVD name [{name}], use -list-avds to see valid list.\n"
            f"HOME is defined but there is no file {name}.ini in {avd_home}"
        )
        raise UnknownAvdError(message) from error
    return Avd(
        name=name,
        directory=directory,
        width=_number(config, "hw.lcd.width", 720),
        height=_number(config, "hw.lcd.height", 1280),
        density=_number(config, "hw.lcd.density", 320),
        api=_api(target.get("target") or config.get("target") or ""),
        abi=config.get("abi.type", "x86_64"),
        ram_mib=_number(config, "hw.ramSize", 2048),
        data_bytes=_size(config.get("disk.dataPartition.size", "")),
        hardware_keyboard=config.get("hw.keyboard", "no") == "yes",
        label=config.get("avd.ini.displayname", name),
    )


@contextmanager
def locked(avd: Avd, *, read_only: bool, pretend_stale: bool = False) -> Iterator[None]:
    """Hold both lock files of the AVD; a lock whose owner is dead is taken over, unless told to act as if it lived.

    Raises:
        AvdLockedError: a living process holds a lock.
    """
    if read_only:
        yield
        return
    own = str(os.getpid())
    held: list[Path] = []
    try:
        for name in LOCK_NAMES:
            path = avd.directory / name
            _take(path, own, pretend_stale=pretend_stale)
            held.append(path)
        yield
    finally:
        for path in held:
            with suppress(OSError):
                if path.read_text("ascii") == own:
                    path.unlink()


def _take(path: Path, own: str, *, pretend_stale: bool) -> None:
    for _ in range(8):
        try:
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            owner = _owner(path)
            if pretend_stale or (owner is not None and _alive(owner)):
                break
            with suppress(FileNotFoundError):
                path.unlink()
            continue
        with os.fdopen(descriptor, "w", encoding="ascii") as lock:
            lock.write(own)
        return
    raise AvdLockedError(
        "Running multiple emulators with the same AVD is an experimental feature.\n"
        "Please use -read-only flag to enable this feature."
    )


def _owner(path: Path) -> int | None:
    try:
        text = path.read_text("ascii", "replace").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _number(config: Mapping[str, str], key: str, fallback: int) -> int:
    text = "".join(c for c in config.get(key, "") if c.isdecimal())
    return int(text) if text else fallback


def _size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    digits = text.rstrip("KMGkmgBb")
    if not digits.isdecimal():
        return 6 << 30
    return int(digits) * units.get(text[len(digits) : len(digits) + 1].upper(), 1)


def _api(target: str) -> int:
    digits = target.removeprefix("android-").split(".")[0].split("-")[0]
    return int(digits) if digits.isdecimal() else 36
