"""`python -m sizing`: the table of docs/scale.md, with the simulation beside the model."""

import argparse

from sizing.model import EMULATOR, GIB, MIB, PAPER, Central, HostSize, RunSize, devices_per_host, limit_of, run_s
from sizing.simulation import simulate

HOST = HostSize(cores=16, ram=64 * GIB, disk=500 * GIB)


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(prog="python -m sizing", description="How long a run takes on many hosts.")
    parser.add_argument("--dispatch-ms", type=float, default=8.0, help="of the run's process for one shard")
    parser.add_argument(
        "--bandwidth-mib", type=float, default=60.0, help="MiB of artifacts a second, all hosts together"
    )
    parser.add_argument("--shard-s", type=float, default=60.0)
    parser.add_argument("--artifact-kib", type=float, default=512.0)
    parser.add_argument("--shards-per-device", type=int, default=10)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    central = Central(dispatch_s=options.dispatch_ms / 1000, bandwidth=options.bandwidth_mib * MIB)
    for name, device in (("emulators", EMULATOR), ("paper phones", PAPER)):
        each = devices_per_host(HOST, device)
        print(f"{each} {name} on a host of {HOST.cores} processors, {HOST.ram // GIB} GiB, {HOST.disk // GIB} GiB disk")
        for hosts in (1, 2, 8, 30, 100, 300, 1000):
            devices = hosts * each
            run = RunSize(
                shards=options.shards_per_device * devices,
                shard_s=options.shard_s,
                artifact=options.artifact_kib * 1024,
            )
            modelled = run_s(devices, run, central)
            seen = simulate(hosts, each, run, central, options.seed).seconds
            bound = limit_of(devices, run, central)
            print(
                f"  {hosts:5} hosts {devices:6} devices  model {modelled:8.0f} s  simulated {seen:8.0f} s  by {bound}"
            )


if __name__ == "__main__":
    main()
