"""What the device says about its display, windows, crashes and rotation: small parsers of shell answers."""

import re
from dataclasses import dataclass

_VIEWPORT = re.compile(r"DisplayViewport\{type=INTERNAL[^}]*?orientation=(\d)")
_ANY_VIEWPORT = re.compile(r"orientation=(\d)")
_SIZE = re.compile(r"(Physical|Override) size: (\d+)x(\d+)")
_DISPLAY = re.compile(r"Display Power: state=(\w+)|mWakefulness=(\w+)|mScreenState=(\w+)")
_FRAMES = re.compile(r"^app: state=(?P<state>\w+) VSyncState=\{[^}\n]*\bcount=(?P<count>\d+)", re.MULTILINE)
_FATAL = re.compile(r"FATAL EXCEPTION: (?P<thread>.*)")
_PROCESS = re.compile(r"Process: (?P<package>[\w.:]+), PID: (?P<pid>\d+)")
_NATIVE = re.compile(r"pid: (?P<pid>\d+), tid: \d+(?:, name: .*?)?\s+>>> (?P<package>.+?) <<<")
_THREADTIME = re.compile(r"^\d\d-\d\d \d\d:\d\d:\d\d\.\d+ +(?P<pid>\d+) ")
_ANR = re.compile(r"ANR in (?P<package>[\w.]+)")

ROTATION_LINE = "dumpsys display | grep -E 'DisplayViewport|orientation='"
POWER_LINE = "dumpsys power | grep -E 'mWakefulness=|Display Power'"
DRAWING_LINE = "getprop debug.hwui.drawing_enabled"
SECURE_LINE = "dumpsys window windows | grep -E 'mCurrentFocus|Window #|[^a-z]fl='"
CRASH_LINE = "logcat -d -b crash -v threadtime -t 200"


@dataclass(frozen=True, slots=True)
class Crash:
    """An application that crashed or stopped answering."""

    kind: str
    package: str
    pid: int
    headline: str


FRAMES = ("dumpsys SurfaceFlinger --events", "VSyncState=|VSyncRequest::(Single|Periodic)")
"""The command that tells of frames, and what of it is wanted."""


def frames_when_idle(text: str) -> int | None:
    """How many frames were shown when no view waits for another; None when one does, or the device does not say."""
    told = _FRAMES.search(text)
    return None if told is None or told["state"] != "Idle" or "VSyncRequest::" in text else int(told["count"])


def rotation_of(text: str) -> int:
    """Quarter turns of the internal display, 0 when the dump does not say."""
    match = _VIEWPORT.search(text) or _ANY_VIEWPORT.search(text)
    return int(match[1]) % 4 if match else 0


def size_of(text: str) -> tuple[int, int] | None:
    """The effective display size of `wm size`: an override wins."""
    sizes = {kind: (int(width), int(height)) for kind, width, height in _SIZE.findall(text)}
    return sizes.get("Override") or sizes.get("Physical")


def display_is_off(text: str) -> bool | None:
    """Whether the display is off; None when the dump does not say."""
    words = [word for match in _DISPLAY.finditer(text) for word in match.groups() if word]
    if not words:
        return None
    return any(word in {"OFF", "Asleep", "Dozing"} for word in words)


def is_secure(text: str) -> bool:
    """Whether a window of the dump forbids capture, by name or by the bit of an old dump's number."""
    for flags in re.findall(r"\bfl=([^\n]*)", text):
        if "SECURE" in re.findall(r"[A-Z_]+", flags):
            return True
        if (number := re.match(r"#?([0-9a-fA-F]{5,8})\b", flags)) and int(number[1], 16) & 0x2000:
            return True
    return False


def crashes_in(text: str) -> tuple[Crash, ...]:
    """Crashes and ANRs told by a crash log, in order."""
    found: list[Crash] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if match := _PROCESS.search(line):
            headline = next(
                (_message(later) for later in lines[number + 1 : number + 3] if ": " in later), "unknown exception"
            )
            found.append(Crash("java", match["package"], int(match["pid"]), headline[:200]))
        elif match := _NATIVE.search(line):
            package = match["package"].rpartition("/")[2] or match["package"]
            later = lines[number + 1 : number + 4]
            signal = next((_message(one) for one in later if "signal " in one), "native crash")
            found.append(Crash("native", package, int(match["pid"]), signal[:200]))
        elif match := _ANR.search(line):
            found.append(Crash("anr", match["package"], 0, _message(line)[:200]))
    return tuple(found)


def crash_entry(text: str, process_id: int) -> tuple[str, ...]:
    """The lines of a crash log that are about one process: its own, and those of the one that reports its fault."""
    writers = {process_id}
    lines = text.splitlines()
    for line in lines:
        told = _NATIVE.search(line)
        if told is not None and int(told["pid"]) == process_id and (stamp := _THREADTIME.match(line)):
            writers.add(int(stamp["pid"]))
    stamps = ((line, _THREADTIME.match(line)) for line in lines)
    return tuple(line for line, stamp in stamps if stamp is not None and int(stamp["pid"]) in writers)


def _message(line: str) -> str:
    """The message part of a threadtime line: what follows the tag."""
    match = re.match(r"^\S+ +\S+ +\d+ +\d+ \w [^:]*: ?(.*)$", line)
    return (match[1] if match else line).strip()
