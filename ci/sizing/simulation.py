"""A discrete simulation of a run on many hosts: one queue, one dispatcher, one pipe for artifacts, hosts that get lost.

It knows nothing of the model's formulas: it moves shards, one event at a time. Same seed, same run.
"""

import heapq
import random
from collections import deque
from dataclasses import dataclass, field

from sizing.model import Central, RunSize


@dataclass
class _State:
    queue: deque[int]
    free: list[tuple[float, int]]
    events: list[tuple[float, int, str, int, int]] = field(default_factory=list)
    lives: dict[int, int] = field(default_factory=dict)
    numbers: int = 0
    dispatcher: float = 0.0
    pipe: float = 0.0


@dataclass(frozen=True)
class Simulated:
    """How a simulated run ended: its length, how often each shard counted, how many were run again."""

    seconds: float
    counted: dict[int, int]
    redone: int


def simulate(hosts: int, per_host: int, run: RunSize, central: Central, seed: int, spread: float = 0.2) -> Simulated:
    """Run it. Shards take a normal time around the mean, within a half and the double; a lost host comes back later."""
    dice = random.Random(seed)
    state = _State(deque(range(run.shards)), [(0.0, host) for host in range(hosts) for _ in range(per_host)])
    state.lives = dict.fromkeys(range(hosts), 0)
    heapq.heapify(state.free)
    counted: dict[int, int] = {}
    redone, now = 0, 0.0

    def push(when: float, kind: str, host: int, shard: int) -> None:
        state.numbers += 1
        heapq.heappush(state.events, (when, state.numbers, kind, host, shard))

    def lose_later(host: int, after: float) -> None:
        if run.losses_per_host_hour:
            push(after + dice.expovariate(run.losses_per_host_hour / 3600), "lose", host, state.lives[host])

    def give() -> None:
        while state.queue and state.free:
            freed, host = heapq.heappop(state.free)
            shard = state.queue.popleft()
            state.dispatcher = max(state.dispatcher, now, freed) + central.dispatch_s
            took = run.shard_s * min(2.0, max(0.5, dice.gauss(1.0, spread)))
            push(state.dispatcher + took, f"ran {state.lives[host]}", host, shard)

    for host in range(hosts):
        lose_later(host, 0.0)
    give()
    while len(counted) < run.shards:
        now, _, kind, host, shard = heapq.heappop(state.events)
        if kind == "lose" and shard == state.lives[host]:
            state.lives[host] += 1
            push(now + central.lost_s, "back", host, 0)
            lose_later(host, now + central.lost_s)
        elif kind == "back":
            present = sum(1 for _, other in state.free if other == host)
            for _ in range(per_host - present):
                heapq.heappush(state.free, (now, host))
            give()
        elif kind.startswith("ran "):
            if int(kind[4:]) != state.lives[host]:
                redone += 1
                push(now + central.lost_s, "again", host, shard)
                continue
            state.pipe = max(state.pipe, now) + run.artifact / central.bandwidth
            push(state.pipe, f"in {kind[4:]}", host, shard)
        elif kind.startswith("in "):
            counted[shard] = counted.get(shard, 0) + 1
            if int(kind[3:]) == state.lives[host]:
                heapq.heappush(state.free, (now, host))
            give()
        elif kind == "again":
            state.queue.append(shard)
            give()
    return Simulated(now, counted, redone)
