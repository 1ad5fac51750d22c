"""The sizing model: what one host holds, and how long a run takes on many. Seconds, bytes, whole phones."""

import math
from dataclasses import dataclass

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class HostSize:
    """A host: processors, bytes of memory and of disk; and what it keeps back for itself and its broker."""

    cores: int
    ram: int
    disk: int
    kept_cores: float = 0.5
    kept_ram: int = 2 * GIB
    kept_disk: int = 10 * GIB


@dataclass(frozen=True, kw_only=True)
class DeviceSize:
    """What one device takes while a test runs on it, with its pytest process. `cores` is the mean share."""

    cores: float
    ram: int
    disk: int


PAPER = DeviceSize(cores=0.25, ram=64 * MIB, disk=16 * MIB)
"""A simulated phone with its worker and its share of the broker: measured by `ci/bench lab`, see docs/scale.md."""
EMULATOR = DeviceSize(cores=2.0, ram=3584 * MIB + 64 * MIB, disk=9 * GIB)
"""An ATD image as the manifest states its needs, which was not measured here, with its worker."""


@dataclass(frozen=True, kw_only=True)
class RunSize:
    """A run: shards, their mean seconds, bytes of artifacts each, and how often an hour a host is lost."""

    shards: int
    shard_s: float
    artifact: float
    losses_per_host_hour: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Central:
    """What all shards share: seconds of the run's own process for one shard, and bytes a second to it.

    `lost_s` is how long a lost host's shards wait before they are known to be lost.
    """

    dispatch_s: float
    bandwidth: float
    lost_s: float = 10.0


def devices_per_host(host: HostSize, device: DeviceSize) -> int:
    """The scarcest of processors, memory and disk decides."""
    return max(
        0,
        min(
            math.floor((host.cores - host.kept_cores) / device.cores),
            math.floor((host.ram - host.kept_ram) / device.ram),
            math.floor((host.disk - host.kept_disk) / device.disk),
        ),
    )


def limit_of(devices: int, run: RunSize, central: Central) -> str:
    """What bounds the throughput: `devices`, `dispatch` or `artifacts`."""
    bounds = {
        "devices": devices / cycle_s(run, central),
        "dispatch": 1 / central.dispatch_s,
        "artifacts": central.bandwidth / run.artifact if run.artifact else math.inf,
    }
    return min(bounds, key=lambda name: bounds[name])


def cycle_s(run: RunSize, central: Central) -> float:
    """How long a device is taken by one shard when nothing queues: given out, run, and its artifacts brought in."""
    return central.dispatch_s + run.shard_s + run.artifact / central.bandwidth


def run_s(devices: int, run: RunSize, central: Central) -> float:
    """How long a run takes: its throughput in the middle, and one shard more at the end, while devices go idle."""
    rates = [devices / cycle_s(run, central), 1 / central.dispatch_s]
    if run.artifact:
        rates.append(central.bandwidth / run.artifact)
    wanted = run.shards * (1 + _redone(run, central))
    waves = wanted / devices
    whole = math.ceil(waves - 1e-9) if waves < 4 else waves + 0.5
    return max(whole * cycle_s(run, central), wanted / min(rates[1:]) + run.shard_s)


def _redone(run: RunSize, central: Central) -> float:
    """The share of shards that a lost host makes run again, each after the time that its loss took to show."""
    a_shard = cycle_s(run, central)
    return run.losses_per_host_hour / 3600 * (a_shard + central.lost_s / 2)
