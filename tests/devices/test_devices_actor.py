"""The device actor: starts, boots, exits, stops and sweeps, each seen in real processes."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from device_rig import FAST, Stored, a_fleet, a_phone, journal, on_device, spec_for, until
from paper.pairs import port_pairs

from devices import processes
from devices.actor import boot
from devices.actor.ports import PortPairs
from devices.actor.stopping import end_orphan
from devices.adb.shell import ShellLane
from devices.faults import BootFailed, DeviceFault, EmulatorExited, LaunchRefused, NotRunning, StopUnconfirmed
from devices.fleet import Fleet
from devices.phone import Phone
from devices.spec import Identity, Needs, StopRule
from devices.world import Child, World, spawn_process
from lomi.core.processes import ProcessName, is_alive, kernel_boot, name_of


async def fault_of(work: Awaitable[object]) -> DeviceFault | None:
    try:
        await work
    except DeviceFault as fault:
        return fault
    return None


def leaping(sign: Callable[[], bool]) -> Callable[[], float]:
    """A clock that is an hour ahead from its sign on: a deadline that runs then has passed, however quick all went."""
    ahead = 0.0

    def now() -> float:
        nonlocal ahead
        ahead = ahead or 3600.0 * sign()
        return time.monotonic() + ahead

    return now


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What each look at a booting device found to be missing."""
    found: list[str | None] = []
    look = boot.look

    async def noted(lane: ShellLane, services: tuple[str, ...]) -> boot.Look:
        seen = await look(lane, services)
        found.append(seen.unready)
        return seen

    monkeypatch.setattr(boot, "look", noted)
    return found


async def test_starts_coalesce_and_the_identity_is_stored_before_use(tmp_path: Path) -> None:
    """Three callers start one device: one process, one generation, stored before the device was announced to adb."""
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        seen_states: list[str | None] = []

        stored.before = lambda identity: seen_states.append(fleet.server.state_of(identity.ports.serial))
        phone = fleet.phone(spec_for(tmp_path))
        async with asyncio.TaskGroup() as group:
            starts = [group.create_task(phone.start()) for _ in range(3)]
        assert len({start.result().identity for start in starts}) == 1
        assert len(journal(phone, "boot")) == 1
        assert seen_states == [None]
        identity = starts[0].result().identity
        assert is_alive(identity.process)
        await phone.stop()
        assert not is_alive(identity.process)
        assert phone.phase == "stopped"
        assert processes.carriers(identity.marker) == ()
        again = await phone.start()
        assert again.identity.generation != identity.generation


async def test_an_identity_that_cannot_be_stored_ends_the_process(tmp_path: Path) -> None:
    """What was not recorded is not used: the start fails by name, the process is gone, other devices go on."""
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        other = fleet.phone(spec_for(tmp_path, "other"))
        await other.start()

        def full(identity: Identity) -> None:
            raise OSError(28, "No space left on device")

        stored.before = full
        broken = fleet.phone(spec_for(tmp_path))
        fault = await fault_of(broken.start())
        assert fault is not None
        assert fault.reason == "not_recorded"
        assert not broken.process_alive
        assert other.phase == "running"


async def test_a_start_whose_asker_left_leaves_nothing(tmp_path: Path) -> None:
    """The only caller gives up while the device boots: no process stays (pains 15)."""
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        phone = fleet.phone(spec_for(tmp_path, faults='[[fault]]\nname = "never_boots"\n'))
        asking = asyncio.ensure_future(phone.start())
        await until(lambda: phone.phase == "booting")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: not phone.process_alive)
        assert processes.carriers(stored.identities[0].marker) == ()


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        (
            '[[fault]]\nname = "exit_early"\ntext = "qcow2: Image is corrupt; cannot be opened read/write"\n',
            "avd_image_corrupt",
        ),
        ('[[fault]]\nname = "exit_early"\ntext = "No space left on device"\n', "no_space"),
        ('[[fault]]\nname = "exit_early"\ntext = "something new"\n', "emulator_exited"),
    ],
)
async def test_an_early_exit_is_an_answer(tmp_path: Path, faults: str, reason: str) -> None:
    """The emulator's last words become a named failure at once, with the tail kept (pains 17, 19)."""
    spec = spec_for(tmp_path, faults=faults)
    async with a_fleet(tmp_path) as fleet:
        phone = fleet.phone(spec)
        fault = await fault_of(phone.start())
        assert isinstance(fault, EmulatorExited)
        assert fault.reason == reason
        assert fault.evidence.strip()
        assert phone.phase == "failed"
        assert not phone.process_alive


async def test_a_locked_avd_with_a_dead_owner_is_told_at_once(tmp_path: Path) -> None:
    """The emulator's "multiple emulators" exit is no start under way: failed at once, named stale (pains 17)."""
    words = "emulator: ERROR: Running multiple emulators with the same AVD is an experimental feature."
    command = (sys.executable, "-c", f"import sys; sys.stderr.write({words!r}); sys.exit(1)")
    async with a_fleet(tmp_path) as fleet:
        phone = fleet.phone(replace(spec_for(tmp_path), command=command))
        async with asyncio.timeout(phone.spec.readiness.process_s / 2):
            fault = await fault_of(phone.start())
        assert isinstance(fault, EmulatorExited)
        assert fault.reason == "avd_locked_stale"
        assert fault.fields["exit"] == 1


@pytest.mark.parametrize(
    ("faults", "reason", "stage", "sign"),
    [
        ('[[fault]]\nname = "never_boots"\n', "boot_timeout", "boot_flag", "boot_flag"),
        ('[[fault]]\nname = "services_late"\nseconds = 60\n', "boot_timeout", "service_package", "service_package"),
        ('[[fault]]\nname = "systemui_anr"\n', "system_dialog", "system_dialog", "system_dialog"),
        ('[[fault]]\nname = "unauthorized"\n', "adb_unauthorized", None, "unauthorized"),
        ('[[fault]]\nname = "adb_silent"\n', "boot_timeout", "adb", "offline"),
    ],
)
async def test_every_boot_stage_has_a_deadline_and_a_name(
    tmp_path: Path, looks: list[str | None], faults: str, reason: str, stage: str | None, sign: str
) -> None:
    """A phone that hangs at a stage fails in time, by that stage's name, and nothing of it is left (pains 7, 30)."""
    fleets: list[Fleet] = []

    def hangs() -> bool:
        return sign in looks or any(row.state == sign for fleet in fleets for row in fleet.server.rows)

    async with a_fleet(tmp_path, world=World(monotonic=leaping(hangs))) as fleet:
        fleets.append(fleet)
        phone = fleet.phone(spec_for(tmp_path, faults=faults))
        fault = await fault_of(phone.start())
        assert isinstance(fault, BootFailed)
        assert fault.reason == reason
        if stage is not None:
            assert fault.fields["stage"] == stage
        assert not phone.process_alive


async def test_a_boot_loop_is_named(tmp_path: Path) -> None:
    """A boot id that keeps changing is a boot loop, not a time-out (pains 30)."""
    rule = replace(FAST, stable_polls=40, boot_s=30)
    async with a_fleet(tmp_path) as fleet:
        phone = fleet.phone(spec_for(tmp_path, faults='[[fault]]\nname = "boot_loop"\n', readiness=rule))
        fault = await fault_of(phone.start())
        assert fault is not None
        assert fault.reason == "boot_loop"


async def test_preflight_refuses_before_anything_is_started(tmp_path: Path) -> None:
    """No AVD, no disk, no memory, no emulator: each refused by name with numbers (pains 31)."""
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        base = spec_for(tmp_path)
        cases = {
            "no_avd": replace(base, device_id="a", name="missing"),
            "no_space": replace(base, device_id="b", needs=Needs(disk_bytes=1 << 60)),
            "no_memory": replace(base, device_id="c", needs=Needs(ram_bytes=1 << 60)),
            "no_emulator": replace(base, device_id="d", command=("/nonexistent/emulator",)),
        }
        for reason, spec in cases.items():
            fault = await fault_of(fleet.phone(spec).start())
            assert isinstance(fault, LaunchRefused)
            assert fault.reason == reason
        full = await fault_of(fleet.phone(cases["no_space"]).start())
        assert full is not None
        assert full.fields["need"] == 1 << 60
        assert full.fields["have"]
        assert stored.identities == []


async def test_foreign_locks_are_refused_and_own_dead_ones_removed(tmp_path: Path) -> None:
    """A stranger's lock refuses and stays; a lock of our dead process goes, and the device boots (pains 17, 20)."""
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        phone = fleet.phone(spec_for(tmp_path))
        lock = phone.spec.avd_directory / "multiinstance.lock"
        lock.write_text(str(os.getpid()))
        fault = await fault_of(phone.start())
        assert fault is not None
        assert fault.reason == "avd_locked"
        assert lock.exists()
        lock.write_text("4194303")
        stale = await fault_of(phone.start())
        assert stale is not None
        assert stale.reason == "avd_locked_stale"
        assert lock.exists()
        phone.adopt_history(frozenset((ProcessName(4194303, 1, kernel_boot()),)))
        await phone.start()
        await phone.stop()
        assert not lock.exists()


async def test_a_crash_while_running_ends_the_generation(tmp_path: Path) -> None:
    """A killed emulator is seen at once; calls refuse; its locks go; the next start is a new generation."""
    async with a_phone(tmp_path) as phone:
        assert phone.running is not None
        first = phone.running.identity
        os.kill(first.process.pid, signal.SIGKILL)
        await until(lambda: phone.phase == "failed")
        assert isinstance(phone.failure, EmulatorExited)
        with pytest.raises(NotRunning):
            await phone.eyes.snapshot()
        again = await phone.start()
        assert again.identity.generation != first.generation


async def test_a_life_is_stored_before_its_process_exists(tmp_path: Path) -> None:
    """What is stored when a launch returns is enough to end the process: a crash right there leaves no phone behind."""
    stored, born, left = Stored(), list[ProcessName](), list[Identity]()

    async def spawn(argv: Sequence[str], *, environment: Mapping[str, str], output: int, directory: Path) -> Child:
        child = await spawn_process(argv, environment=environment, output=output, directory=directory)
        name = name_of(child.pid)
        assert name is not None
        if processes.MARKER_VARIABLE not in environment:
            return child  # our adb server
        born.append(name)
        left.extend(await fleet.sweep((*stored.announced, *stored.identities)))
        return child

    async with a_fleet(tmp_path, stored, world=World(spawn=spawn)) as fleet:
        fault = await fault_of(fleet.phone(spec_for(tmp_path)).start())
        assert isinstance(fault, EmulatorExited)
        assert left == []
        assert [is_alive(name) for name in born] == [False]


async def test_an_ignored_kill_still_ends_with_the_process_group(tmp_path: Path) -> None:
    """A console that ignores kill, and a child that holds the pipes: stop still observes everything gone (pains 29)."""
    faults = '[[fault]]\nname = "ignored_kill"\n[[fault]]\nname = "held_pipes"\n'
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        phone = fleet.phone(spec_for(tmp_path, faults=faults, stopping=StopRule(exit_s=0.5, term_s=0.5)))
        await phone.start()
        marker = stored.identities[0].marker
        await phone.stop()
        assert phone.phase == "stopped"
        assert processes.carriers(marker) == ()


async def test_a_phone_that_answers_nothing_is_gone_in_the_stated_time(tmp_path: Path) -> None:
    """A frozen emulator costs its stop no more than `silent_s`, ten seconds by default, and is observed gone."""
    assert StopRule().silent_s <= 10
    rule = StopRule(sync_s=1.0, console_s=0.5, exit_s=30.0, term_s=0.5, kill_s=15.0)
    stored = Stored()
    async with a_fleet(tmp_path, stored) as fleet:
        phone = fleet.phone(spec_for(tmp_path, stopping=rule))
        await phone.start()
        identity = stored.identities[0]
        os.kill(identity.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        await phone.stop()
        assert time.monotonic() - began < rule.silent_s
        assert phone.phase == "stopped"
        assert processes.carriers(identity.marker) == ()


async def test_an_unconfirmed_stop_keeps_ownership_and_can_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the end cannot be observed the device is failed, still owned, and a second stop ends it (pains 29)."""
    async with a_phone(tmp_path) as phone:
        identity = phone.identity
        assert identity is not None
        with monkeypatch.context() as patch:

            async def never(names: tuple[ProcessName, ...], **_: object) -> tuple[ProcessName, ...]:
                return names

            patch.setattr(processes, "end_processes", never)
            patch.setattr("devices.actor.stopping._ask_console", never_asked)
            fault = await fault_of(phone.stop())
        assert isinstance(fault, StopUnconfirmed)
        assert fault.effect == "unknown"
        assert phone.phase == "failed"
        assert phone.process_alive
        assert phone.identity == identity
        await phone.stop()
        assert phone.phase == "stopped"
        assert not is_alive(identity.process)


async def never_asked(*_: object) -> bool:
    return False


async def test_offline_and_back_is_the_same_generation_but_a_reboot_is_a_new_one(tmp_path: Path) -> None:
    """A cut connection with the same boot id keeps the generation; a reboot makes a new one."""
    stored = Stored()
    phases: list[str] = []
    async with a_fleet(tmp_path, stored, changed=lambda phone: phases.append(phone.phase)) as fleet:
        phone = fleet.phone(spec_for(tmp_path))
        first = await phone.start()
        await on_device(phone, "cmd lomi_agent fault add cut_connection times=1")
        await fault_of(phone.shell("true"))
        await until(lambda: phases[-2:] == ["offline", "running"])
        assert phone.running is not None
        assert phone.running.identity.generation == first.identity.generation
        await fault_of(phone.shell("reboot"))
        await until(lambda: len(stored.identities) == 2 and phone.phase == "running")
        assert phone.running is not None
        assert phone.running.identity.generation != first.identity.generation
        assert phone.running.identity.process == first.identity.process


async def test_a_bad_quick_boot_snapshot_costs_one_cold_boot(tmp_path: Path, looks: list[str | None]) -> None:
    """A stored snapshot whose services are dead is put aside; the device boots without it and says so (pains 32)."""
    spec = spec_for(tmp_path, faults='[[fault]]\nname = "services_late"\nseconds = 60\n')
    faulty = dict(spec.environment)["PAPER_FAULTS"]
    script = tmp_path / "emulator"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *-no-snapshot-load*) ;; *) export PAPER_FAULTS={faulty};; esac\n'
        f'exec {sys.executable} -m emulator_images.paper "$@"\n'
    )
    script.chmod(0o755)
    environment = tuple(pair for pair in spec.environment if pair[0] != "PAPER_FAULTS")
    async with a_fleet(tmp_path, world=World(monotonic=leaping(lambda: "service_package" in looks))) as fleet:
        phone = fleet.phone(replace(spec, command=(str(script),), environment=environment, quick_boot=True))
        stored = phone.spec.avd_directory / "snapshots" / "default_boot"
        stored.mkdir(parents=True)
        running = await phone.start()
        assert running.snapshot_dropped
        assert not stored.exists()
        assert stored.with_name("default_boot.bad").exists()


async def test_the_sweep_ends_only_what_is_proven_ours(tmp_path: Path) -> None:
    """After a crash: a recorded process tree ends; a process whose start time differs is left alone (pains 21)."""
    world = World()
    marker = world.token()
    nap = "import time; time.sleep(60)"
    command = f"import subprocess,sys; subprocess.Popen([sys.executable, '-c', {nap!r}]); {nap}"
    ours = await asyncio.create_subprocess_exec(
        sys.executable, "-c", command, env={processes.MARKER_VARIABLE: marker}, start_new_session=True
    )
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", nap)
    try:
        await until(lambda: len(processes.carriers(marker)) == 2)
        spec = spec_for(tmp_path)
        name, stranger = name_of(ours.pid), name_of(other.pid)
        assert name is not None
        assert stranger is not None
        ports = PortPairs()
        with ports.hold(grpc=False) as pair:
            identity = Identity(spec.device_id, "g1", name, pair, marker)
            later = ProcessName(stranger.pid, stranger.started + 1, stranger.boot)
            lookalike = replace(identity, process=later, marker=world.token())
        assert await end_orphan(lookalike, world=world)
        assert is_alive(stranger)
        assert await end_orphan(identity, world=world)
        assert processes.carriers(marker) == ()
    finally:
        other.kill()
        await other.wait()
        await ours.wait()


def test_a_process_that_is_becoming_a_program_is_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel shows no environment between the old program's and the new one's: nobody is taken for a stranger."""
    ours, name = tmp_path / "41", ProcessName(41, 7, kernel_boot())
    for entry, environ, cmdline, statm in (
        (ours, b"", b"", b"33 1 0 0 0 33 0\n"),
        (tmp_path / "2", b"", b"", b"0 0 0 0 0 0 0\n"),
        (tmp_path / "42", b"", b"bare\0", b"500 9 0 0 0 0 0\n"),
    ):
        entry.mkdir()
        for file, content in (("environ", environ), ("cmdline", cmdline), ("statm", statm)):
            (entry / file).write_bytes(content)
    waits: list[float] = []

    def becomes(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            (ours / "environ").write_bytes(b"PATH=/bin\0" + processes.MARKER_VARIABLE.encode() + b"=mark\0")

    monkeypatch.setattr(processes, "_PROC", tmp_path)
    monkeypatch.setattr(processes, "name_of", {41: name}.get)
    monkeypatch.setattr(processes.time, "sleep", becomes)
    assert processes.carriers("mark") == (name,)
    assert len(waits) == 3
    assert processes.carriers("another") == ()
    assert len(waits) == 3


def test_port_pairs_are_even_distinct_and_free() -> None:
    """A busy console or adb port is passed over; sixteen holders get sixteen pairs (pains 25)."""
    pairs = port_pairs()
    with ExitStack() as stack:
        with pairs.hold(grpc=False) as free:
            pass
        for offset in (2, 5):
            busy = stack.enter_context(socket.socket())
            busy.bind(("127.0.0.1", free.console + offset))
            busy.listen()
        held = [stack.enter_context(pairs.hold(grpc=True)) for _ in range(16)]
        consoles = [one.console for one in held]
        assert len(set(consoles)) == 16
        assert all(console % 2 == 0 for console in consoles)
        assert not {free.console + 2, free.console + 4} & set(consoles)
    few = PortPairs(free.console, free.console + 2)
    with few.hold(grpc=False) as one, few.hold(grpc=False) as other:
        assert one != other
        # Nobody listens yet, and still nobody else is given what is held.
        with pytest.raises(LaunchRefused), few.hold(grpc=False):
            pass


async def test_launches_do_not_overlap_in_their_critical_part(tmp_path: Path) -> None:
    """Four devices started at once: from spawn to console one at a time, and all of them get ready (pains 28)."""
    inside = 0
    most = 0
    world = World()

    async def spawn(argv: object, **options: object) -> object:
        nonlocal inside, most
        if "-avd" in argv:  # type: ignore[operator]
            inside += 1
            most = max(most, inside)
        return await world.spawn(argv, **options)  # type: ignore[arg-type]

    stored = Stored()

    def booted(phone: Phone) -> None:
        nonlocal inside
        inside -= phone.phase == "booting"

    async with a_fleet(tmp_path, stored, world=replace(world, spawn=spawn), changed=booted) as fleet:
        phones = [fleet.phone(spec_for(tmp_path, f"d{number}")) for number in range(4)]
        async with asyncio.TaskGroup() as group:
            for phone in phones:
                group.create_task(phone.start())
        assert most == 1
        assert len({phone.identity.ports.console for phone in phones if phone.identity}) == 4
