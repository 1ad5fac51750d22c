"""Which processes an app had: a package's log outlives its process, and only a number leads to it."""

from collections import OrderedDict

from devices.state import crashes_in

_MOST_PACKAGES = 64
_MOST_PIDS = 64
"""More than a crash log tells of, so that none of its processes is forgotten and then taken for a new one."""


class AppProcesses:
    """The main processes that packages were seen to have, in one generation of one phone."""

    def __init__(self) -> None:
        self._generation = ""
        self._seen: OrderedDict[str, list[int]] = OrderedDict()

    def note(self, generation: str, package: str, process_id: int) -> None:
        """A package was seen with a process; numbers of another generation are forgotten."""
        if generation != self._generation:
            self._generation = generation
            self._seen.clear()
        known = self._seen.setdefault(package, [])
        if process_id not in known:
            known.append(process_id)
            del known[:-_MOST_PIDS]
        self._seen.move_to_end(package)
        while len(self._seen) > _MOST_PACKAGES:
            self._seen.popitem(last=False)

    def note_crashes(self, generation: str, package: str, crash_log: str) -> None:
        """Note the processes of a package that `crash_log` tells of."""
        for crash in crashes_in(crash_log):
            if crash.package == package and crash.pid:
                self.note(generation, package, crash.pid)

    def note_living(self, generation: str, package: str, process_id: int, crash_log: str) -> None:
        """A package runs as this process now, so whatever `crash_log` tells of was before it."""
        self.note_crashes(generation, package, crash_log)
        self.note(generation, package, process_id)
        known = self._seen[package]
        known.append(known.pop(known.index(process_id)))

    def last(self, generation: str, package: str) -> int | None:
        """The latest process that a package was seen with, None where none was."""
        known = self._seen.get(package) if generation == self._generation else None
        return known[-1] if known else None
