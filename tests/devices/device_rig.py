"""A fleet over paper phones for tests, and their journals: the phone's own record of what reached it."""

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.journal import written_lines
from paper.lab import end_strays
from paper.pairs import port_pairs

import devices
from devices.fleet import Fleet, open_fleet
from devices.phone import Phone
from devices.spec import UNBORN, DeviceSpec, Display, Identity, Readiness, StopRule

ROOT = Path(devices.__file__).parent.parent
DISPLAY = Display(720, 1280, 320)
FAST = Readiness(stable_polls=2, poll_s=0.02, process_s=20, adb_s=20, boot_s=20, offline_grace_s=30)


@dataclass
class Stored:
    """What the fleet's owner stored: identities in order of arrival, those of processes to come apart.

    `before` may look at an identity first, or raise.
    """

    announced: list[Identity] = field(default_factory=list)
    identities: list[Identity] = field(default_factory=list)
    before: Callable[[Identity], None] = lambda _identity: None
    counter: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def next_generation(self, device_id: str) -> str:
        assert device_id
        return f"g{next(self.counter)}"

    async def on_identity(self, identity: Identity) -> None:
        if identity.process == UNBORN:
            self.announced.append(identity)
            return
        self.before(identity)
        self.identities.append(identity)


def make_avd(home: Path, name: str, *, target: str = "android-34") -> None:
    """Write the two files that make an AVD."""
    directory = home / f"{name}.avd"
    directory.mkdir(parents=True)
    (home / f"{name}.ini").write_text(f"avd.ini.encoding=UTF-8\npath={directory}\ntarget={target}\n")
    width, height, density = DISPLAY.width, DISPLAY.height, DISPLAY.density
    (directory / "config.ini").write_text(
        f"hw.lcd.width={width}\nhw.lcd.height={height}\nhw.lcd.density={density}\nabi.type=x86_64\nhw.keyboard=yes\n"
    )


def spec_for(tmp: Path, name: str = "one", *, apps: str = "", faults: str = "", **changes: object) -> DeviceSpec:
    """A paper device with its AVD below `tmp`; `apps` and `faults` are TOML texts for paper."""
    home = tmp / "avd"
    if not (home / f"{name}.ini").exists():
        make_avd(home, name)
    environment = [("PYTHONPATH", str(ROOT)), ("PAPER_SEED", "7")]
    if apps:
        (tmp / "apps").mkdir(exist_ok=True)
        (tmp / "apps" / f"{name}.toml").write_text(apps)
        environment.append(("PAPER_APPS", str(tmp / "apps")))
    if faults:
        (tmp / f"{name}-faults.toml").write_text(faults)
        environment.append(("PAPER_FAULTS", str(tmp / f"{name}-faults.toml")))
    base = DeviceSpec(
        device_id=f"id-{name}",
        name=name,
        command=(sys.executable, "-m", "emulator_images.paper"),
        avd_home=home,
        display=DISPLAY,
        environment=tuple(environment),
        readiness=FAST,
        stopping=StopRule(exit_s=5.0, term_s=2.0),
        simulated=True,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


@asynccontextmanager
async def a_fleet(tmp: Path, stored: Stored | None = None, **options: object) -> AsyncIterator[Fleet]:
    """An open fleet whose adb server lives below `tmp`."""
    kept = stored or Stored()
    async with open_fleet(
        tmp / "f",
        next_generation=kept.next_generation,
        on_identity=kept.on_identity,
        ports=port_pairs(),
        **options,  # type: ignore[arg-type]
    ) as fleet:
        yield fleet
    left = end_strays(tmp)
    assert not left, f"adb processes of this test lived on: {left}"


@asynccontextmanager
async def a_phone(tmp: Path, **options: object) -> AsyncIterator[Phone]:
    """A started paper phone."""
    async with a_fleet(tmp) as fleet:
        phone = fleet.phone(spec_for(tmp, **options))  # type: ignore[arg-type]
        await phone.start()
        yield phone


async def on_device(phone: Phone, line: str) -> str:
    """Run a shell line on the phone beside the library's own calls."""
    answer = await phone.shell(line)
    return answer.text


async def open_app(phone: Phone, package: str) -> None:
    """Start an app's main activity."""
    await phone.packages.launch(package)


def journal(phone: Phone, event: str | None = None) -> list[dict[str, object]]:
    """The phone's own record, all of it or one kind of event."""
    rows = written_lines(phone.spec.avd_directory / "paper-journal.jsonl")
    return [row for row in rows if event is None or row["event"] == event]


def taps(phone: Phone) -> list[dict[str, object]]:
    """Touches that reached the phone."""
    return [row for row in journal(phone, "input") if row["kind"] == "tap"]


async def until(condition: Callable[[], bool | Awaitable[bool]], within: float = 30.0) -> None:
    """Wait for something that no event tells of."""
    end = time.monotonic() + within
    while True:
        held = condition()
        if held is True or (not isinstance(held, bool) and await held):
            return
        assert time.monotonic() < end, "waited in vain"
        await asyncio.sleep(0.01)


def descriptors() -> int:
    """How many descriptors this process has open."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
