"""The programs that Lomi drives: Chromium, adb, and the SDK of real phones."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from browser.choice import BROWSER, CHROMIUM, BrowserChoiceError, browser_choice
from browser.process import find_engine
from devices.adb.server import bundled_adb
from lomi.cli.checks.finding import LONGER, Finding, Place

_SHARE = 0.75
"""How much of the patience one program gets: its silence is to be told, too."""
_PYTHON = shlex.quote(sys.executable)
ENGINE_CURE = f"{_PYTHON} -m playwright install --with-deps chromium"


def _first_line(command: Sequence[str], place: Place) -> str:
    """What a program says of itself.

    Raises:
        OSError: it can't be run.
        subprocess.SubprocessError: it failed, or took too long.
    """
    wait_s = _SHARE * place.patience_s
    ran = subprocess.run(command, capture_output=True, timeout=wait_s, check=True, stdin=subprocess.DEVNULL)
    return (ran.stdout.decode(errors="replace").splitlines() or [""])[0].strip()


def chromium(place: Place) -> tuple[Finding, ...]:
    """Whether pages can be opened, and whether the engine keeps its own sandbox."""
    try:
        choice = browser_choice(place.environment)
    except BrowserChoiceError as error:
        return (Finding(name="chromium", state="problem", said=str(error), cure=f"unset {BROWSER} {CHROMIUM}"),)
    engine = find_engine(headed=choice.headed, chosen=choice.executable, environment=place.environment)
    if engine is None:
        said = "none is installed: no page can be opened"
        return (Finding(name="chromium", state="problem", said=said, cure=ENGINE_CURE),)
    try:
        said = _first_line((str(engine), "--version"), place)
    except (OSError, subprocess.CalledProcessError) as error:
        cure = f"{shlex.quote(str(engine))} --version"
        return (Finding(name="chromium", state="problem", said=f"{engine} can't be run: {_why(error)}", cure=cure),)
    except subprocess.TimeoutExpired as late:
        said = _slow(late)
    found = (Finding(name="chromium", state="ok", said=f"{said} at {engine}"),)
    if os.geteuid() != 0:
        return found
    return (
        *found,
        Finding(
            name="sandbox",
            state="warning",
            said="as root the engine's own sandbox is off",
            cure="runuser -u ANOTHER-USER -- lomi up",
        ),
    )


def _why(error: OSError | subprocess.CalledProcessError) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"exit code {error.returncode}"


def _slow(late: subprocess.TimeoutExpired) -> str:
    return f"did not tell its version within {late.timeout:g} s"


def adb(place: Place) -> tuple[Finding, ...]:
    """Whether the adb that Lomi brings can be run; PATH is never searched."""
    binary = bundled_adb()
    cure = f"{_PYTHON} -m pip install --force-reinstall --no-deps adbutils"
    if not binary.exists():
        said = "the adbutils package of this environment brings none for this system: no phone can be driven"
        return (Finding(name="adb", state="problem", said=said, cure=cure),)
    try:
        said = _first_line((str(binary), "version"), place)
    except (OSError, subprocess.CalledProcessError) as error:
        return (Finding(name="adb", state="problem", said=f"{binary} can't be run: {_why(error)}", cure=cure),)
    except subprocess.TimeoutExpired as late:
        return (Finding(name="adb", state="warning", said=f"{binary} {_slow(late)}", cure=LONGER),)
    return (Finding(name="adb", state="ok", said=f"{said} at {binary}"),)


def sdk(place: Place) -> tuple[Finding, ...]:
    """Whether real images have an emulator to run them: the user's SDK, or Lomi's private one."""
    named = place.environment.get("ANDROID_HOME") or place.environment.get("ANDROID_SDK_ROOT")
    if named is None:
        said = "ANDROID_HOME names none: only paper (simulated) phones run here"
        return (Finding(name="sdk", state="note", said=said, cure='export ANDROID_HOME="$HOME/Android/Sdk"'),)
    emulator = Path(named) / "emulator" / "emulator"
    if not os.access(emulator, os.X_OK):
        said = f"{named} has no emulator: only paper (simulated) phones run here"
        cure = f"{shlex.quote(str(Path(named) / 'cmdline-tools/latest/bin/sdkmanager'))} emulator platform-tools"
        return (Finding(name="sdk", state="warning", said=said, cure=cure),)
    return (Finding(name="sdk", state="ok", said=f"emulator at {emulator}; unverified until a real image has booted"),)
