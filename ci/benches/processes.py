"""What processes use, read from /proc."""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

_MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ (\S+ \d+)[^\n]*\n((?:[A-Z][A-Za-z_]*:[^\n]*\n?)+)", re.MULTILINE)
_HELD = re.compile(r"^(Rss|Anonymous):\s+(\d+)", re.MULTILINE)
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def family(roots: Iterable[int]) -> Iterator[int]:
    """The processes and all below them."""
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        yield pid
        for listed in Path(f"/proc/{pid}").glob("task/*/children"):
            try:
                waiting += [int(child) for child in listed.read_text().split()]
            except OSError:
                continue


def tree_mib(roots: Iterable[int]) -> float:
    """Resident MiB of processes and all below them: what each holds alone, and every mapped file once.

    Unlike the proportional set size it does not fall when strangers map the same files, as other browsers do here.
    """
    alone = 0
    files: dict[str, int] = {}
    for pid in family(roots):
        try:
            text = Path(f"/proc/{pid}/smaps").read_text()
        except OSError:
            continue
        mapped: dict[str, int] = defaultdict(int)
        for head, body in _MAPPING.findall(text):
            held = {name: int(kib) for name, kib in _HELD.findall(body)}
            shared = held["Rss"] - held["Anonymous"]
            alone += held["Anonymous"]
            mapped[head] += shared
        for file, kib in mapped.items():
            files[file] = max(files.get(file, 0), kib)
    return (alone + sum(files.values())) / 1024


def rss_kib(pid: int) -> int:
    """Resident KiB of one process."""
    return _status(Path(f"/proc/{pid}/status"), "VmRSS")


def descriptors(pid: int) -> int:
    """Open descriptors of one process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def cpu_s(pid: int) -> float:
    """Seconds of computing of one process so far, all its threads."""
    # schedstat counts nanoseconds; stat only whole ticks.
    try:
        return sum(int(p.read_text().split()[0]) for p in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except OSError:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


def wakings(pid: int) -> int:
    """How often threads of the process waited and woke so far."""
    return sum(_status(path, "voluntary_ctxt_switches") for path in Path(f"/proc/{pid}/task").glob("*/status"))


def _status(path: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", path.read_text(), re.MULTILINE)
    return int(found[1]) if found else 0
