"""Random kills of a real broker: never two effects, never a lost acknowledged receipt, generations only grow."""

import asyncio
from collections.abc import Sequence

import pytest
from harness import opened_world
from harness.site import serving

from guarantees import table  # noqa: F401  it registers the examples
from guarantees.random_kills import Record, random_kills
from guarantees.stage import repository, staged, table_policy

CORE = ("workspace", "panel", "terminal", "artifact")
EVERY = (*CORE, "browser", "android", "files", "editor", "git")


async def lived(families: Sequence[str], lives: int, seed: int, unknown: int = 0) -> Record:
    """Live and die on a world of its own."""
    with serving() as site, opened_world(table_policy(site), always=repository(site)) as world:
        async with staged(world, site) as stage:
            return await random_kills(stage, families, lives, seed, unknown)


@pytest.mark.timeout(120)
def test_ten_random_kills() -> None:
    """The short form: ten lives, each ended by kill -9 at a random point of random work."""
    record = asyncio.run(lived(CORE, 10, seed=20))
    assert record.kills == 10


@pytest.mark.deep
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_random_kills_of_the_core(seed: int) -> None:
    """The long form: with the other seeds and the next test, a thousand lives."""
    record = asyncio.run(lived(CORE, 200, seed, unknown=21))
    assert record.kills >= 200
    assert record.unknown > 20


@pytest.mark.deep
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("seed", range(2))
def test_a_hundred_random_kills_with_phones_and_pages(seed: int) -> None:
    """Phones and pages among the work that is killed."""
    record = asyncio.run(lived(EVERY, 100, 100 + seed))
    assert record.kills == 100
