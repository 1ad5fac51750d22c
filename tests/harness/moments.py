"""A signal to a Python program at a moment that is counted, not timed: the same one on any machine."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

SITE = """
import os, sys

wanted = os.environ.pop("LOMI_TEST_SIGNAL_AT", "")
if wanted:
    import atexit, signal
    from pathlib import Path

    number, at, told = wanted.split(":", 2)
    number, at, seen = int(number), int(at), 0

    def count(frame, event, argument):
        global seen
        if not seen and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), number)

    sys.setprofile(count)
    atexit.register(lambda: (sys.setprofile(None), Path(told).write_text(str(seen))))
"""


AT_IMPORT = """
import os, sys

class Watch:
    def find_spec(name, path, target=None):
        if name == "{module}":
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Watch)
"""


def signalled_at(
    environment: Mapping[str, str], place: Path, at: int, number: signal.Signals = signal.SIGINT
) -> dict[str, str]:
    """An environment in which a Python program sends itself a signal at its `at`-th call or return; 0 is never.

    Counted in its main thread, from when it handles SIGTERM, which is when it claims to end in good order. Its children
    have none of it. How many there were in all is in `calls` of this folder at its end.
    """
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(SITE)
    path = os.pathsep.join(filter(None, (str(place), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path, "LOMI_TEST_SIGNAL_AT": f"{number:d}:{at}:{place / 'calls'}"}


def signalled_import(
    environment: Mapping[str, str], place: Path, module: str, number: signal.Signals = signal.SIGINT
) -> dict[str, str]:
    """An environment in which a Python program sends itself a signal when it first imports this module."""
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(AT_IMPORT.format(module=module, number=int(number)))
    path = os.pathsep.join(filter(None, (str(place), environment.get("PYTHONPATH"))))
    return {**environment, "PYTHONPATH": path}


def calls(place: Path) -> int:
    """How many calls and returns the last program counted."""
    return int((place / "calls").read_text())


def carriers(tag: str) -> list[str]:
    """The command lines of living processes whose environment holds this text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if tag.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return found
