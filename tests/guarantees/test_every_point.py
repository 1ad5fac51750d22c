"""Every stored tool killed at every point of its way, from its admission to its settlement."""

import asyncio
from collections.abc import Sequence

import pytest
from harness import StoredRow, opened_world
from harness.site import serving

from guarantees import table  # noqa: F401  it registers the examples
from guarantees.crashes import died, stored_key
from guarantees.probes import Probe, row_of
from guarantees.random_kills import working_definitions
from guarantees.stage import Stage, repository, staged, table_policy
from lomi.contract.definition import Definition

FAMILIES = ("workspace", "panel", "terminal", "artifact", "browser", "android", "files", "editor", "git")
NOTHING = ("admitted",)
UNKNOWN = ("after_commit", "dispatched", "effect_done", "before_settle")
SETTLED = ("settled",)


async def killed_at(stage: Stage, definition: Definition, point: str) -> tuple[StoredRow | None, int | None, bool]:
    """What the store holds after a kill at a point, how often the effect is there, and whether it outlives a broker."""
    probe = Probe(stage, definition)
    mine, given = await probe.mine()
    session = await stage.session_of("mine")
    stage.world.arm(point)
    await died(stage, [asyncio.ensure_future(probe.patient(mine, given))])
    row = row_of(stage, definition.name, session, stored_key(definition, given))
    return row, await probe.effects(await stage.actor("mine"), given), probe.example.fleeting


def is_truthful(
    definition: Definition, point: str, row: StoredRow | None, count: int | None, *, fleeting: bool
) -> bool:
    """Whether store and effect fit the point of death."""
    if point in NOTHING:
        return row is None and count in (None, 0)
    if row is None:
        return False
    if point in SETTLED:
        return row.short == "receipt succeeded/complete" and (fleeting or count in (None, 1))
    waited = definition.decision_s > 0 and row.short == "receipt cancelled/none" and count in (None, 0)
    unknown = row.short == "receipt outcome_unknown/unknown OUTCOME_UNKNOWN"
    return waited or (unknown and count in (None, 0, 1))


async def _every_tool(families: Sequence[str], point: str) -> list[str]:
    faults = []
    with serving() as site, opened_world(table_policy(site), always=repository(site)) as world:
        async with staged(world, site) as stage:
            for definition in await working_definitions(stage, families):
                try:
                    row, count, fleeting = await killed_at(stage, definition, point)
                except (AssertionError, TimeoutError) as error:
                    faults.append(f"{definition.name} at {point}: {error}")
                    await stage.close()
                    world.restart()
                    continue
                if not is_truthful(definition, point, row, count, fleeting=fleeting):
                    faults.append(
                        f"{definition.name} at {point}: {row.short if row else 'no receipt'}, {count} effects"
                    )
    return faults


@pytest.mark.deep
@pytest.mark.timeout(900)
@pytest.mark.parametrize("point", [*NOTHING, *UNKNOWN, *SETTLED])
def test_a_kill_at_a_point_is_told_truthfully(point: str) -> None:
    """No receipt before its commit, outcome_unknown from there on, succeeded once settled; never two effects."""
    assert asyncio.run(_every_tool(FAMILIES, point)) == []
