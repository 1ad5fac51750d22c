"""Who holds how many artifacts and bytes: running sums in memory, reservations included."""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from lomi.contract.limits import Limits

ArtifactClass = Literal["image", "apk", "file"]


@dataclass(slots=True, kw_only=True)
class Holding:
    """One artifact as the quotas see it: `reserved` until its bytes are durable; `pins` are readers at work."""

    id: str
    artifact_class: ArtifactClass
    session_id: str
    project_id: str
    byte_length: int
    expires_s: int
    reserved: bool = True
    pins: int = 0


class QuotaFull(Exception):  # noqa: N818  an answer, not a fault
    """The new artifact does not fit: the bound, and how much would be used."""

    def __init__(self, limit: int, need: int) -> None:
        super().__init__(f"{need} of {limit}")
        self.limit = limit
        self.need = need


class Quota:
    """All artifacts of one home. Never waits, never touches a file."""

    def __init__(self, limits: Limits, holdings: Iterable[Holding] = ()) -> None:
        self._limits = limits
        self._held: dict[str, Holding] = {}
        self._images: dict[str, Holding] = {}
        self._used: Counter[tuple[str, str]] = Counter()
        self._expiring: list[tuple[int, str]] = []
        for holding in holdings:
            self.add(holding)

    def get(self, artifact_id: str) -> Holding | None:
        """One holding."""
        return self._held.get(artifact_id)

    def used(self, name: Literal["count", "bytes", "image"]) -> int:
        """How much of a bound of the whole home is used."""
        return self._used[name, ""]

    def add(self, holding: Holding) -> None:
        """Count a holding in."""
        self._held[holding.id] = holding
        if holding.artifact_class == "image":
            self._images[holding.id] = holding
        for key, amount, _ in self._charges(holding):
            self._used[key] += amount
        heapq.heappush(self._expiring, (holding.expires_s, holding.id))

    def remove(self, holding: Holding) -> None:
        """Count a holding out; once."""
        if self._held.pop(holding.id, None) is None:
            return
        self._images.pop(holding.id, None)
        for key, amount, _ in self._charges(holding):
            self._used[key] -= amount
            if not self._used[key]:
                del self._used[key]

    def resize(self, holding: Holding, byte_length: int) -> None:
        """Count a holding with another length, as of bytes whose number was only bounded when they were reserved."""
        self.remove(holding)
        holding.byte_length = byte_length
        self.add(holding)

    def make_room(self, new: Holding, now_s: int) -> list[Holding]:
        """The holdings that must go so that `new` fits: expired ones, then (if the limits say so) images, oldest first.

        Pinned and reserved ones never go. Nothing is changed; the caller removes them and adds `new`.

        Raises:
            QuotaFull: it does not fit.
        """
        leaving = {holding.id: holding for holding in self.expired(now_s)}
        for key, amount, limit in self._charges(new):
            need = self._used[key] + amount - sum(self._charge(holding, key) for holding in leaving.values())
            if need > limit and self._limits.release_unpinned_images:
                need -= self._release(key, need - limit, leaving)
            if need > limit:
                raise QuotaFull(limit, need)
        return list(leaving.values())

    def expired(self, now_s: int) -> list[Holding]:
        """Every holding whose time is over and that nobody reads."""
        found, again = [], []
        while self._expiring and self._expiring[0][0] <= now_s:
            due = heapq.heappop(self._expiring)
            holding = self._held.get(due[1])
            if holding is None:
                continue
            again.append(due)
            if not holding.pins and not holding.reserved:
                found.append(holding)
        for due in again:
            heapq.heappush(self._expiring, due)
        return found

    def _release(self, key: tuple[str, str], need: int, leaving: dict[str, Holding]) -> int:
        freed = 0
        for holding in self._images.values():
            if freed >= need:
                break
            charge = self._charge(holding, key)
            if charge and not holding.pins and not holding.reserved and holding.id not in leaving:
                leaving[holding.id] = holding
                freed += charge
        return freed

    def _charge(self, holding: Holding, key: tuple[str, str]) -> int:
        return sum(amount for charged, amount, _ in self._charges(holding) if charged == key)

    def _charges(self, holding: Holding) -> list[tuple[tuple[str, str], int, int]]:
        limits, length = self._limits, holding.byte_length
        charges = [
            (("count", ""), 1, limits.artifacts),
            (("bytes", ""), length, limits.artifact_bytes),
            (("session", holding.session_id), length, limits.artifact_owner_bytes),
            (("project", holding.project_id), length, limits.artifact_owner_bytes),
        ]
        if holding.artifact_class == "image":
            charges.append((("image", ""), length, limits.image_bytes))
            charges.append((("image_session", holding.session_id), length, limits.image_owner_bytes))
        return charges
