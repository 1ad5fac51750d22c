"""Each way of failing, on demand: what a client sees, and what the phone's journal says really happened."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.journal import written_lines
from PIL import Image

from emulator_images.paper.faults import BadFaultPlanError, Fault, Faults
from paper.lab import Lab, RunningPhone, end_strays, free_pair, phone, run_to_end, wait_for

PNG = b"\x89PNG\r\n\x1a\n"


def plan(name: str, **fields: object) -> str:
    """The text of one planned fault."""
    quoted = {key: f'"{value}"' if isinstance(value, str) else value for key, value in fields.items()}
    return "".join(["[[fault]]\n", f'name = "{name}"\n', *(f"{key} = {value}\n" for key, value in quoted.items())])


def uniform(raw: bytes) -> bool:
    """Whether a picture has one colour only."""
    with Image.open(io.BytesIO(raw)) as image:
        return all(low == high for low, high in image.getextrema())


def test_plans_count_their_occasions(tmp_path: Path) -> None:
    """A fault lets the first occasions pass, strikes as often as told, and can be forgotten; a bad plan is refused."""
    faults = Faults((Fault("slow_dump", after=1, times=2), Fault("empty_png")))
    assert [faults.strikes("slow_dump") is not None for _ in range(5)] == [False, True, True, False, False]
    assert all(faults.strikes("empty_png") for _ in range(3))
    faults.clear("empty_png")
    assert faults.strikes("empty_png") is None
    for text in ("[[fault]]\nname = 'no_such'", "[[fault]]\nname = 'offline'\nmisspelt = 1", "x ="):
        (tmp_path / "plan.toml").write_text(text)
        with pytest.raises(BadFaultPlanError, match=r"plan\.toml"):
            Faults.load(tmp_path / "plan.toml")


@contextmanager
def unanswered(running: RunningPhone, line: str) -> Iterator[None]:
    """A shell line that gets no answer: its client still waits some time after all that the block waits for."""
    client = subprocess.Popen(
        [running.lab.binary, "-s", running.serial, "shell", line],
        env=running.lab.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(0.5)
    finally:
        client.kill()
        client.wait(10)


def boots_but(lab: Lab, faults: str, question: str, answer: str) -> None:
    with phone(lab, wait=False, faults=faults) as running:

        def told() -> bool:
            lab.announce(running.adb_port)
            return running.adb("shell", question).out.strip() == answer

        wait_for(told)
        assert running.journal("booted") == []


def test_never_boots(lab: Lab) -> None:
    """Adbd answers but the boot flag never comes, and the package service is missing with adb's code for it."""
    with phone(lab, wait=False, faults=plan("never_boots")) as running:
        lab.announce(running.adb_port)
        wait_for(lambda: running.adb("shell", "getprop init.svc.adbd").out == "running\n")
        assert running.shell("getprop sys.boot_completed; getprop init.svc.bootanim") == "\nrunning\n"
        result = running.adb("shell", "pm list packages")
        assert (result.err, result.code) == ("cmd: Can't find service: package\n", 20)


def test_boot_stops_before_the_animation_ends(lab: Lab) -> None:
    """The flag is set, but the boot animation goes on for ever."""
    boots_but(
        lab, plan("never_boots", text="ready"), "getprop sys.boot_completed; getprop init.svc.bootanim", "1\nrunning"
    )


def test_boot_without_adbd_stays_offline(lab: Lab) -> None:
    """A boot that hangs before adbd leaves the device offline."""
    with phone(lab, wait=False, faults=plan("never_boots", text="adbd")) as running:
        lab.announce(running.adb_port)
        wait_for(lambda: "offline" in lab.adb("devices").out)


def test_boot_loop_changes_the_boot_id(lab: Lab) -> None:
    """The phone reboots by itself twice and then stays."""
    with phone(lab, wait=False, faults=plan("boot_loop", times=2, seconds=0.1)) as running:
        wait_for(lambda: len(running.journal("booted")) == 3)
        ids = [line["boot_id"] for line in running.journal("booted")]
        assert len(set(ids)) == 3
        running.wait_booted()
        assert running.boot_id() == ids[2]


def test_slow_boot_and_late_services(lab: Lab) -> None:
    """A boot takes longer by what was planned; services may come later than the boot flag."""
    begun = time.monotonic()
    faults = plan("slow_boot", seconds=1.0) + plan("services_late", seconds=7.0)
    with phone(lab, wait=False, faults=faults) as running:
        running.wait_booted()
        assert time.monotonic() - begun > 1.0
        assert running.shell("getprop sys.boot_completed; service check input") == "1\nService input: not found\n"
        wait_for(lambda: "input: found" in running.shell("service check input"))


def test_offline_for_a_while(lab: Lab) -> None:
    """The device goes offline, and comes back with the same boot id."""
    with phone(lab) as running:
        before = running.boot_id()
        running.shell("cmd lomi_agent fault add offline times=1 seconds=3")
        wait_for(lambda: running.journal("offline"))
        lab.announce(running.adb_port)
        assert running.adb("shell", "echo x", timeout=10).code == 1
        running.wait_booted()
        assert running.boot_id() == before


def test_unauthorized_for_a_while(lab: Lab) -> None:
    """The trusted key counts as a stranger's until somebody allows it."""
    with phone(lab, wait=False, faults=plan("unauthorized", seconds=6.0)) as running:
        lab.announce(running.adb_port)
        wait_for(lambda: "unauthorized" in lab.adb("devices").out)
        running.wait_booted()


def test_system_ui_does_not_respond(lab: Lab) -> None:
    """A dialog of the system takes the focus after the boot."""
    with phone(lab, faults=plan("systemui_anr")) as running:
        assert "Application Not Responding: com.android.systemui}" in running.shell("dumpsys window")
        running.shell("am start -n lomi.paper.form/.FormActivity")
        assert "System UI isn't responding" in running.adb("exec-out", "uiautomator dump /dev/tty").out


PICTURES = [
    ("text_before_png", {}, lambda raw: raw.startswith(b"[Warning] Multiple displays") and PNG in raw),
    ("text_before_png", {"text": "junk"}, lambda raw: raw.startswith(b"junk" + PNG)),
    ("empty_png", {}, lambda raw: raw == b""),
    ("truncated_png", {"value": 100}, lambda raw: len(raw) == 100 and raw.startswith(PNG)),
    ("truncated_png", {}, lambda raw: raw.startswith(PNG) and b"IEND" not in raw),
    ("black_picture", {}, uniform),
]


def test_pictures_go_wrong_once_each(lab: Lab) -> None:
    """Every kind of bad picture comes when planned, and the next picture is good again."""
    with phone(lab) as running:
        good = running.adb("exec-out", "screencap -p").raw
        for name, fields, holds in PICTURES:
            words = " ".join(f"{key}={value}" for key, value in fields.items())
            running.shell(f"cmd lomi_agent fault add {name} times=1 {words}")
            assert holds(running.adb("exec-out", "screencap -p").raw), name
            assert running.adb("exec-out", "screencap -p").raw == good
        running.shell("cmd lomi_agent fault add black_secure times=1")
        running.adb("exec-out", "screencap -p")
        assert " SECURE" in running.shell("dumpsys window windows")
        running.shell("cmd lomi_agent fault add failed_picture times=1")
        assert running.adb("shell", "screencap -p").code == 1


def test_a_renderer_that_draws_nothing_says_so(lab: Lab) -> None:
    """Where drawing is disabled, pictures are black and the property tells."""
    with phone(lab, faults=plan("renderer_disabled")) as running:
        assert running.shell("getprop debug.hwui.drawing_enabled") == "0\n"
        assert uniform(running.adb("exec-out", "screencap -p").raw)


def test_dumps_go_wrong(lab: Lab) -> None:
    """A dump fails without a document, is late, or has noise before it."""
    with phone(lab) as running:
        running.shell(
            "cmd lomi_agent fault add failed_dump times=1; cmd lomi_agent fault add dump_noise after=1 times=1"
        )
        result = running.adb("shell", "uiautomator dump /dev/tty")
        assert (result.out, result.err) == ("", "ERROR: could not get idle state.\n")
        assert running.shell("uiautomator dump /dev/tty").startswith("<?xml")
        assert running.shell("uiautomator dump /dev/tty").startswith("WARNING: linker:")
        running.shell("cmd lomi_agent fault add slow_dump times=1 seconds=0.5")
        begun = time.monotonic()
        running.shell("uiautomator dump /dev/tty")
        assert time.monotonic() - begun >= 0.5


def test_inputs_go_wrong(lab: Lab) -> None:
    """An ignored input changes nothing; one whose reply is lost has landed, and the journal shows each exactly once."""
    with phone(lab) as running:
        running.shell("am start -n lomi.paper.form/.FormActivity; cmd lomi_agent fault add ignored_input times=1")
        running.shell("input tap 300 230")
        assert 'focused="true"' not in running.adb("exec-out", "uiautomator dump /dev/tty").out
        running.shell("cmd lomi_agent fault add lost_reply times=1")
        with unanswered(running, "input tap 300 230"):
            wait_for(lambda: len(running.journal("input")) == 2)
        assert 'focused="true"' in running.adb("exec-out", "uiautomator dump /dev/tty").out
        assert [(line["hit"], line["ignored"]) for line in running.journal("input")] == [("", True), ("name", False)]


def test_installs_and_disk_go_wrong(lab: Lab) -> None:
    """A planned refusal carries its code; a full disk is full for files and for installs."""
    with phone(lab) as running:
        running.shell("cmd lomi_agent fault add disk_full")
        assert "No space left on device" in running.adb("shell", "echo x > /sdcard/x").err
        assert "100%" in running.shell("df /data")


def test_the_name_comes_late(lab: Lab) -> None:
    """For a while the console does not know the AVD's name."""
    with phone(lab, wait=False, faults=plan("name_late", seconds=5.0)) as running:
        assert running.adb("emu", "avd", "name").out.replace("\r", "") == "OK\n"
        wait_for(lambda: "phone" in running.adb("emu", "avd", "name").out)


def test_start_refusals(lab: Lab) -> None:
    """Taken ports, a stale lock that is believed, and a corrupt image end the start with the real words."""
    directory = lab.make_avd("phone")
    for name, words in (
        ("port_taken", "too many emulator instances"),
        ("stale_lock", "Running multiple emulators with the same AVD"),
        ("exit_early", "qcow2: Image is corrupt; cannot be opened read/write"),
    ):
        (directory / "multiinstance.lock").write_text("999999")
        (lab.root / "plan.toml").write_text(plan(name))
        console, adb_port = free_pair()
        arguments = ["-avd", "phone", "-ports", f"{console},{adb_port}"]
        code, text = run_to_end(lab, arguments, PAPER_FAULTS=str(lab.root / "plan.toml"))
        assert code == 1
        assert words in text


def test_a_kill_that_is_ignored(lab: Lab) -> None:
    """The console says it kills, but the process lives on; so it does after the first SIGTERM."""
    faults = plan("ignored_kill", times=1) + plan("ignored_term", times=1)
    with phone(lab, faults=faults) as running:
        assert running.adb("emu", "kill").out.startswith("OK: killing emulator")
        wait_for(lambda: running.journal("kill"))
        running.process.send_signal(signal.SIGTERM)
        assert running.shell("echo alive") == "alive\n"
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(10) == 0


def test_a_child_holds_the_pipes(lab: Lab) -> None:
    """After the emulator's end a child of it still holds its output open."""
    lab.make_avd("phone")
    (lab.root / "plan.toml").write_text(plan("held_pipes", seconds=30.0))
    pair = free_pair()
    environment = {**lab.environment, "PAPER_FAULTS": str(lab.root / "plan.toml")}
    process = subprocess.Popen(
        [sys.executable, "-m", "emulator_images.paper", "-avd", "phone", "-ports", f"{pair[0]},{pair[1]}"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    journal = lab.root / "avd" / "phone.avd" / "paper-journal.jsonl"

    def children() -> list[int]:
        return [int(str(line["pid"])) for line in written_lines(journal) if line["event"] == "child"]

    wait_for(children)
    (child,) = children()
    process.terminate()
    assert process.wait(10) == 0
    try:
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        while process.stderr.read():
            pass
        assert process.stderr.read() is None  # nothing to read, and not the end either
    finally:
        os.kill(child, signal.SIGKILL)
        process.stderr.close()  # type: ignore[union-attr]


def test_a_sudden_death_leaves_its_files(lab: Lab) -> None:
    """A dying emulator prints its words, exits with its code and leaves locks and discovery file behind."""
    with phone(lab) as running:
        running.shell("cmd lomi_agent fault add dies value=139 'text=Segmentation fault'")
        assert running.process.wait(10) == 139
        assert "Segmentation fault" in running.stderr()
        assert (running.directory / "multiinstance.lock").exists()
        assert list((lab.root / "run").rglob("pid_*.ini"))


def test_a_stale_discovery_file_is_left(lab: Lab) -> None:
    """The discovery file can outlive its process."""
    with phone(lab, faults=plan("stale_pid_file")) as running:
        pass
    (left,) = (lab.root / "run").rglob("pid_*.ini")
    assert left.name == f"pid_{running.process.pid}.ini"


def test_another_adb_replaces_the_server(lab: Lab) -> None:
    """A foreign adb kills the server that a phone was told of."""
    with phone(lab) as running:
        running.shell(f"cmd lomi_agent fault add adb_server_replaced times=1 delay=0.3 text={lab.root}/s")
        wait_for(lambda: running.journal("adb_server_replaced"))
        # The next client puts a server of its own in its place, and that one knows of no phone.
        wait_for(lambda: running.adb("get-state").code != 0 and any("fork" in words for words in end_strays(lab.root)))


def test_connections_are_cut_or_silent(lab: Lab) -> None:
    """A connection cut under a call fails that call; a silent one never becomes a device."""
    with phone(lab) as running:
        running.shell("cmd lomi_agent fault add cut_connection times=1")
        assert running.adb("shell", "echo x").code != 0
        running.wait_booted()
        running.shell("cmd lomi_agent fault add shell_hangs times=1")
        with unanswered(running, "echo x"):
            wait_for(lambda: running.journal("shell_hangs"))
        assert running.shell("echo free") == "free\n"
    with phone(lab, "mute", wait=False, faults=plan("adb_silent")) as running:
        lab.announce(running.adb_port)
        wait_for(lambda: "offline" in lab.adb("devices").out)


def test_display_goes_off_by_itself(lab: Lab) -> None:
    """The display turns off after a while."""
    with phone(lab) as running:
        running.shell("cmd lomi_agent fault add display_off times=1 delay=0.2")
        wait_for(lambda: "Asleep" in running.shell("dumpsys power"))


def test_device_latency_is_seeded(lab: Lab) -> None:
    """With the device profile a dump takes about 450 ms, a picture 150 ms and an input 40 ms."""
    with phone(lab, PAPER_LATENCY="device") as running:
        script = b"uiautomator dump /sdcard/d >/dev/null\nscreencap -p /sdcard/p\ninput tap 1 1\nexit\n"
        begun = time.monotonic()
        running.adb("shell", stdin=script, check=True)
        assert 0.55 < time.monotonic() - begun < 15
