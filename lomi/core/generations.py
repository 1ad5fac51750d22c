"""Generations: which life of a resource is the present one. The counters themselves are durable in the store."""

from lomi.contract.codes import ErrorCode
from lomi.core.ids import GenerationId
from lomi.core.port import ResourceKey
from lomi.core.refusal import Refusal


class Generations:
    """The current generation of every resource.

    One direction each: a resource has at most one, a generation exactly one.
    """

    def __init__(self) -> None:
        self._current: dict[ResourceKey, GenerationId] = {}
        self._resource: dict[GenerationId, ResourceKey] = {}

    def begin(self, resource: ResourceKey, generation: GenerationId) -> None:
        """Make `generation` the current one."""
        self._current[resource] = generation
        self._resource[generation] = resource

    def end(self, generation: GenerationId) -> ResourceKey | None:
        """End it; returns its resource when it was the current one."""
        resource = self._resource.pop(generation, None)
        if resource is None or self._current.get(resource) != generation:
            return None
        del self._current[resource]
        return resource

    def current(self, resource: ResourceKey) -> GenerationId | None:
        """The current generation, None when nothing runs."""
        return self._current.get(resource)

    def resource(self, generation: GenerationId) -> ResourceKey | None:
        """What a live generation is a life of."""
        return self._resource.get(generation)

    def check(self, resource: ResourceKey, given: str, field: str) -> GenerationId:
        """Pass only the current generation.

        Raises:
            Refusal: STALE_GENERATION (`generation_replaced` or `generation_ended`).
        """
        current = self._current.get(resource)
        if current is None:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field=field)
        if current != given:
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_replaced", field=field)
        return current
