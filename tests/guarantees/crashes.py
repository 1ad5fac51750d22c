"""Measures the cells in which the broker is killed -9."""

import asyncio
import signal
from collections.abc import Iterator, Sequence

from harness import store_is_sound

from guarantees.examples import Arguments
from guarantees.probes import Probe, lost, row_of, stored_key
from guarantees.stage import Stage
from lomi.contract.definition import Definition

GROUP = 6
"""Tools whose calls share one crash: with those ahead of them they fit into the 16 working calls of a connection."""


def groups(definitions: Sequence[Definition]) -> Iterator[Sequence[Definition]]:
    """The definitions in groups that share their crashes."""
    for start in range(0, len(definitions), GROUP):
        yield definitions[start : start + GROUP]


async def crash_before_start(stage: Stage, group: Sequence[Definition]) -> dict[str, str]:
    """Kill before anything of these calls is stored, then once more when they are stored and wait for their turn."""
    cells = dict.fromkeys([d.name for d in group], await _before_commit(stage, group))
    waiting = [d for d in group if d.retry_identity == "key" and (d.queue != "none" or d.decision_s > 0)]
    for name, said in (await _while_queued(stage, waiting)).items() if waiting else ():
        cells[name] += f"; queued: {said}"
    return cells


async def _shared(stage: Stage, group: Sequence[Definition]) -> list[tuple[Probe, Arguments]]:
    """Arguments of all these tools that can stand side by side."""
    mine = await stage.actor("mine")
    probes = [Probe(stage, definition) for definition in group]
    return [(probe, await (probe.example.shared or probe.example.make)(stage, mine)) for probe in probes]


async def _before_commit(stage: Stage, group: Sequence[Definition]) -> str:
    mine = await stage.actor("mine")
    session = await stage.session_of("mine")
    made = await _shared(stage, group)
    stage.world.arm("before_commit:1:hold")
    tasks = [asyncio.ensure_future(probe.call(mine, given)) for probe, given in made]
    await mine.agent.ask("lomi_status")
    assert not any(task.done() for task in tasks), [task.result().raw for task in tasks if task.done()]
    stage.world.arm("before_commit")
    await died(stage, tasks)
    for probe, given in made:
        key = stored_key(probe.definition, given)
        assert row_of(stage, probe.definition.name, session, key) is None, probe.definition.name
        assert await probe.effects(await stage.actor("mine"), given) in (None, 0), probe.definition.name
    return "no receipt, no effect"


async def _while_queued(stage: Stage, group: Sequence[Definition]) -> dict[str, str]:
    """Calls behind others in every queue, killed once all are stored."""
    world, mine = stage.world, await stage.actor("mine")
    session = await stage.session_of("mine")
    ahead, made = await _shared(stage, group), await _shared(stage, group)
    plug = await mine.agent.revised(name=stage.fresh("plug"))

    def all_stored() -> bool:
        rows = [row_of(stage, probe.definition.name, session, given["requestKey"]) for probe, given in made]
        assert all(row is None or row.state == "queued" for row in rows), rows
        return None not in rows

    world.arm("before_commit:1:hold")
    tasks = [asyncio.ensure_future(mine.agent.settled("lomi_workspace_create", plug))]
    tasks += [asyncio.ensure_future(probe.patient(mine, given)) for probe, given in ahead + made]
    await mine.agent.ask("lomi_status")
    assert not any(task.done() for task in tasks), [task.result().raw for task in tasks if task.done()]
    world.arm("after_commit:1:stop")
    await asyncio.to_thread(world.live.wait_stopped)
    while not all_stored():
        world.arm("after_commit:1:stop")
        world.live.signal(signal.SIGCONT)
        await asyncio.to_thread(world.live.wait_stopped)
    world.live.signal(signal.SIGKILL)
    await died(stage, tasks)
    cells = {}
    for probe, given in made:
        row = row_of(stage, probe.definition.name, session, given["requestKey"])
        assert row is not None
        assert await probe.effects(await stage.actor("mine"), given) in (None, 0), probe.definition.name
        cells[probe.definition.name] = row.short
    return cells


async def crash_after_dispatch(stage: Stage, definition: Definition, point: str = "effect_begun") -> str:
    """Kill once the effect may have begun; what the next broker's store says, and that nothing is done again."""
    probe = Probe(stage, definition)
    mine, given = await probe.mine()
    session = await stage.session_of("mine")
    stage.world.arm(point)
    await died(stage, [asyncio.ensure_future(probe.patient(mine, given))])
    row = row_of(stage, definition.name, session, stored_key(definition, given))
    assert row is not None
    count = await probe.effects(await stage.actor("mine"), given)
    assert count in (None, 0, 1), f"{count} effects"
    return f"{row.short}; never repeated"


async def died(stage: Stage, tasks: "Sequence[asyncio.Task[object]]") -> None:
    """See the broker die by its failpoint, every caller lose its connection, and the next broker open a sound store."""
    ends = {await lost(task) for task in tasks}  # type: ignore[arg-type]
    assert ends == {"CONTROL_REVOKED (session_ended)"}, ends
    assert await asyncio.to_thread(stage.world.live.wait) == -signal.SIGKILL
    await stage.close()
    await asyncio.to_thread(stage.world.restart)
    assert await asyncio.to_thread(store_is_sound, stage.world.home)
