"""The sizing model against a simulation that knows none of its formulas, from one host to a thousand."""

from pathlib import Path

import pytest
from sizing.measure import measured
from sizing.model import EMULATOR, GIB, MIB, PAPER, Central, HostSize, RunSize, devices_per_host, limit_of, run_s
from sizing.simulation import simulate

HOST = HostSize(cores=16, ram=64 * GIB, disk=500 * GIB)
CENTRAL = Central(dispatch_s=0.008, bandwidth=60 * MIB)


def test_the_scarcest_thing_decides_how_many_devices_a_host_holds() -> None:
    """Processors, memory and disk, each in turn."""
    assert devices_per_host(HOST, EMULATOR) == 7
    assert devices_per_host(HostSize(cores=64, ram=16 * GIB, disk=500 * GIB), EMULATOR) == 3
    assert devices_per_host(HostSize(cores=64, ram=256 * GIB, disk=30 * GIB), EMULATOR) == 2
    assert devices_per_host(HostSize(cores=2, ram=2 * GIB, disk=GIB), EMULATOR) == 0
    assert devices_per_host(HostSize(cores=2, ram=24 * GIB, disk=100 * GIB), PAPER) == 6


@pytest.mark.parametrize("hosts", [1, 8, 100, 1000])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_model_is_within_an_eighth_of_the_simulation(hosts: int, seed: int) -> None:
    """Ten shards of a minute a device, with half a megabyte of artifacts each."""
    devices = 7 * hosts
    run = RunSize(shards=10 * devices, shard_s=60.0, artifact=512 * 1024)
    seen = simulate(hosts, 7, run, CENTRAL, seed)
    assert run_s(devices, run, CENTRAL) == pytest.approx(seen.seconds, rel=0.125)
    assert limit_of(devices, run, CENTRAL) == "devices"


def test_short_shards_are_bound_by_the_run_s_own_process() -> None:
    """A thousand hosts with shards of five seconds: what gives them out is full, and the model says so."""
    run = RunSize(shards=20_000, shard_s=5.0, artifact=0)
    assert limit_of(7000, run, CENTRAL) == "dispatch"
    assert run_s(7000, run, CENTRAL) == pytest.approx(simulate(1000, 7, run, CENTRAL, 1).seconds, rel=0.125)


def test_large_artifacts_are_bound_by_the_way_home() -> None:
    """Ten megabytes a shard on a hundred hosts: the pipe is full, and the model says so."""
    run = RunSize(shards=5000, shard_s=30.0, artifact=10 * MIB)
    assert limit_of(700, run, CENTRAL) == "artifacts"
    assert run_s(700, run, CENTRAL) == pytest.approx(simulate(100, 7, run, CENTRAL, 1).seconds, rel=0.125)


@pytest.mark.parametrize("seed", range(3))
def test_lost_hosts_lose_no_shard_and_count_none_twice(seed: int) -> None:
    """A host is lost about every hour: each shard counts once, and the model allows for those run again."""
    run = RunSize(shards=7000, shard_s=60.0, artifact=512 * 1024, losses_per_host_hour=1.0)
    seen = simulate(100, 7, run, CENTRAL, seed)
    assert set(seen.counted) == set(range(7000))
    assert set(seen.counted.values()) == {1}
    assert seen.redone > 20
    assert run_s(700, run, CENTRAL) == pytest.approx(seen.seconds, rel=0.2)


@pytest.mark.timeout(120)
async def test_the_measurement_gives_real_shards_out_and_brings_their_artifacts_in(tmp_path: Path) -> None:
    """Over TLS to a host's process and back; every artifact is on the shelf, and time and processor were counted."""
    took, used = await measured(tmp_path, hosts=1, shards=3, size=1 << 16)
    assert took > 0
    assert used > 0
    assert [path.stat().st_size for path in (tmp_path / "shelf").iterdir()] == [1 << 16] * 3
