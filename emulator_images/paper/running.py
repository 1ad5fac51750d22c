"""The file `pid_<PID>.ini` by which tools find a running emulator."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emulator_images.paper.avd import Avd

VERSION = "36.5.11"
BUILD = "paper"


class NoRunningDirectoryError(Exception):
    """Raised when the discovery directory cannot be made; the text is the emulator's."""


@contextmanager
def announced(
    directory: Path, avd: Avd, *, console_port: int, adb_port: int, command_line: list[str], keep: bool = False
) -> Iterator[Path]:
    """Keep the discovery file in place while the phone runs; `keep` leaves it behind, as a killed emulator does.

    Raises:
        NoRunningDirectoryError: the directory cannot be made.
    """
    path = directory / f"pid_{os.getpid()}.ini"
    pairs = {
        "port.serial": str(console_port),
        "port.adb": str(adb_port),
        "avd.name": avd.label,
        "avd.id": avd.name,
        "avd.dir": str(avd.directory),
        "cmdline": " ".join(f'"{word}"' for word in command_line),
        "emulator.version": VERSION,
        "emulator.build": BUILD,
        "lomi.simulated": "true",
    }
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NoRunningDirectoryError(f"Unable to create {directory}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write("".join(f"{key}={value}\n" for key, value in pairs.items()))
    try:
        yield path
    finally:
        if not keep:
            with suppress(FileNotFoundError):
                path.unlink()
