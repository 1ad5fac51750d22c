"""How tests become shards. Pure, and the same for the same tests: no shard is ever empty."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from lomi.lab.shard import PlannedTest

T = TypeVar("T", bound=PlannedTest)


def by_count(tests: Sequence[T], count: int) -> tuple[tuple[T, ...], ...]:
    """At most `count` shards of neighbours, whose lengths differ by one at most."""
    shards = min(count, len(tests))
    if shards == 0:
        return ()
    size, longer = divmod(len(tests), shards)
    cuts = [number * size + min(number, longer) for number in range(shards + 1)]
    return tuple(tuple(tests[begin:end]) for begin, end in pairwise(cuts))


def by_timing(tests: Sequence[T], count: int, seconds: Mapping[str, float]) -> tuple[tuple[T, ...], ...]:
    """At most `count` shards that take about as long, longest first; a test never seen counts as the median one.

    Within a shard tests keep the plan's order.
    """
    shards = min(count, len(tests))
    if shards == 0:
        return ()
    known = [seconds[test.id] for test in tests if test.id in seconds]
    usual = statistics.median(known) if known else 1.0
    weights = [seconds.get(test.id, usual) for test in tests]
    piles: list[list[int]] = [[] for _ in range(shards)]
    loads = [0.0] * shards
    for index in sorted(range(len(tests)), key=lambda index: (-weights[index], index)):
        lightest = min(range(shards), key=lambda pile: (loads[pile], len(piles[pile]), pile))
        piles[lightest].append(index)
        loads[lightest] += weights[index]
    order = sorted(range(shards), key=lambda pile: (-loads[pile], pile))
    return tuple(tuple(tests[index] for index in sorted(piles[pile])) for pile in order)
