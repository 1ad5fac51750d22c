"""Which refs were handed out for which document, and which snapshots a page remembers. Pure."""

from collections import OrderedDict
from collections.abc import Iterable

from browser.errors import StaleRefError, StaleSnapshotError
from browser.values import Node

KEPT_SNAPSHOTS = 8
KEPT_OBSERVATIONS = 32
MOST_REFS = 50_000


class Refs:
    """A ref names one node of one document for ever: its number is never used again in that frame.

    A snapshot id counts while it is among the page's last 8 snapshots or last 32 observations.
    """

    def __init__(self) -> None:
        self._document: dict[str, str] = {}
        self._next: dict[str, int] = {}
        self._snapshots: OrderedDict[str, None] = OrderedDict()
        self._observations: OrderedDict[str, None] = OrderedDict()
        self._counter = 0

    def base(self, frame: str) -> int:
        """The lowest number a new ref of this frame may get."""
        return self._next.get(frame, 1)

    def admit(self, frame: str, document: str, nodes: Iterable[Node], following: int) -> None:
        """Record refs of a document that is about to be shown.

        `following` is the number its world would hand out next.
        """
        for node in nodes:
            self._document.pop(node.ref, None)
            self._document[node.ref] = document
        self._next[frame] = max(self.base(frame), following)
        while len(self._document) > MOST_REFS:  # the oldest go first; their nodes were last shown very long ago
            del self._document[next(iter(self._document))]

    def name(self, *, observation: bool = False) -> str:
        """A fresh snapshot id."""
        self._counter += 1
        name = f"s{self._counter}"
        kept, most = (self._observations, KEPT_OBSERVATIONS) if observation else (self._snapshots, KEPT_SNAPSHOTS)
        kept[name] = None
        while len(kept) > most:
            kept.popitem(last=False)
        return name

    def forget_documents(self, alive: Iterable[str]) -> None:
        """Drop refs of documents that are gone, so that a page that navigates for ever does not grow."""
        living = set(alive)
        self._document = {ref: document for ref, document in self._document.items() if document in living}

    def resolve(self, ref: str, snapshot_id: str | None) -> tuple[str, int, str]:
        """Frame key, number and document of a ref.

        Raises:
            StaleRefError: never handed out, or malformed.
            StaleSnapshotError: the snapshot is not remembered.
        """
        if snapshot_id is not None and snapshot_id not in self._snapshots and snapshot_id not in self._observations:
            raise StaleSnapshotError("stale_snapshot")
        document = self._document.get(ref)
        frame, dash, number = ref.rpartition("-e")
        if document is None or not dash or not number.isdecimal():
            raise StaleRefError("stale_ref")
        return frame, int(number), document
