"""The pytest plugin on a running broker: effects, evidence, lost devices, workers, resets."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from harness import World
from harness.site import Site, serving
from lab_world import journal, lab_world
from plugin_runs import KILL_PHONE, environment_of, run_inner

from lomi.lab.plugin.options import read_options

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(180)
"""A run starts pytest, its workers and phones: seconds on a quiet machine, a minute on a crowded one."""


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A local page."""
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def world(site: Site) -> Iterator[World]:
    """A broker with two paper phones."""
    with lab_world(site, ("paper-36-1", "paper-36-2")) as made:
        yield made


FORM = """
    def test_form(phone):
        phone.launch("lomi.paper.form")
        phone.type("from pytest", into="name")
        phone.tap("Submit")
        phone.wait_for("Submitted")
"""


def test_fixtures_act_on_the_real_thing_and_every_test_has_its_record(
    pytester: pytest.Pytester, world: World, site: Site
) -> None:
    """A phone, a page and a terminal: journal, server log and shell show each effect; the lease ends with the test."""
    source = (
        FORM.replace("from pytest", "of this test alone")
        + f"""
    def test_lease_is_over(lab):
        import lomi
        with lomi.connect() as other:
            assert other.phone("paper-36-1", start=False).leased
    def test_page(page):
        page.goto("{site.origin}/")
        page.fill("Text", "from a fixture")
        page.click("Send")
        assert page.wait_for_element("button", "Send")
    def test_terminal(terminal):
        assert terminal.run("echo $((6 * 7))", check=True).output == "42\\n"
    def test_skipped(phone):
        import pytest
        pytest.skip("not today")
    def test_plain():
        pass
    """
    )
    kept = ("--screenshot=on", "--tracing=on")
    ran = run_inner(pytester, source, "--phone", "paper-36-1", *kept, environment=environment_of(world))
    ran.result.assert_outcomes(passed=5, skipped=1)
    submitted = [line["fields"]["name"] for line in journal(world) if line["event"] == "submit"]
    assert submitted.count("of this test alone") == 1
    assert site.count("/submit", text="from a fixture") == 1
    assert ran.outcomes() == [
        ("test_form", 1, "passed"),
        ("test_lease_is_over", 1, "passed"),
        ("test_page", 1, "passed"),
        ("test_terminal", 1, "passed"),
        ("test_skipped", 1, "skipped"),
    ]
    first = ran.records[0]
    assert first.broker == world.live.instance_id
    assert [device.name for device in first.leased] == ["paper-36-1"]
    assert first.receipts[-1].tool == "lomi_panel_control"
    assert {receipt.state for receipt in first.receipts} == {"succeeded"}
    assert first.times.boot_s > first.times.queue_s >= 0
    assert all(record.final for record in ran.records)
    assert {one.kind for record in ran.records[:3:2] for one in record.artifacts} == {"picture", "trace"}


def test_a_failing_test_leaves_its_evidence_beside_its_report(pytester: pytest.Pytester, world: World) -> None:
    """Picture, hierarchy, log, receipts and trace: in the record by hash, in the report's text, in the JUnit file."""
    source = FORM + "        assert phone.shows('Thank you')\n"
    ran = run_inner(pytester, source, environment=environment_of(world))
    ran.result.assert_outcomes(failed=1)
    (record,) = ran.records
    assert (record.outcome, record.cause.message[:14] if record.cause else "") == ("failed", "AssertionError")
    kept = {artifact.kind: artifact for artifact in record.artifacts}
    assert kept.keys() == {"picture", "hierarchy", "logcat", "receipts", "trace"}
    contents = {kind: (ran.folder / "left" / one.path).read_bytes() for kind, one in kept.items()}
    for kind, one in kept.items():
        assert (hashlib.sha256(contents[kind]).hexdigest(), len(contents[kind])) == (one.sha256, one.byte_length)
        assert str(ran.folder / "left" / one.path) in ran.output
    assert contents["picture"].startswith(b"\x89PNG")
    assert kept["picture"].generation == record.leased[0].generation
    assert any(node["text"] == "Submitted" for node in json.loads(contents["hierarchy"])["nodes"])
    assert b"submitted" in contents["logcat"]
    traced = [json.loads(line) for line in contents["trace"].splitlines()]
    assert [line["operationId"] for line in traced] == [one["operationId"] for one in json.loads(contents["receipts"])]
    assert any("Submitted" in changed for changed in traced[-1]["changed"])
    told = {one.get("name"): one.get("value") for one in ran.cases()[0].iter("property")}
    assert told["lomi.outcome"] == "failed"
    assert told["lomi.picture"] == str(ran.folder / "left" / kept["picture"].path)


def test_an_error_that_has_no_words_is_a_failure_like_any_other(pytester: pytest.Pytester, world: World) -> None:
    """What UTF-8 can't hold, and an error that can't say what it is: the tests failed, and pytest goes on."""
    source = r"""
    class Mute(Exception):
        def __str__(self): raise RuntimeError("not even this")
    def test_surrogate(phone): raise AssertionError("half \ud800")
    def test_mute(phone): raise Mute
    def test_after(phone): pass
    """
    ran = run_inner(pytester, source, environment=environment_of(world))
    ran.result.assert_outcomes(failed=2, passed=1)
    said = [record.cause.message for record in ran.records if record.cause is not None]
    assert said[0] == "AssertionError: half \\ud800"
    assert said[1].startswith("Mute: <")


def test_options_say_what_is_left_out(pytester: pytest.Pytester, world: World) -> None:
    """`--screenshot off --tracing off`: a failing test leaves neither picture nor trace."""
    failing = FORM + "        assert False\n"
    off = run_inner(pytester, failing, "--screenshot=off", "--tracing=off", environment=environment_of(world))
    assert {one.kind for one in off.records[0].artifacts} == {"hierarchy", "logcat", "receipts"}


def test_a_killed_phone_is_no_failure_and_the_next_attempt_has_a_fresh_one(
    pytester: pytest.Pytester, world: World
) -> None:
    """Kill -9 in the test: infra, then the same test on the next generation; one that always dies is an error."""
    source = (
        f"HOME = {str(world.root)!r}\n"
        + KILL_PHONE
        + """
TRIES = []
def test_dies_once(phone):
    TRIES.append(phone.generation)
    if len(TRIES) == 1:
        kill_phone(phone)
    phone.tap("Form")
def test_always_dies(phone):
    kill_phone(phone)
    assert phone.shows("Form")
def test_after(phone):
    phone.tap("Form")
"""
    )
    ran = run_inner(pytester, source, environment=environment_of(world))
    outcomes = ran.result.parseoutcomes()
    assert outcomes == {"passed": 2, "errors": 1, "infra": 3}
    assert ran.outcomes() == [
        ("test_dies_once", 1, "infra_error"),
        ("test_dies_once", 2, "passed"),
        ("test_always_dies", 1, "infra_error"),
        ("test_always_dies", 2, "infra_error"),
        ("test_after", 1, "passed"),
    ]
    assert [record.final for record in ran.records] == [False, True, False, True, True]
    lives = [record.leased[0].generation for record in ran.records]
    assert lives[0] < lives[1]
    assert lives == sorted(lives)
    assert all(record.cause is not None for record in ran.records if record.outcome == "infra_error")
    cases = {case.get("name"): [part.tag for part in case if part.tag != "properties"] for case in ran.cases()}
    assert cases == {"test_dies_once": [], "test_always_dies": ["error"], "test_after": []}


def test_each_worker_has_a_phone_of_its_own_also_after_a_crash(pytester: pytest.Pytester, world: World) -> None:
    """Two workers, two phones; the one that replaces a crashed worker takes over that one's phone."""
    source = """
import os, pathlib, time, pytest
HERE = pathlib.Path(__file__).parent
@pytest.mark.parametrize("number", range(6))
def test_each(phone, number):
    (HERE / f"began-{os.environ['PYTEST_XDIST_WORKER']}").touch()
    while len(list(HERE.glob("began-*"))) < 2:
        time.sleep(0.02)
    phone.launch("lomi.paper.form")
    if os.environ["PYTEST_XDIST_WORKER"] == "gw1" and phone.shows("Submit"):
        os._exit(9)
"""
    ran = run_inner(pytester, source, "-n", "2", environment=environment_of(world))
    outcomes = ran.result.parseoutcomes()
    assert outcomes == {"failed": 1, "passed": 5}, ran.output
    phones: dict[str, set[str]] = {}
    for record in ran.records:
        phones.setdefault(record.worker, set()).update(device.name for device in record.leased)
    crashed = phones.pop("gw1")
    assert crashed == set()
    assert phones["gw0"] == {"paper-36-1"}
    assert all(names == {"paper-36-2"} for worker, names in phones.items() if worker != "gw0"), phones
    (lost,) = [record for record in ran.records if record.worker == "gw1"]
    assert (lost.outcome, lost.cause.reason if lost.cause else None) == ("failed", "worker_crashed")


def test_a_worker_without_a_phone_of_its_own_waits_for_one(pytester: pytest.Pytester, world: World) -> None:
    """Two workers, a pool of one: every test gets it in its turn, and the wait is told as such."""
    # Whoever has the phone first keeps it until the other worker has come to wait for it.
    source = """
import pathlib, pytest, time, types
from lomi.lab.plugin import desk
WAITED = pathlib.Path(__file__).with_name("waited")
def paused(seconds):
    WAITED.touch()
    time.sleep(seconds)
desk.time = types.SimpleNamespace(monotonic=time.monotonic, sleep=paused)
@pytest.mark.parametrize("number", range(4))
def test_each(phone, number):
    while not WAITED.exists():
        time.sleep(0.02)
    phone.go("home")
"""
    ran = run_inner(pytester, source, "-n", "2", "--pool", "1", environment=environment_of(world))
    ran.result.assert_outcomes(passed=4)
    assert {device.name for record in ran.records for device in record.leased} == {"paper-36-1"}
    assert any(record.times.queue_s > 0 for record in ran.records)


@pytest.mark.parametrize(("how", "lives", "remembers"), [("restart:module", 1, True), ("wipe", 2, False)])
def test_a_phone_is_made_as_new_where_that_was_asked_for(
    pytester: pytest.Pytester, world: World, how: str, lives: int, remembers: bool
) -> None:
    """Once for a module or before each test; what was typed is gone after a wipe and there without one."""
    source = """
def test_first(phone):
    phone.launch("lomi.paper.form")
    phone.tap("Submit")
    phone.wait_for("Submitted")
def test_second(phone):
    phone.launch("lomi.paper.form")
    assert phone.shows("Submitted") is REMEMBERS
""".replace("REMEMBERS", str(remembers))
    ran = run_inner(pytester, source, "--phone-reset", how, environment=environment_of(world))
    ran.result.assert_outcomes(passed=2)
    assert len({record.leased[0].generation for record in ran.records}) == lives


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--pool=0", "at least 1"),
        ("--infra-retries=-1", "at least 0"),
        ("--phone-reset=often", "one of reuse, restart, wipe, fresh"),
    ],
)
def test_what_can_not_be_honoured_is_refused(pytester: pytest.Pytester, argument: str, said: str) -> None:
    """A pool of none, an unknown reset: a usage error that says why, before anything runs."""
    with pytest.raises(pytest.UsageError, match=said):
        read_options(pytester.parseconfig(argument))


def test_nothing_heavy_comes_with_every_pytest() -> None:
    """The plugin, as every pytest of the environment loads it, brings no module of ours but its own."""
    program = (
        "import sys, pytest; before = set(sys.modules); import lomi.lab.plugin, lomi.lab.plugin.fixtures; "
        "print(*sorted(set(sys.modules) - before))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in said if name == "lomi" or name.startswith("lomi.")}
    assert ours <= {"lomi", "lomi.lab", "lomi.lab.plugin", *(f"lomi.lab.plugin.{one}" for one in LIGHT)}
    assert not {"msgspec", "cryptography", "click"}.intersection(said)


def test_a_process_that_uses_devices_does_not_load_the_pool() -> None:
    """It is the lab's own; each process of a run would load it for itself."""
    program = "import sys, pytest, lomi.lab.plugin.desk; print(*sorted(sys.modules))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    unused = {"lomi.lab.pool", "lomi.lab.phones", "lomi.lab.plan", "lomi.demo.broker"}
    assert unused.intersection(said) == set()


LIGHT = ("fixtures", "options", "stations")
