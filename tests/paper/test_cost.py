"""What a phone costs: time to boot, memory, and many of them side by side."""

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator_images.direct_adb import DirectAdb
from paper.lab import Lab, RunningPhone, phone, wait_for

MOST_MIB = 60


def memory_mib(running: RunningPhone) -> float:
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def exercise(running: RunningPhone) -> None:
    """An ordinary bit of work."""
    running.shell("am start -n lomi.paper.list/.ListActivity; input swipe 300 900 300 300; uiautomator dump")
    running.adb("exec-out", "screencap", "-p", check=True)


def many(lab: Lab, count: int) -> list[float]:
    """Run phones side by side, work on each, and give their memory in MiB."""
    with ExitStack() as stack:
        phones = [stack.enter_context(phone(lab, f"phone{n}", wait=False)) for n in range(count)]
        for running in phones:
            running.wait_booted()
            exercise(running)
        assert len({running.boot_id() for running in phones}) == count
        return [memory_mib(running) for running in phones]


def test_four_phones_are_small(lab: Lab) -> None:
    """Four phones at once work, each under 60 MiB."""
    assert max(many(lab, 4)) < MOST_MIB


@pytest.mark.deep
@pytest.mark.timeout(300)
def test_sixteen_phones_are_small(lab: Lab) -> None:
    """Sixteen phones at once work on two cores, each under 60 MiB."""
    assert max(many(lab, 16)) < MOST_MIB


def test_memory_and_descriptors_stay_flat(lab: Lab) -> None:
    """Hundreds of calls leave neither descriptors nor much memory behind."""
    with phone(lab) as running:
        exercise(running)
        descriptors = Path(f"/proc/{running.process.pid}/fd")
        before = (len(list(descriptors.iterdir())), memory_mib(running))
        script = b"input tap 100 400\nuiautomator dump /dev/null\ngetprop x\n" * 60
        running.adb("shell", stdin=script, check=True)
        for _ in range(20):
            running.adb("exec-out", "screencap", "-p", check=True)
        wait_for(lambda: len(list(descriptors.iterdir())) <= before[0])
        assert memory_mib(running) - before[1] < 8


async def _quickest(port: int) -> float:
    adb = DirectAdb("127.0.0.1", port)
    times: list[float] = []
    for _ in range(20):
        begun = time.monotonic()
        assert await adb.run("echo x") == b"x\n"
        times.append(time.monotonic() - begun)
    return min(times)


def test_small_answers_are_not_held_back(lab: Lab) -> None:
    """The quickest of twenty calls takes far less than the 40 ms for which TCP would hold small packets back."""
    with phone(lab, flags=("-skip-adb-auth",)) as running:
        assert asyncio.run(_quickest(running.adb_port)) < 0.03


def test_boot_is_quick(lab: Lab) -> None:
    """A phone is ready within seconds even on a busy machine; about one on an idle one."""
    begun = time.monotonic()
    with phone(lab):
        assert time.monotonic() - begun < 10
