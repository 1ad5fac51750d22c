"""Hosts in network namespaces of their own, with simulated phones: one killed, one cut off, and how it scales."""

import json
import os
import time
from pathlib import Path

import pytest
from cluster_world import Cluster, Run, opened_cluster, wait_for
from namespaces import opened_network, why_not

WHY_NOT = why_not()
pytestmark = [pytest.mark.deep, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT or "there are namespaces")]

TESTS = """
import os, pathlib, time
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_touches(phone, number):
    home = pathlib.Path(os.environ["LOMI_HOME"]).name
    mark = pathlib.Path(os.environ["MARKS"]) / f"{{home}}.{{number}}.{{time.time_ns()}}"
    mark.touch()
    phone.go("home")
    time.sleep({seconds})
    mark.with_name(mark.name + ".done").touch()
"""


def plan_text(phones: int, shards: int) -> str:
    """A plan for so many phones of the whole cluster."""
    return (
        f'[tests]\npaths = ["tests"]\n[pool]\nimage = "paper-36"\nphones = {phones}\n'
        f"[shards]\ncount = {shards}\n[retries]\ninfra = 3\n"
    )


def running_on(cluster: Cluster, host: str) -> list[str]:
    """Marks of tests that began on a host and have not ended."""
    marks = cluster.marked(f"{host}.")
    return [mark for mark in marks if not mark.endswith(".done") and f"{mark}.done" not in marks]


def recovery_s(run: Run, struck: float) -> float:
    """Seconds from the blow to the end of the last test that had to be done again."""
    ends = [test["attempts"][-1]["ended"] for test in run.report["tests"] if len(test["attempts"]) > 1]
    lost = {name for shard in run.report["shards"] if shard["trouble"] for name in shard["tests"]}
    ends += [test["attempts"][-1]["ended"] for test in run.report["tests"] if test["id"] in lost]
    return max(ends, default=struck) - struck


def tell(name: str, **figures: float) -> None:
    """Keep figures where `LOMI_FIGURES` says, one JSON object a line."""
    line = json.dumps({"what": name, **{word: round(value, 2) for word, value in figures.items()}})
    print(line)
    if into := os.environ.get("LOMI_FIGURES"):
        with Path(into).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("blow", ["killed", "cut off"])
def test_two_hosts_and_one_is_lost(blow: str) -> None:
    """Killed, or its cable pulled, in the middle of a test: every planned test passes once, on one of the two."""
    with opened_network(3) as network, opened_cluster() as cluster:
        cluster.start_scheduler(network.machines[0])
        first, _ = cluster.start_hosts(2, "--phones", "2", machines=network.machines[1:])
        plan = cluster.plan(plan_text(4, 8), TESTS.format(count=16, seconds=0.5))
        struck = 0.0

        def strike() -> None:
            nonlocal struck
            wait_for(lambda: running_on(cluster, "host-1"), "a test on host-1")
            struck = time.time()
            if blow == "killed":
                first.kill()
            else:
                network.pull(network.machines[1])

        run = cluster.run(plan, strike)
        run.check_counts(16)
        assert run.code == 0, run.said
        assert {shard["host"] for shard in run.report["shards"] if shard["trouble"]} == {"host-1"}, run.said
        tell(f"two hosts, one {blow}", run_s=run.seconds, recovery_s=recovery_s(run, struck))
        if blow == "cut off":
            network.plug(network.machines[1])
            log = cluster.root / "host-1.log"
            wait_for(lambda: log.read_text().count(" serves ") > 1, "host-1 to be a member again")
            again = cluster.run(cluster.plan(plan_text(4, 4), TESTS.format(count=8, seconds=0.2)))
            again.check_counts(8)
            assert set(again.hosts) == {"host-1", "host-2"}


@pytest.mark.timeout(900)
def test_eight_hosts_one_killed_and_one_cut_off() -> None:
    """Both blows in one run of eight hosts: nothing is lost, nothing counts twice."""
    with opened_network(9) as network, opened_cluster() as cluster:
        cluster.start_scheduler(network.machines[0])
        hosts = cluster.start_hosts(8, "--phones", "1", machines=network.machines[1:])
        plan = cluster.plan(plan_text(8, 16), TESTS.format(count=48, seconds=1.0))
        struck = 0.0

        def strike() -> None:
            nonlocal struck
            wait_for(lambda: running_on(cluster, "host-3"), "a test on host-3")
            wait_for(lambda: running_on(cluster, "host-6"), "a test on host-6")
            struck = time.time()
            hosts[2].kill()
            network.pull(network.machines[6])

        run = cluster.run(plan, strike)
        run.check_counts(48)
        assert run.code == 0, run.said
        lost = {shard["host"] for shard in run.report["shards"] if shard["trouble"]}
        assert lost == {"host-3", "host-6"}, run.said
        tell("eight hosts, one killed and one cut off", run_s=run.seconds, recovery_s=recovery_s(run, struck))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("hosts", [1, 2, 8])
def test_what_more_hosts_gain(hosts: int) -> None:
    """Forty-eight tests of one second on one phone each host: the measured time beside the ideal one."""
    with opened_network(hosts + 1) as network, opened_cluster() as cluster:
        cluster.start_scheduler(network.machines[0])
        cluster.start_hosts(hosts, "--phones", "1", machines=network.machines[1:])
        plan = cluster.plan(plan_text(hosts, hosts), TESTS.format(count=48, seconds=1.0))
        run = cluster.run(plan)
        run.check_counts(48)
        assert len(run.hosts) == hosts
        work = [(a["began"], a["ended"]) for test in run.report["tests"] for a in test["attempts"]]
        span = max(ended for _, ended in work) - min(began for began, _ in work)
        tell(f"48 tests of 1 s on {hosts} hosts", tests_s=span, ideal_s=48 / hosts, run_s=run.seconds)
