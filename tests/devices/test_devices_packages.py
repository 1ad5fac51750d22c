"""Packages, launches and logs, judged by the phone's own records."""

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from apk_maker import make_apk
from device_rig import a_fleet, a_phone, journal, on_device, spec_for

from devices.app_processes import AppProcesses
from devices.faults import DeviceFault, PackageRefused
from devices.hands import RefAt
from devices.state import crash_entry

FORM = "lomi.paper.form"
TALK = "lomi.test.talk"
TALKER = """
package = "lomi.test.talk"
label = "Talk"
[[screens]]
activity = ".Main"
title = "Talk"
[[screens.items]]
kind = "button"
id = "say"
text = "Say"
tap = [{ do = "log", target = "talk", value = "hello" }]
"""


async def fault_of(work: Awaitable[object]) -> DeviceFault | None:
    try:
        await work
    except DeviceFault as fault:
        return fault
    return None


def apk_file(tmp_path: Path, **options: object) -> Path:
    path = tmp_path / "app.apk"
    path.write_bytes(make_apk("lomi.test.app", **options))  # type: ignore[arg-type]
    return path


async def test_an_install_tells_versions_before_and_after(tmp_path: Path) -> None:
    """A streamed install of a real APK, then an update: versions before and after come from the phone."""
    async with a_phone(tmp_path) as phone:
        first = await phone.packages.install(apk_file(tmp_path, code=3, name="3.0", padding=2 << 20))
        assert first.before is None
        assert first.after is not None
        assert (first.after.name, first.after.code) == ("3.0", "3")
        second = await phone.packages.install(apk_file(tmp_path, code=4, name="4.0"))
        assert (second.before, second.after.name if second.after else "") == (first.after, "4.0")
        launched = await phone.packages.launch("lomi.test.app")
        assert launched.package == "lomi.test.app"
        focus = await on_device(phone, "dumpsys window | grep mCurrentFocus")
        assert "lomi.test.app" in focus


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"code": 1}, "INSTALL_FAILED_VERSION_DOWNGRADE"),
        ({"code": 9, "certificate": b"other"}, "INSTALL_FAILED_UPDATE_INCOMPATIBLE"),
        ({"code": 9, "min_sdk": 99}, "INSTALL_FAILED_OLDER_SDK"),
        ({"code": 9, "abi": "mips"}, "INSTALL_FAILED_NO_MATCHING_ABIS"),
    ],
)
async def test_an_install_failure_keeps_the_installed_version(
    tmp_path: Path, options: dict[str, object], code: str
) -> None:
    """The installer's code is told, with effect none, and what was installed stays."""
    async with a_phone(tmp_path) as phone:
        await phone.packages.install(apk_file(tmp_path, code=5))
        fault = await fault_of(phone.packages.install(apk_file(tmp_path, **options)))
        assert isinstance(fault, PackageRefused)
        assert fault.reason == "install_failed"
        assert fault.fields["code"] == code
        assert fault.effect == "none"
        version = await phone.packages.version("lomi.test.app")
        assert version is not None
        assert version.code == "5"


async def test_installs_of_a_host_are_capped(tmp_path: Path) -> None:
    """Four installs asked for at once: never more than two run, and all of them end well (pains 28)."""
    path = apk_file(tmp_path)
    async with a_fleet(tmp_path) as fleet:
        phones = [fleet.phone(spec_for(tmp_path, f"d{number}")) for number in range(4)]
        async with asyncio.TaskGroup() as group:
            for phone in phones:
                group.create_task(phone.start())
        inside, most = 0, 0

        class Watch(AbstractAsyncContextManager[None]):
            async def __aenter__(self) -> None:
                nonlocal inside, most
                inside += 1
                most = max(most, inside)

            async def __aexit__(self, *_: object) -> None:
                nonlocal inside
                inside -= 1

        for phone in phones:
            await on_device(phone, "cmd lomi_agent fault add slow_install seconds=0.3")
        async with asyncio.TaskGroup() as group:
            done = [group.create_task(phone.packages.install(path, effect=Watch())) for phone in phones]
        assert all(one.result().after is not None for one in done)
        assert most == 2


async def test_what_is_no_apk_is_refused_before_a_byte_is_sent(tmp_path: Path) -> None:
    """Text, a zip without manifest and a truncated APK never reach the phone."""
    async with a_phone(tmp_path) as phone:
        before = len(journal(phone))
        for raw in (b"no zip", make_apk("lomi.test.app")[:200], b"PK\x05\x06" + b"\0" * 18):
            path = tmp_path / "bad.apk"
            path.write_bytes(raw)
            fault = await fault_of(phone.packages.install(path))
            assert fault is not None
            assert fault.reason == "bad_apk"
        assert len(journal(phone)) == before


async def test_launch_proves_delivery_or_says_why_not(tmp_path: Path) -> None:
    """Unknown packages, packages without launcher, missing activities and hostile names are told apart (pains 48)."""
    async with a_phone(tmp_path) as phone:
        assert (await phone.packages.launch(FORM, ".FormActivity")).activity == ".FormActivity"
        cases = [
            (("no.such.app", None), "not_installed"),
            ((FORM, ".Missing"), "not_delivered"),
            (("a;reboot", None), "bad_name"),
            ((FORM, ".X$(reboot)"), "bad_name"),
            ((FORM, "x`id`"), "bad_name"),
        ]
        for (package, activity), reason in cases:
            fault = await fault_of(phone.packages.launch(package, activity))
            assert fault is not None
            assert fault.reason == reason, package
        assert phone.phase == "running"


async def test_log_pages_follow_one_snapshot(tmp_path: Path) -> None:
    """Pages of one process' lines, a cursor that goes on in the same snapshot, and a typed end of it."""
    async with a_phone(tmp_path, apps=TALKER) as phone:
        await phone.packages.launch(TALK)
        snapshot = await phone.eyes.snapshot()
        index = next(node.index for node in snapshot.tree.nodes if snapshot.tree.labels[node.index] == "Say")
        await phone.hands.tap(RefAt(snapshot.id, snapshot.refs[index]), count=3)
        page = await phone.logs.page(TALK, priority="V", limit=1)
        assert len(page.lines) == 1
        assert str(page.process_id) in page.lines[0]
        everything = list(page.lines)
        while page.next_cursor is not None:
            page = await phone.logs.page(TALK, priority="V", limit=1, cursor=page.next_cursor)
            everything += page.lines
        assert [line.rpartition(": ")[2] for line in everything].count("hello") == 3
        fault = await fault_of(phone.logs.page(TALK, priority="V", limit=1, cursor="zz.1"))
        assert fault is not None
        assert fault.reason == "bad_cursor"
        absent = await fault_of(phone.logs.page("no.such.app", priority="V", limit=1))
        assert absent is not None
        assert absent.reason == "not_installed"
        await on_device(phone, f"am force-stop {TALK}")
        dead = await fault_of(phone.logs.page(TALK, priority="V", limit=1))
        assert dead is not None
        assert dead.reason == "no_process"


async def test_the_last_process_s_log_is_given_only_while_its_number_is_its_own(tmp_path: Path) -> None:
    """Ended by the system: its last lines, and that it ended. Once another process has that number: nothing of it."""
    async with a_phone(tmp_path, apps=TALKER) as phone:
        await phone.packages.launch(TALK)
        snapshot = await phone.eyes.snapshot()
        index = next(node.index for node in snapshot.tree.nodes if snapshot.tree.labels[node.index] == "Say")
        await phone.hands.tap(RefAt(snapshot.id, snapshot.refs[index]))
        await on_device(phone, f"am kill {TALK}")
        page = await phone.logs.page(TALK, priority="V", limit=64)
        assert page.ended
        assert [line.rpartition(": ")[2] for line in page.lines] == [
            "hello", f"--------- process {page.process_id} has ended"
        ]  # fmt: skip
        other = int((await on_device(phone, "pidof com.android.systemui")).strip())
        assert phone.identity is not None
        phone.logs._processes.note(phone.identity.generation, TALK, other)
        taken = await fault_of(phone.logs.page(TALK, priority="V", limit=64))
        assert taken is not None
        assert taken.reason == "no_process"


async def test_an_earlier_crash_is_not_taken_for_the_last_process(tmp_path: Path) -> None:
    """Crashed unseen, launched anew and ended by the system: the log is that of the process which ended last."""
    async with a_phone(tmp_path, apps=TALKER) as phone:
        await on_device(phone, f"am start -W -n {TALK}/.Main")
        crashed = int(await on_device(phone, f"pidof {TALK}"))
        await on_device(phone, f"cmd lomi_agent crash {TALK}")
        await phone.packages.launch(TALK)
        last = int(await on_device(phone, f"pidof {TALK}"))
        await on_device(phone, f"am kill {TALK}")
        page = await phone.logs.page(TALK, priority="V", limit=64)
        assert (page.process_id, page.ended, crashed != last) == (last, True, True)
        assert page.lines == (f"--------- process {last} has ended",)


def test_a_process_that_runs_again_is_the_last_one() -> None:
    """What runs now came after all that the crash log tells of, also one whose number was seen before."""
    log = "11-30 08:00:00.000  41  41 E AndroidRuntime: Process: my.app, PID: 41\n"
    seen = AppProcesses()
    for process_id in (40, *range(50, 58), 40):
        seen.note_living("g1", "my.app", process_id, log)
        seen.note("g1", "my.app", 41)
        assert seen.last("g1", "my.app") == process_id
    seen.note("g1", "my.app", 42)
    assert seen.last("g1", "my.app") == 42
    assert seen.last("g2", "my.app") is None


def test_a_native_crash_is_told_by_the_process_that_reports_it() -> None:
    """The lines of the crashed process, and the report that another one writes of it; nothing of other crashes."""
    log = (
        "11-30 08:00:00.000  2007  2007 E AndroidRuntime: its own\n"
        "11-30 08:00:00.001  3100  3100 F DEBUG   : *** *** ***\n"
        "11-30 08:00:00.002  3100  3100 F DEBUG   : pid: 2007, tid: 2009, name: worker  >>> my.app <<<\n"
        "11-30 08:00:00.003  3200  3200 F DEBUG   : pid: 2008, tid: 2008, name: other  >>> other.app <<<\n"
    )
    assert [line.split()[2] for line in crash_entry(log, 2007)] == ["2007", "3100", "3100"]
