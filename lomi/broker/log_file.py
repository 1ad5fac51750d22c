"""The broker's log: JSON lines in `LOMI_HOME/logs/broker.jsonl`, private, rotated, and redacted by construction.

A line holds the constant text of our own logging call, never its arguments; ids, codes and numbers come as fields of a
closed list; of an exception its type and places are kept, never its message. So no typed text, token, label or project
path can get in. A library's line tells only who logged, and where. The file is written in a thread: the loop waits for
no disk.
"""

import errno
import logging
import os
import re
import stat
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from queue import Full, Queue
from time import sleep

import msgspec

from lomi.core.log_fields import Value, bound_now, shown
from lomi.disk.private import private_directory
from lomi.disk.refusal import DiskRefusedError, Reason

DIRECTORY, NAME = "logs", "broker.jsonl"
MOST_BYTES = 10 << 20
KEPT = 2
"""Rotated files that stay beside the present one: `broker.jsonl.1` is the newer."""
QUEUED = 10_000
"""Lines that may wait for the disk."""
CLOSE_S = 5.0
"""How long the end waits for room in a full queue."""
_LINGER_S = 0.01
"""How long a line that comes alone waits, and may be lost to a kill."""
_OURS = ("lomi", "devices", "browser", "emulator_images")
_PLACES = 12
_ARGUMENT = re.compile(r"%[-#0 +]*\d*(?:\.\d+)?[sdrifxg]")


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] in _OURS


def _places(error: BaseException) -> list[str]:
    """Where an exception went through: module, line and function, innermost last; never a path of this host."""
    walked = list(traceback.walk_tb(error.__traceback__))[-_PLACES:]
    return [f"{frame.f_globals.get('__name__', '?')}:{line} {frame.f_code.co_name}" for frame, line in walked]


def _exception(error: BaseException) -> dict[str, object]:
    said: dict[str, object] = {"type": type(error).__qualname__, "places": _places(error)}
    if isinstance(error, BaseExceptionGroup):
        said["inner"] = [_exception(inner) for inner in error.exceptions[:4]]
    if error.__cause__ is not None:
        said["cause"] = _exception(error.__cause__)
    return said


class JsonLine(logging.Formatter):
    """One record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Write what may be written of a record."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if _is_ours(record.name):
            line["event"] = _ARGUMENT.sub("…", str(record.msg))
        else:
            line["event"] = "a library logged"
            line["where"] = f"{record.module}:{record.lineno}"
        values: Mapping[str, Value] = getattr(record, "lomi_fields", {})
        line.update(shown({**getattr(record, "lomi_bound", {}), **values}))
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = _exception(record.exc_info[1])
        return msgspec.json.encode(line).decode()


class _Queued(QueueHandler):
    """Takes the bound fields along, since the thread that writes has none of them.

    The queue is bounded: a disk that hangs costs lines, never memory or time, and how many is told afterwards.
    """

    def __init__(self, lines: "Queue[logging.LogRecord | None]") -> None:
        super().__init__(lines)
        self._lines = lines
        self._lost = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        """Put a line into the queue, behind a notice of those that found no room before it."""
        try:
            if self._lost:
                self._lines.put_nowait(_notice("lines were lost: the disk is slow", count=self._lost))
                self._lost = 0
            self._lines.put_nowait(record)
        except Full:
            self._lost += 1

    def tell_lost(self) -> None:
        """Say at the end what nothing said yet; waits for the disk a moment."""
        if self._lost:
            with suppress(Full):
                self._lines.put(_notice("lines were lost: the disk is slow", count=self._lost), timeout=CLOSE_S)

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Leave the record as it is: its arguments are not read."""
        record.lomi_bound = bound_now()
        return record


class _Listener(QueueListener):
    """Waits for room for its own end, which the base class does not; and writes once the answer is out."""

    def __init__(self, lines: "Queue[logging.LogRecord | None]", file: logging.Handler) -> None:
        super().__init__(lines, file)
        self._lines = lines

    def dequeue(self, block: bool) -> logging.LogRecord:
        """The next record; one that comes alone is left for a moment.

        It tells of a call whose answer is on its way just now, and this thread would take the interpreter from it.
        """
        record = super().dequeue(block)
        if self._lines.empty():
            sleep(_LINGER_S)
        return record

    def enqueue_sentinel(self) -> None:
        """Ask the thread to end."""
        self._lines.put(None, timeout=CLOSE_S)


class _PrivateFile(RotatingFileHandler):
    """Opens its file 0600 and follows no link; a full disk costs lines, and nothing else."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(self.baseFilename, flags, 0o600)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid != os.getuid():
            os.close(descriptor)
            raise DiskRefusedError(Reason.NOT_REGULAR)
        os.fchmod(descriptor, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  the base class names it
        """Drop the line."""
        del record


@contextmanager
def opened_log(
    home: Path, *, most_bytes: int = MOST_BYTES, most_queued: int = QUEUED, whole: bool = False
) -> Iterator[None]:
    """Write the process's log lines to the home's log file while inside: ours from `info`, libraries' warnings.

    Warnings go to standard error as well, as redacted, or with `whole` as they are. A log that can't be opened is said
    there, once, and keeps nobody from working.
    """
    root, aloud = logging.getLogger(), logging.StreamHandler(sys.stderr)
    aloud.setLevel(logging.WARNING)
    if not whole:
        aloud.setFormatter(JsonLine())
    root.addHandler(aloud)
    try:
        private_directory(home / DIRECTORY)
        file = _PrivateFile(home / DIRECTORY / NAME, maxBytes=most_bytes, backupCount=KEPT)
    except (OSError, DiskRefusedError) as failure:
        reason = (
            failure.reason.value if isinstance(failure, DiskRefusedError) else errno.errorcode.get(failure.errno or 0)
        )
        root.handle(_notice("the log file can't be written", reason=reason))
        try:
            yield
        finally:
            root.removeHandler(aloud)
        return
    file.setFormatter(JsonLine())
    lines: Queue[logging.LogRecord | None] = Queue(most_queued)
    queued, listener = _Queued(lines), _Listener(lines, file)
    before = {name: logging.getLogger(name).level for name in _OURS}
    for name in _OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    root.addHandler(queued)
    listener.start()
    try:
        yield
    finally:
        root.removeHandler(queued)
        queued.tell_lost()
        listener.stop()
        file.close()
        root.removeHandler(aloud)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)


def _notice(text: str, **values: Value) -> logging.LogRecord:
    record = logging.LogRecord("lomi.broker", logging.WARNING, __file__, 0, text, (), None)
    record.lomi_fields = values
    return record
