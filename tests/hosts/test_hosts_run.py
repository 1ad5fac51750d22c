"""Two hosts on one machine: shards on both, one host killed in the middle, and what the report then says."""

import os
import subprocess
import sys

import pytest
from cluster_world import Cluster, opened_cluster, wait_for

PLAN = '[tests]\npaths = ["tests"]\n[shards]\ncount = 6\n[retries]\ninfra = 3\n'
TESTS = """
import os, pathlib, time
import pytest

@pytest.mark.parametrize("number", range(12))
def test_marks(number):
    home = pathlib.Path(os.environ["LOMI_HOME"]).name
    mark = pathlib.Path(os.environ["MARKS"]) / f"{home}.{number}.{time.time_ns()}"
    mark.touch()
    time.sleep(0.3)
    mark.with_name(mark.name + ".done").touch()
"""
"""Each test sleeps so long that a host, a scheduler or a run can be ended in its middle, between its two marks."""


@pytest.mark.timeout(150)
def test_a_killed_host_loses_its_shards_and_nothing_else() -> None:
    """Kill -9 one of two hosts in a test: every planned test passes once in the report, the lost ones elsewhere."""
    with opened_cluster() as cluster:
        cluster.start_scheduler()
        first, _ = cluster.start_hosts(2, "--phones", "0", "--slots", "2")
        plan = cluster.plan(PLAN, TESTS)

        def kill() -> None:
            wait_for(lambda: [mark for mark in cluster.marked("host-1.") if not mark.endswith(".done")], "a test there")
            first.kill()

        run = cluster.run(plan, kill)
        run.check_counts(12)
        assert run.code == 0, run.said
        assert run.hosts["host-2"] > 6
        lost = [shard for shard in run.report["shards"] if shard["trouble"]]
        assert {shard["host"] for shard in lost} == {"host-1"}, run.said
        check_verified(cluster, run.folder)


def check_verified(cluster: Cluster, folder: os.PathLike[str]) -> None:
    """`lomi lab verify` finds every artifact of the report to be what its hash says."""
    checked = cluster.command("s", "lab", "verify", str(folder), "--files-only")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.timeout(120)
def test_a_home_that_is_no_member_can_run_nothing_and_plain_connections_are_refused() -> None:
    """Without a certificate of the cluster there is no way in, not for a run and not for a bare Dask client."""
    with opened_cluster() as cluster:
        cluster.start_scheduler()
        plan = cluster.plan(PLAN, TESTS)
        refused = cluster.command("stranger", "lab", "run", str(plan), "--engine", cluster.engine)
        assert refused.returncode == 2, refused.stderr
        assert "is no member of a cluster" in refused.stderr
        port = cluster.engine.rpartition(":")[2]
        bare = f"from distributed import Client; Client('tcp://127.0.0.1:{port}', timeout=3)"
        tried = subprocess.run(
            [sys.executable, "-c", bare],
            check=False,
            env=cluster.environment("x"),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert tried.returncode != 0
        assert "Timed out" in tried.stderr or "refused" in tried.stderr or "Error" in tried.stderr


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_lost_scheduler_ends_the_run_and_not_the_lab() -> None:
    """Killed in a run: every planned test has one state, exit code 3; started again, the host is back by itself."""
    with opened_cluster() as cluster:
        cluster.start_scheduler()
        cluster.start_hosts(1, "--phones", "0", "--slots", "2")
        plan = cluster.plan(PLAN, TESTS)

        def kill() -> None:
            wait_for(lambda: cluster.marked("host-1."), "a test")
            cluster.members["s"].kill()

        run = cluster.run(plan, kill)
        assert run.code == 3, run.said
        states = [test["state"] for test in run.report["tests"]]
        assert len(states) == 12
        assert set(states) <= {"passed", "infra_error", "not_run"}
        cluster.start_scheduler(port=int(cluster.engine.rpartition(":")[2]))
        log = cluster.root / "host-1.log"
        wait_for(lambda: log.read_text().count(" serves ") > 1, "the host to be back")
        cluster.run(cluster.plan(PLAN, TESTS)).check_counts(12)


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_a_cancelled_run_ends_on_every_host() -> None:
    """SIGTERM to the run: every test has one state, none goes on behind its back, and the hosts take the next run."""
    with opened_cluster() as cluster:
        cluster.start_scheduler()
        cluster.start_hosts(2, "--phones", "0", "--slots", "1")
        plan = cluster.plan(PLAN, TESTS)

        def cancel() -> None:
            wait_for(lambda: len(cluster.marked()) > 2, "some tests")
            cluster.members["run"].process.terminate()

        run = cluster.run(plan, cancel)
        assert run.code == 4, run.said
        states = [test["state"] for test in run.report["tests"]]
        assert len(states) == 12
        assert "cancelled" in states
        marks = cluster.marked()
        cluster.run(cluster.plan(PLAN, TESTS)).check_counts(12)
        later = set(cluster.marked()) - set(marks)
        assert len([mark for mark in later if mark.endswith(".done")]) == 12


TWO_TESTS = """
import os, pathlib, time
import pytest

@pytest.mark.parametrize("number", range(2))
def test_meets_the_other(number):
    home = pathlib.Path(os.environ["LOMI_HOME"]).name
    marks = pathlib.Path(os.environ["MARKS"])
    (marks / f"{home}.{number}").touch()
    end = time.monotonic() + 60
    while len(list(marks.iterdir())) < 2:
        assert time.monotonic() < end, "the other test did not begin beside this one"
        time.sleep(0.02)
"""
"""Each waits for the other, so they pass only when both run at the same time."""


@pytest.mark.timeout(150)
def test_a_host_that_joins_in_the_middle_gets_what_waits_at_once() -> None:
    """One host for one shard has the first of two; the second goes to a host that joins before the first has ended."""
    with opened_cluster() as cluster:
        cluster.start_scheduler()
        cluster.start_hosts(1, "--phones", "0", "--slots", "1")
        plan = cluster.plan('[tests]\npaths = ["tests"]\n[shards]\ncount = 2\n[retries]\nfailed = 0\n', TWO_TESTS)

        def join() -> None:
            wait_for(lambda: cluster.marked("host-1."), "the first test")
            cluster.launch_host("host-2", "--phones", "0", "--slots", "1")()

        run = cluster.run(plan, join)
        run.check_counts(2)
        assert run.hosts == {"host-1": 1, "host-2": 1}
