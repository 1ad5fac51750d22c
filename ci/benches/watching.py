"""A lab run with what it took: processor time of all its processes, and the memory of each kind of them."""

import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benches.stdio import BenchFailedError

_PAUSE_S = 2.0
_KINDS = (("broker", b"\0up\0--headless"), ("phone", b"emulator_images.paper"), ("test", b"lomi.lab.witness"))


@dataclass(frozen=True, slots=True)
class Watched:
    """What a run took: seconds, seconds of processors, and MiB of each process by kind, at its largest."""

    seconds: float
    cpu_s: float
    mib: dict[str, list[float]]


def watched(command: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> Watched:
    """Run a command to its end and look at it and its descendants every two seconds.

    Raises:
        BenchFailedError: it failed, or no process of some kind was seen.
    """
    before, began = _cpu_s(), time.perf_counter()
    largest: dict[int, tuple[str, float]] = {}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said)
        while True:
            try:
                process.wait(_PAUSE_S)
                break
            except subprocess.TimeoutExpired:
                for pid, kind, mib in _looked(process.pid):
                    largest[pid] = (kind, max(mib, largest.get(pid, ("", 0.0))[1]))
        seconds = time.perf_counter() - began
        said.seek(0)
        if process.returncode:
            told = said.read().decode("utf-8", "replace")[-600:]
            raise BenchFailedError(f"{' '.join(command)}: exit {process.returncode}: {told}")
    mib = {name: [each for kind, each in largest.values() if kind == name] for name, _ in _KINDS}
    if not all(mib.values()):
        raise BenchFailedError(f"no process of some kind was seen within {seconds:.0f} s: {mib}")
    return Watched(seconds, _cpu_s() - before, mib)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _looked(root: int) -> Iterable[tuple[int, str, float]]:
    """Descendants of a known kind, with their share of memory in MiB."""
    parents = {int(place.name): _parent(place) for place in Path("/proc").glob("[0-9]*")}
    for pid in parents:
        above = pid
        while above not in (root, 0, 1):
            above = parents.get(above, 0)
        if above != root:
            continue
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            continue
        kind = next((name for name, word in _KINDS if word in line), None)
        found = re.search(r"^Pss: +(\d+) kB", rollup, re.MULTILINE)
        if kind is not None and found is not None:
            yield pid, kind, int(found[1]) / 1024


def _parent(place: Path) -> int:
    try:
        return int((place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0
