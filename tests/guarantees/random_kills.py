"""Kill after kill: a random tool at a random failpoint and pass, then a restart, and the laws checked each time."""

import asyncio
import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness import Answered, owner, rows_of, store_is_sound
from harness.stored import counters_of, layout_revision

from guarantees.examples import EXAMPLES, Arguments
from guarantees.probes import Probe, row_of, stored_key
from guarantees.stage import Stage
from lomi.client.errors import ConnectionLostError
from lomi.contract.codes import TERMINAL_STATES
from lomi.contract.definition import Definition
from lomi.contract.tools import BY_NAME
from lomi.core.failpoints import POINTS

CALLS = 3
MOST_PASSES = 9
DEAD_S = 3.0
"""How long a life may go on after its calls were answered; a point that was not reached is made up for by a kill."""


@dataclass
class Record:
    """What was promised so far: settled operations with their states, counters, domain revision."""

    settled: dict[str, str] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    kills: int = 0
    unknown: int = 0


async def working_definitions(stage: Stage, families: Sequence[str]) -> list[Definition]:
    """The stored tools of some families that work and have an example."""
    working = (await owner(stage.world, "status"))["tools_working"]
    return [BY_NAME[name] for name in working if _usable(name, families)]  # type: ignore[union-attr]


def _usable(name: str, families: Sequence[str]) -> bool:
    return name in EXAMPLES and BY_NAME[name].stored and BY_NAME[name].family in families


async def random_kills(stage: Stage, families: Sequence[str], lives: int, seed: int, unknown: int = 0) -> Record:
    """Live and die `lives` times, and on to half as often again until `unknown` deaths came inside an effect."""
    choice = random.Random(seed)
    record = Record()
    definitions = await working_definitions(stage, families)
    for life in range(lives + lives // 2):
        if life >= lives and record.unknown >= unknown:
            break
        chosen = choice.choices(definitions, k=choice.randint(1, CALLS))
        point = f"{choice.choice(POINTS)}:{choice.randint(1, MOST_PASSES)}"
        try:
            await one_life(stage, chosen, point, record)
        except BaseException as error:
            error.add_note(f"seed {seed}, life {life}: {', '.join(d.name for d in chosen)} at {point}")
            raise
    return record


async def one_life(stage: Stage, chosen: Sequence[Definition], point: str, record: Record) -> None:
    """Make calls, die at a point, restart, check."""
    mine = await stage.actor("mine")
    session = await stage.session_of("mine")
    made: list[tuple[Probe, Arguments]] = []
    for definition in chosen:
        probe = Probe(stage, definition)
        made.append((probe, await (probe.example.shared or probe.example.make)(stage, mine)))
    stage.world.arm(point)
    tasks = [asyncio.ensure_future(probe.patient(mine, given)) for probe, given in made]
    await asyncio.wait(tasks, timeout=DEAD_S)
    stage.world.live.signal(signal.SIGKILL)
    said = [await _answer(task) for task in tasks]
    assert await asyncio.to_thread(stage.world.live.wait) == -signal.SIGKILL
    record.kills += 1
    await stage.close()
    await asyncio.to_thread(stage.world.restart)
    await _check(stage, session, list(zip(made, said, strict=True)), record)


async def _answer(task: "asyncio.Task[Answered]") -> Answered | None:
    try:
        return await task
    except ConnectionLostError:
        return None


async def _check(
    stage: Stage, session: str, calls: Sequence[tuple[tuple[Probe, Arguments], Answered | None]], record: Record
) -> None:
    home = stage.world.home
    assert await asyncio.to_thread(store_is_sound, home)
    rows = {row.operation_id: row for row in rows_of(home)}
    for operation, state in record.settled.items():
        assert f"{rows[operation].state}/{rows[operation].effect}" == state, "an acknowledged receipt changed"
    assert all(row.state in TERMINAL_STATES for row in rows.values())
    counters = counters_of(home)
    assert all(counters.get(name, 0) >= value for name, value in record.counters.items()), "a counter went back"
    record.counters = counters
    assert layout_revision(home) >= record.revision
    record.revision = layout_revision(home)
    for (probe, given), answer in calls:
        await _check_call(stage, session, probe, given, answer, record)


async def _check_call(
    stage: Stage, session: str, probe: Probe, given: Arguments, answer: Answered | None, record: Record
) -> None:
    """A receipt that was told stands; the effect is there at most once, and not at all where the receipt says none."""
    row = row_of(stage, probe.definition.name, session, stored_key(probe.definition, given))
    if answer is not None and "operationId" in answer.data:
        assert row is not None, "a receipt that was told is not stored"
        if answer.data["state"] in TERMINAL_STATES:
            assert f"{row.state}/{row.effect}" == answer.state
            record.settled[row.operation_id] = answer.state
    count = await probe.effects(await stage.actor("mine"), given)
    assert count in (None, 0, 1), f"{count} effects"
    if row is None or row.effect == "none":
        assert count in (None, 0), f"an effect without a receipt of it: {row}"
    if row is not None and row.state == "succeeded" and not probe.example.fleeting:
        assert count in (None, 1), "a succeeded receipt without its effect"
    record.unknown += row is not None and row.state == "outcome_unknown"
