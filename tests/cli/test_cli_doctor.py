"""`lomi doctor` on healthy and on broken homes: each finding is true, and names its cure."""

import grp
import os
import shlex
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Ran, lomi, lomi_in
from harness import ClientEntry, World, opened_world, policy_text

from lomi.broker.preferences import NAME
from lomi.cli.checks.finding import Place
from lomi.cli.checks.machine import kvm, ports
from lomi.cli.checks.programs import adb
from lomi.cli.doctor import LOOKS

Findings = dict[str, dict[str, Any]]


@pytest.fixture
def world() -> Iterator[World]:
    """A home where no broker has run yet."""
    with opened_world(policy_text(ClientEntry(label="qa")), start=False) as opened:
        yield opened


def _doctor(world: World) -> tuple[Ran, Findings]:
    ran = lomi(world, "doctor", "--within", "30", "--json")
    return ran, {finding["name"]: finding for finding in ran.json["findings"]}


def test_a_healthy_machine_has_no_problem(world: World) -> None:
    """Everything is looked at, nothing is a problem, every finding but the good ones names a cure, nothing is made."""
    ran, found = _doctor(world)
    assert ran.code == 0
    assert {name for name, _ in LOOKS} <= found.keys()
    assert all(finding["cure"] for finding in found.values() if finding["state"] != "ok")
    assert found["adb"]["said"].startswith("Android Debug Bridge version")
    assert "Chrom" in found["chromium"]["said"]
    assert ran.json["seconds"] < 10
    assert not world.home.exists()
    text = lomi(world, "doctor", "--within", "30").out
    assert "\x1b" not in text
    assert len(text.splitlines()) == len(found) + sum(finding["cure"] is not None for finding in found.values())


def test_broker_running_and_killed(world: World) -> None:
    """A running broker is seen to listen; after kill -9 the store is sound, and the cure of the dead socket works."""
    world.start()
    _, found = _doctor(world)
    assert str(world.live.pid) in found["store"]["said"]
    assert found["store"]["said"].endswith("which listens")
    world.kill()
    _, found = _doctor(world)
    assert found["store"]["said"] == "sound; no broker runs"
    assert found["leftovers"]["state"] == "note"
    subprocess.run(shlex.split(found["leftovers"]["cure"]), check=True)
    _, found = _doctor(world)
    assert found["leftovers"]["state"] == "ok"


def test_broken_homes_are_named_with_a_cure_that_works(world: World) -> None:
    """A home open to others, damaged preferences and a damaged store are problems; the named cures end them."""
    world.start()
    world.live.stop()
    database = world.home / "agent-control" / "control.sqlite3"
    content = bytearray(database.read_bytes())
    content[:64] = bytes(64)
    database.write_bytes(content)
    (world.home / NAME).touch(mode=0o600)
    (world.home / NAME).write_text("{")
    world.home.chmod(0o777)
    ran, found = _doctor(world)
    assert ran.code == 1
    bad = [finding for finding in found.values() if finding["state"] == "problem"]
    assert [finding["name"] for finding in bad] == ["home", "store", "preferences"]
    assert "can be written by others" in found["home"]["said"]
    for finding in bad:
        subprocess.run(shlex.split(finding["cure"]), check=True)
    ran, found = _doctor(world)
    assert ran.code == 0
    assert (world.home / "agent-control.damaged" / "control.sqlite3").read_bytes() == bytes(content)


def test_a_lock_of_a_dead_phone_is_a_leftover(world: World) -> None:
    """An AVD lock that names a dead process is found, one of a living process is not."""
    avd = world.home / "devices" / "avd" / "phone-1.avd"
    avd.mkdir(parents=True, mode=0o700)
    gone = subprocess.Popen(["true"])
    gone.wait()
    (avd / "hardware-qemu.ini.lock").write_text(str(gone.pid))
    (avd / "multiinstance.lock").write_text(str(os.getpid()))
    _, found = _doctor(world)
    assert "hardware-qemu.ini.lock of phone-1.avd" in found["leftovers"]["said"]
    assert found["leftovers"]["cure"] == f"rm -r {avd / 'hardware-qemu.ini.lock'}"


def test_places_for_sockets_that_are_none(world: World) -> None:
    """Runtime directories whose path is too long or that are not there are a problem for the socket."""
    long = world.root / ("d" * 100)
    long.mkdir()
    environment = world.environment(XDG_RUNTIME_DIR=str(world.root / "absent"), TMPDIR=str(long))
    ran = lomi_in(environment, "doctor", cwd=world.root)
    assert ran.code == 1
    assert "absent can't be written" in ran.out
    assert "over 107" in ran.out


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "an array": lambda path: path.write_bytes(b"[]"),
    "null": lambda path: path.write_bytes(b"null"),
    "huge": lambda path: os.truncate(path, 1 << 33),
    "arrays in arrays": lambda path: path.write_bytes(b"[" * 16_000),
    "a directory": lambda path: (path.unlink(), path.mkdir(), (path / "x").touch()),
    "unreadable": lambda path: path.chmod(0),
    "the key": lambda path: path.with_name("registration-key.pk8").write_bytes(b"no key"),
}


@pytest.mark.parametrize("harm", DAMAGE)
def test_a_damaged_discovery_file_is_a_problem_whose_cure_works(world: World, harm: str) -> None:
    """Beside a broker and without one: the problem is named, nothing is a traceback, and after the cure one starts."""
    world.start()
    DAMAGE[harm](world.live.discovery_file)
    ran, found = _doctor(world)
    assert ran.code == 1
    assert found["discovery"]["state"] == "problem"
    assert "no client finds a broker here, though one runs" in found["discovery"]["said"]
    status = lomi(world, "status")
    assert (status.code, "Traceback" in status.err) == (1, False)
    subprocess.run(["sh", "-c", found["discovery"]["cure"]], check=True)
    assert world.live.wait() == 0
    assert lomi(world, "status").code == 3
    world.start()
    if harm not in ("empty", "a directory", "the key"):
        return
    world.stop()
    if harm != "the key":
        world.live.discovery_file.touch(mode=0o600)
    DAMAGE[harm](world.live.discovery_file)
    ran, found = _doctor(world)
    assert (ran.code, found["store"]["said"]) == (1, "sound; no broker runs")
    if harm == "a directory":
        refused = lomi(world, "up", str(world.project))
        assert refused.err.splitlines()[-2].endswith("the discovery file was refused: not_a_regular_file")
    subprocess.run(["sh", "-c", found["discovery"]["cure"]], check=True)
    ran, found = _doctor(world)
    assert (ran.code, "discovery" in found) == (0, False)
    world.start()


def test_a_program_that_is_slow_is_not_called_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that is busy adb may take its time: that is a warning, and the cure is to wait for longer."""
    slow = tmp_path / "adb"
    slow.write_text("#!/bin/sh\nsleep 1\necho Android Debug Bridge version 1.0.41\n")
    slow.chmod(0o700)
    monkeypatch.setattr("lomi.cli.checks.programs.bundled_adb", lambda: slow)
    (late,) = adb(Place(home=tmp_path, environment={}, patience_s=0.2))
    assert (late.state, late.cure) == ("warning", "lomi doctor --within 30")
    assert "did not tell its version within 0.15 s" in late.said
    (told,) = adb(Place(home=tmp_path, environment={}, patience_s=30))
    assert (told.state, told.said) == ("ok", f"Android Debug Bridge version 1.0.41 at {slow}")


def test_another_adb_server_is_seen_and_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its port is found in the kernel's list: nobody connects to it."""
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        foreign.settimeout(0)
        port = foreign.getsockname()[1]
        monkeypatch.setattr("lomi.cli.checks.machine._OTHERS_ADB", port)
        (finding,) = ports(Place(home=tmp_path, environment={}))
        assert f"another program's adb server listens on {port}" in finding.said
        with pytest.raises(BlockingIOError):
            foreign.accept()
    (finding,) = ports(Place(home=tmp_path, environment={}))
    assert "another program" not in finding.said


def _machine(proc: Path, flags: str, modules: str) -> Place:
    proc.mkdir()
    (proc / "cpuinfo").write_text(f"flags\t\t: fpu {flags}\n")
    (proc / "modules").write_text(f"{modules} 1 0 - Live 0x0\n")
    return Place(home=proc, environment={}, proc=proc, kvm=proc / "kvm")


def test_kvm_that_is_missing_names_what_brings_it(tmp_path: Path) -> None:
    """A CPU's own driver; a container's device where the driver is there; else the phone that needs none."""
    (amd,) = kvm(_machine(tmp_path / "amd", "svm", "ext4"))
    (intel,) = kvm(_machine(tmp_path / "intel", "vmx", "ext4"))
    (container,) = kvm(_machine(tmp_path / "container", "vmx", "kvm_intel"))
    (nothing,) = kvm(_machine(tmp_path / "nothing", "", "ext4"))
    assert (amd.cure, intel.cure) == ("sudo modprobe kvm_amd", "sudo modprobe kvm_intel")
    assert container.cure == f"docker run --device {tmp_path / 'container' / 'kvm'} IMAGE"
    assert nothing.cure == "lomi up . --phone paper-36"
    broken = _machine(tmp_path / "broken", "svm", "kvm_amd")
    broken.kvm.touch()
    (reloaded,) = kvm(broken)
    assert reloaded.cure == "sudo sh -c 'modprobe -r kvm_amd; modprobe kvm_amd'"


def test_kvm_that_is_not_permitted_names_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The group that has the device, else the device itself."""
    place = _machine(tmp_path / "proc", "svm", "kvm_amd")
    place.kvm.touch()
    place.kvm.chmod(0o660)
    theirs = next(group for group in grp.getgrall() if group.gr_gid)

    def refuse(node: Path) -> int:
        raise PermissionError(node)

    monkeypatch.setattr("lomi.cli.checks.machine._kvm_answer", refuse)
    if os.geteuid() == 0:
        os.chown(place.kvm, 0, theirs.gr_gid)
        (finding,) = kvm(place)
        assert finding.cure == f'sudo usermod -aG {theirs.gr_name} "$USER"'
    place.kvm.chmod(0o600)
    (finding,) = kvm(place)
    assert finding.cure == f'sudo chown "$USER" {place.kvm}'


def test_kvm_that_is_absent_and_that_is_no_kvm(tmp_path: Path) -> None:
    """A missing device is a note, a file that opens but makes no machine a warning; neither is called usable."""
    (absent,) = kvm(Place(home=tmp_path, environment={}, kvm=tmp_path / "kvm"))
    assert (absent.state, absent.cure is not None) == ("note", True)
    (tmp_path / "kvm").touch()
    (opens,) = kvm(Place(home=tmp_path, environment={}, kvm=tmp_path / "kvm"))
    assert opens.state == "warning"
    assert "makes no machine" in opens.said
