"""The lab on two simulated phones through real adb: emulator and broker killed under a test, wiped phones, evidence."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from harness.process import processes_that_name
from lab import lab_runs
from lab.lab_runs import Ended

from lomi.lab.report.lanes import lane_times

pytestmark = pytest.mark.timeout(180)
"""Whole runs with brokers and phones of their own: seconds each, and minutes on a machine that does much else."""
PLUGIN = '[tests]\narguments = ["-p", "lomi.lab.plugin"]\n'
FINDING = '''
import os, signal
from pathlib import Path

def processes(*words):
    """Processes of this home whose command line holds all words, and their command lines."""
    home = os.environ["LOMI_HOME"].encode()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            line = (place / "cmdline").read_bytes().split(b"\\0")
            if all(word.encode() in line for word in words) and home in (place / "environ").read_bytes():
                yield int(place.name), line
        except OSError:
            continue

def end(*words):
    for pid, _ in list(processes(*words)):
        os.kill(pid, signal.SIGKILL)

def first_time(name):
    try:
        Path(name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
'''
KILLING = """
import time
from conftest import end, first_time

def test_b_emulator_dies(phone):
    if first_time("emulator-killed"):
        end("-avd", phone.name)
    phone.tap("Form")

def test_c_fails(phone):
    phone.tap("Form")
    assert phone.find("Submit").text == "</pre><script>alert(1)</script>"

def test_d_broker_dies(phone):
    if first_time("broker-killed"):
        end("up", "--headless")
    phone.tap("Form")

def test_e_after_all(phone):
    phone.find("Form")

def test_f_takes_its_time(phone):
    time.sleep(0.5)

def test_g_hangs_in_its_call(phone):
    time.sleep(600)
"""
KILLED_PLAN = f"""
workers = 1
{PLUGIN}
[pool]
phones = 2
[shards]
count = 1
[retries]
infra = 2
[deadlines]
test_s = 20
[broker]
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    root = tmp_path_factory.mktemp("l")
    files = {"tests/conftest.py": FINDING, "tests/test_killing.py": KILLING}
    return lab_runs.run(lab_runs.write_project(root, KILLED_PLAN, files))


def test_dead_emulators_and_brokers_cost_an_attempt_and_no_verdict(killed: Ended) -> None:
    """Each death is an error of the lab in the test that it hit; a fresh generation, and a fresh broker, pass it."""
    verdicts = {
        test.id.partition("::")[2]: [attempt.verdict for attempt in test.attempts] for test in killed.report.tests
    }
    assert verdicts == {
        "test_b_emulator_dies": ["infra_error", "passed"],
        "test_c_fails": ["failed"],
        "test_d_broker_dies": ["infra_error", "passed"],
        "test_e_after_all": ["passed"],
        "test_f_takes_its_time": ["passed"],
        "test_g_hangs_in_its_call": ["failed"],
    }, killed.err
    assert killed.code == 1
    died = killed.test("::test_b_emulator_dies").attempts
    assert set(died[0].generations).isdisjoint(died[1].generations)


def test_a_phones_test_is_told_part_by_part(killed: Ended) -> None:
    """Half a second in the call is the call's, not the set-up's; one that hangs there is told while it does."""
    (attempt,) = killed.test("::test_f_takes_its_time").attempts
    seconds = {phase.part: phase.seconds for phase in attempt.phases}
    assert seconds["test"] >= 0.5
    hung = killed.test("::test_g_hangs_in_its_call").attempts[0]
    assert hung.reason == "over its deadline of 20 s, in its call"


def test_evidence_names_hash_generation_and_receipt(killed: Ended) -> None:
    """The failed test has its picture, hierarchy and trace in the folder of its attempt, each with where it is from."""
    test = killed.test("::test_c_fails")
    (attempt,) = test.attempts
    pictures = [one for one in attempt.artifacts if one.kind == "picture"]
    assert len(pictures) == 1
    assert pictures[0].generation in attempt.generations
    assert pictures[0].operation in {note.operation_id for note in attempt.receipts}
    (path,) = (killed.folder / "attempts" / f"{test.number:04}" / "1").glob("*.png")
    assert path.stat().st_size == pictures[0].bytes


def test_times_of_phones_add_up(killed: Ended) -> None:
    """Row 34: boot, waiting, set-up, test and teardown of each phone are the whole time of the run."""
    lanes = lane_times(killed.report.segments)
    assert [lane.lane for lane in lanes] == ["phone 1", "phone 2"]
    for lane in lanes:
        assert lane.total_s == pytest.approx(killed.report.wall_s, abs=0.1)
        assert lane.seconds["boot"] > 0


def test_the_ledger_is_compared_after_a_restart(killed: Ended, tmp_path: Path) -> None:
    """Row 36: both brokers of the run are gone; their receipts still hold what the report says, until it is forged."""
    code, said = lab_runs.verify(killed.folder)
    assert (code, "its manifest is in the ledger" in said) == (0, True), said
    path = killed.folder / "report.json"
    content = path.read_bytes()
    note = killed.test("::test_c_fails").attempts[0].receipts[0]
    forged = content.replace(note.operation_id.encode(), b"0" * len(note.operation_id))
    manifest, anchor = killed.folder / "manifest.json", killed.folder / "anchor.json"
    kept = {one: one.read_bytes() for one in (manifest, anchor)}
    try:
        _forge(killed.folder, "report.json", forged)
        code, said = lab_runs.verify(killed.folder)
    finally:
        path.write_bytes(content)
        for one, before in kept.items():
            one.write_bytes(before)
    assert code == 1
    assert "is not in the ledger" in said
    assert "the ledger's receipt" in said


def _forge(folder: Path, name: str, content: bytes) -> None:
    """Change a file as somebody would who also mends every hash in the folder."""
    import hashlib

    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"][name] = hashlib.sha256(content).hexdigest()
    whole = json.dumps(manifest).encode()
    (folder / "manifest.json").write_bytes(whole)
    anchor = json.loads((folder / "anchor.json").read_bytes())
    anchor["manifest_sha256"] = hashlib.sha256(whole).hexdigest()
    (folder / "anchor.json").write_text(json.dumps(anchor))


def test_nothing_is_left_running(killed: Ended) -> None:
    """No broker, emulator or worker of the run lives on."""
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line for line in lines if str(killed.folder.parent) in line] == []


WIPING = """
import os
from pathlib import Path
from conftest import processes

def stored(phone):
    ((_, line),) = processes("-avd")
    (folder,) = Path(os.environ["LOMI_HOME"]).rglob(line[line.index(b"-avd") + 1].decode() + ".avd")
    return folder / "what-a-test-left"

def test_first(phone):
    stored(phone).touch()

def test_second(phone):
    assert not stored(phone).exists()
"""


@pytest.mark.parametrize("how", ["wipe", "fresh"])
def test_a_test_never_sees_what_another_left_on_its_phone(tmp_path_factory: pytest.TempPathFactory, how: str) -> None:
    """Between two tests the phone is wiped, or made again; the phones that the run made are deleted at its end."""
    root = tmp_path_factory.mktemp("l")
    plan = f'{PLUGIN}[pool]\nrecycle = "{how}"\nper = "test"\n[broker]\n'
    files = {"tests/conftest.py": FINDING, "tests/test_wiping.py": WIPING}
    ended = lab_runs.run(lab_runs.write_project(root, plan, files))
    assert ended.code == 0, ended.err
    first, second = (test.attempts[0].generations for test in ended.report.tests)
    assert set(first).isdisjoint(second)
    (lane,) = lane_times(ended.report.segments)
    assert lane.seconds["recycle"] > 0
    assert list((root / "h").rglob("*.avd")) == []


def test_phones_that_never_boot_are_named_and_every_test_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Both phones hang in their boot: they are given up in time, and no test is left without a state."""
    root = tmp_path_factory.mktemp("l")
    faults = root / "faults.toml"
    faults.write_text('[[fault]]\nname = "never_boots"\ntext = "services"\n')
    plan = f"{PLUGIN}[pool]\nphones = 2\nboot_s = 2\nboots = 1\n[broker]\n"
    files = {"tests/test_two.py": "def test_a(phone): pass\ndef test_b(phone): pass\n"}
    ended = lab_runs.run(lab_runs.write_project(root, plan, files), PAPER_FAULTS=str(faults))
    assert ended.code == 3
    assert [(test.state, test.attempts) for test in ended.report.tests] == [("infra_error", ()), ("infra_error", ())]
    assert "was given up: 1 boots failed, the last one: it was not ready within 2 s" in ended.report.tests[0].why


def test_a_killed_run_leaves_nothing_that_runs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """SIGKILL of the run itself, in the midst of a test: its broker, its phone and its worker end by themselves."""
    root = tmp_path_factory.mktemp("l")
    text = (
        "import pathlib, time\ndef test_a(phone):\n    pathlib.Path('running').touch()\n"
        "    while True: time.sleep(0.1)\n"
    )
    process = lab_runs.launch(lab_runs.write_project(root, f"{PLUGIN}[pool]\n[broker]\n", {"tests/test_one.py": text}))
    while not (root / "running").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.communicate()
    end = time.monotonic() + 60
    while (left := list(processes_that_name(root))) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def test_a_broker_that_does_not_start_ends_the_run_with_every_test_told(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Without a broker on this home nothing is run, and the report says why."""
    root = tmp_path_factory.mktemp("l")
    files = {"tests/test_two.py": "def test_a(phone): pass\ndef test_b(phone): pass\n"}
    ended = lab_runs.run(lab_runs.write_project(root, f"{PLUGIN}[pool]\nphones = 2\n", files))
    assert ended.code == 3
    assert [test.state for test in ended.report.tests] == ["infra_error", "infra_error"]
    assert "the broker can't be used" in ended.report.tests[0].why
