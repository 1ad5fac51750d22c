"""Leases: input authority over one generation for one session.

In memory only; the one lease rule for every kind of resource.
"""

from collections.abc import Callable, Iterator

from lomi.contract.codes import Details, ErrorCode
from lomi.core.ids import GenerationId, LeaseId, SessionId
from lomi.core.port import Lease, ResourceKey
from lomi.core.refusal import Refusal

LeaseEnded = Callable[[Lease], None]


class Leases:
    """Who may put input into which generation. Every end of a lease calls `ended` at once, whatever ended it."""

    def __init__(self, *, new_id: Callable[[], LeaseId], ended: LeaseEnded) -> None:
        self._new_id = new_id
        self._ended = ended
        self._held: dict[GenerationId, Lease] = {}
        self._active: dict[GenerationId, float] = {}
        self._taken: set[ResourceKey] = set()

    def grant(
        self,
        generation: GenerationId,
        session: SessionId,
        resource: ResourceKey,
        now: float,
        lease_id: LeaseId | None = None,
    ) -> Lease:
        """Give the lease, or the one this session already holds. A new one gets `lease_id`, or the next id.

        Raises:
            Refusal: TARGET_BUSY when another session holds it, CONTROL_REVOKED while a person has taken
            the resource over.
        """
        if resource in self._taken:
            raise Refusal(ErrorCode.CONTROL_REVOKED, "taken_over")
        held = self._held.get(generation)
        if held is None:
            held = Lease(id=lease_id or self._new_id(), generation=generation, session_id=session, since=now)
            self._held[generation] = held
        elif held.session_id != session:
            raise Refusal(ErrorCode.TARGET_BUSY, "already_leased", details=Details(owner=held.session_id))
        self._active[generation] = now
        return held

    def check(self, generation: GenerationId, lease_id: str, session: SessionId, resource: ResourceKey) -> None:
        """Pass only the holder.

        Raises:
            Refusal: CONTROL_REVOKED (`taken_over` or `lease_lost`).
        """
        held = self._held.get(generation)
        if held is None or held.id != lease_id or held.session_id != session:
            raise Refusal(
                ErrorCode.CONTROL_REVOKED, "taken_over" if resource in self._taken else "lease_lost", field="/leaseId"
            )

    def touch(self, generation: GenerationId, now: float) -> None:
        """Note activity, for the idle limit."""
        if generation in self._held:
            self._active[generation] = now

    def end(self, generation: GenerationId) -> None:
        """End the lease, if there is one, and tell at once."""
        lease = self._held.pop(generation, None)
        self._active.pop(generation, None)
        if lease is not None:
            self._ended(lease)

    def end_of_session(self, session: SessionId) -> None:
        """End every lease of a session."""
        for generation in [lease.generation for lease in self._held.values() if lease.session_id == session]:
            self.end(generation)

    def take_over(self, resource: ResourceKey, generation: GenerationId | None) -> None:
        """A person acts: the lease ends and none is given until `give_back`."""
        self._taken.add(resource)
        if generation is not None:
            self.end(generation)

    def give_back(self, resource: ResourceKey) -> None:
        """The person is done; leases may be granted again."""
        self._taken.discard(resource)

    def taken(self, resource: ResourceKey) -> bool:
        """Whether a person holds the resource."""
        return resource in self._taken

    def holder(self, generation: GenerationId) -> Lease | None:
        """The present lease of a generation."""
        return self._held.get(generation)

    def last_active(self, generation: GenerationId) -> float | None:
        """When the lease was last used, on the monotonic scale."""
        return self._active.get(generation)

    def __iter__(self) -> Iterator[Lease]:
        return iter(tuple(self._held.values()))
