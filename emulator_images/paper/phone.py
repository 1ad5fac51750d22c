"""The simulated phone: one value that holds everything commands read and change."""

import asyncio
import hashlib
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from emulator_images.paper import boot as booting
from emulator_images.paper.avd import RELEASES, Avd
from emulator_images.paper.boot import Boot
from emulator_images.paper.boot import Stage as BootStage
from emulator_images.paper.faults import Faults
from emulator_images.paper.files import FileTree
from emulator_images.paper.journal import Field, Journal
from emulator_images.paper.logbook import LogBook
from emulator_images.paper.packages import Packages
from emulator_images.paper.screen.description import App
from emulator_images.paper.screen.fingers import Fingers
from emulator_images.paper.screen.frames import FRAME_SECONDS, Frames
from emulator_images.paper.screen.stage import Stage
from emulator_images.paper.timing import Latency, PhoneClock

MODEL, DEVICE, PRODUCT = "Lomi Paper", "lomi_paper", "lomi_paper_x86_64"
KEYBOARD = "com.android.inputmethod.latin/.LatinIME"
TEXT_BRIDGE = "com.android.adbkeyboard/.AdbIME"

_FIRST_SETTINGS = {
    ("system", "accelerometer_rotation"): "0",
    ("system", "user_rotation"): "0",
    ("system", "screen_off_timeout"): "60000",
    ("system", "screen_brightness"): "102",
    ("system", "screen_brightness_mode"): "0",
    ("secure", "default_input_method"): KEYBOARD,
    ("secure", "enabled_input_methods"): f"{KEYBOARD}:{TEXT_BRIDGE}",
    ("secure", "show_ime_with_hard_keyboard"): "0",
    ("global", "adb_enabled"): "1",
    ("global", "device_name"): MODEL,
    ("global", "window_animation_scale"): "1.0",
    ("global", "transition_animation_scale"): "1.0",
    ("global", "animator_duration_scale"): "1.0",
}


@dataclass(slots=True)
class Setup:
    """What a phone is made of: the AVD, its seed, flags and the sources of time and faults."""

    avd: Avd
    seed: int
    profile: str
    faults: Faults
    apps: tuple[App, ...]
    monotonic: Callable[[], float]
    spools: Path
    timezone: str = "UTC"
    locale: str = "en-US"
    properties: dict[str, str] = field(default_factory=dict)


class Phone:
    """The phone's state over its boots; the display is `stage`."""

    def __init__(self, setup: Setup, journal: Journal) -> None:
        self.setup = setup
        self.avd = setup.avd
        self.journal = journal
        self.faults = setup.faults
        self.dice = random.Random(setup.seed)  # noqa: S311 - a simulation must repeat
        self.latency = Latency(setup.profile, random.Random(setup.seed + 1))  # noqa: S311
        self.clock = PhoneClock(setup.monotonic, setup.timezone)
        self.boot = Boot()
        self.log = LogBook(self.clock.local)
        self.files = FileTree(
            self.clock.now, setup.avd.data_bytes, setup.spools, lambda: self.faults.strikes("disk_full") is not None
        )
        self.described = frozenset(app.package for app in setup.apps)
        self.packages = Packages(setup.apps, self.clock.now(), setup.avd.api)
        self.settings = dict(_FIRST_SETTINGS)
        self.changed_properties: dict[str, str] = {}
        self.processes: dict[str, int] = {}
        self.next_pid = 2000
        self.stopped: set[str] = set()
        self.density_override: int | None = None
        self.size_override: tuple[int, int] | None = None
        self.sleep_at: float | None = None
        self.touch_path: list[tuple[int, int]] = []
        self.touch_down_at = 0.0
        self.fingers = Fingers()
        self.battery = 100
        self.boot_id = ""
        self.secure_picture = False
        self._services_at = 0.0
        late_name = setup.faults.strikes("name_late")
        self._name_at = setup.monotonic() + late_name.seconds if late_name is not None else 0.0
        self.reboot_asked = asyncio.Event()
        self.stop_asked = asyncio.Event()
        self.stage = Stage(self, setup.avd.width, setup.avd.height, setup.avd.density)
        frame_seconds = FRAME_SECONDS if setup.profile == "device" else 0.0
        self.frames = Frames(lambda: self.stage, setup.monotonic, frame_seconds)
        self._set_up_files()

    def _disk_is_full(self) -> bool:
        return self.faults.strikes("disk_full") is not None

    def _set_up_files(self) -> None:
        self.files.place("/system/build.prop", f"ro.build.version.sdk={self.avd.api}\n".encode())
        self.files.provide("/proc/sys/kernel/random/boot_id", lambda: self.boot_id.encode() + b"\n")
        self.files.provide("/proc/uptime", self._uptime_file)
        self.files.provide("/proc/meminfo", f"MemTotal:     {self.avd.ram_mib * 1024} kB\n".encode)
        self.files.provide("/proc/version", lambda: b"Linux version 6.6.0-lomi-paper (simulated)\n")

    def _uptime_file(self) -> bytes:
        return f"{self.uptime():.2f} {self.uptime():.2f}\n".encode()

    def uptime(self) -> float:
        """Phone seconds since the first boot."""
        return 60.0 + self.clock.now() - 1_767_258_000.0

    def begin_boot(self) -> None:
        """Forget what a reboot forgets and take a new boot id."""
        self.journal.write("boot", seed=self.setup.seed, avd=self.avd.name)
        source = f"{self.setup.seed}|{self.avd.name}|{self.journal.boot}".encode()
        self.boot_id = str(uuid.UUID(bytes=hashlib.sha256(source).digest()[:16], version=4))
        self.processes = {"com.android.systemui": 700, "system_server": 500}
        self.next_pid = 2000
        self.log = LogBook(self.clock.local)
        self.fingers = Fingers()
        self.stage = Stage(self, self.avd.width, self.avd.height, self.avd.density)
        self.stage.rotation = int(self.settings[("system", "user_rotation")] or 0) % 4
        self.stage.home()
        self.write_log("I", "boot", "simulated phone started")

    @property
    def serving(self) -> bool:
        """Whether the framework's services answer."""
        return self.boot.stage >= BootStage.SERVICES

    def write_log(self, level: str, tag: str, text: str, *, package: str = "", buffer: str = "main") -> None:
        """Write to logcat as a package's process, or as the system."""
        pid = self.processes.get(package, 500)
        found = self.packages.get(package)
        user = f"u0_a{found.uid - 10000}" if found else "system"
        self.log.write(level, tag, text.replace("{pid}", str(pid)), pid=pid, buffer=buffer, user=user)

    # What the display needs (see `screen.stage.Surroundings`).

    def app(self, package: str) -> App | None:
        """The installed app of a package."""
        found = self.packages.get(package)
        return found.app if found else None

    def icons(self) -> list[tuple[str, str, str]]:
        """Package, label and colour of what the launcher shows, by label."""
        found = [(p.name, p.app.label, p.app.colour) for p in self.packages.all() if p.app.launchable]
        return sorted(found, key=lambda icon: icon[1].lower())

    def clock_text(self) -> str:
        """The time as the status bar writes it."""
        return self.clock.local().strftime("%H:%M")

    def record(self, event: str, **fields: Field) -> None:
        """Write to the journal."""
        self.journal.write(event, **fields)

    def granted(self, package: str, permission: str) -> bool:
        """Whether an app holds a permission."""
        found = self.packages.get(package)
        return found is not None and found.permissions.get(permission, False)

    def answer_permission(self, package: str, permission: str, *, allowed: bool) -> None:
        """Keep a person's answer to a permission question."""
        found = self.packages.get(package)
        if found is not None:
            found.permissions[permission] = allowed
            self.record("permission", package=package, permission=permission, allowed=allowed)

    def keyboard_wanted(self) -> bool:
        """Whether a focused field brings up the soft keyboard."""
        if self.settings.get(("secure", "default_input_method")) != KEYBOARD:
            return False
        return not self.avd.hardware_keyboard or self.settings[("secure", "show_ime_with_hard_keyboard")] == "1"

    def started(self, package: str) -> bool:
        """An app's process is needed; true when it had to be started."""
        if package in self.processes:
            return False
        self.stopped.discard(package)
        self.processes[package] = self.next_pid
        self.next_pid += 7
        self.write_log("I", "ActivityManager", f"Start proc {self.processes[package]}:{package}", buffer="system")
        return True

    def died(self, package: str) -> None:
        """An app's process ended."""
        if self.processes.pop(package, None) is not None:
            self.write_log("I", "ActivityManager", f"Process {package} has died", buffer="system")

    def sleep_after(self, seconds: float) -> None:
        """Turn the display off once the phone's clock has moved on."""
        self.sleep_at = self.clock.now() + seconds

    def tick(self) -> None:
        """Let what the clock has brought about happen."""
        if self.sleep_at is not None and self.clock.now() >= self.sleep_at:
            self.stage.awake = False
            self.sleep_at = None

    def properties(self) -> dict[str, str]:
        """System properties as `getprop` lists them."""
        avd, stage = self.avd, self.boot.stage
        done = stage >= BootStage.COMPLETED
        known = {
            "ro.product.model": MODEL,
            "ro.product.name": PRODUCT,
            "ro.product.device": DEVICE,
            "ro.product.brand": "lomi",
            "ro.product.manufacturer": "Lomi (simulated)",
            "ro.product.board": "paper",
            "ro.product.cpu.abi": avd.abi,
            "ro.product.cpu.abilist": ",".join(self.abis()),
            "ro.product.locale": self.setup.locale,
            "persist.sys.locale": self.setup.locale,
            "persist.sys.timezone": self.clock.zone_name,
            "ro.build.version.sdk": str(avd.api),
            "ro.build.version.release": RELEASES.get(avd.api, str(avd.api - 20)),
            "ro.build.version.codename": "REL",
            "ro.build.type": "userdebug",
            "ro.build.characteristics": "emulator",
            "ro.build.fingerprint": f"lomi/{PRODUCT}/{DEVICE}:{avd.api}/PAPER/1:userdebug/dev-keys",
            "ro.build.date.utc": "1767258000",
            "ro.build.id": "PAPER",
            "ro.hardware": "paper",
            "ro.kernel.qemu": "1",
            "ro.boot.qemu": "1",
            "ro.kernel.qemu.avd_name": avd.name,
            "ro.boot.qemu.avd_name": avd.name,
            "qemu.avd_name": avd.name,
            "ro.boot.id": self.boot_id,
            "ro.serialno": "LOMIPAPER0001",
            "ro.debuggable": "1",
            "ro.secure": "1",
            "ro.sf.lcd_density": str(avd.density),
            "ro.lomi.simulated": "true",
            "ro.lomi.agent": "1",
            "ro.opengles.version": "196608",
            "init.svc.adbd": "running" if stage >= BootStage.ADBD else "",
            "init.svc.zygote": "running",
            "init.svc.bootanim": "stopped" if stage >= BootStage.READY else "running",
            "sys.boot_completed": "1" if done else "",
            "dev.bootcomplete": "1" if done else "",
            "debug.hwui.drawing_enabled": "0" if self.drawing_disabled() else "",
            "service.adb.root": "1" if self.files.root else "",
        }
        if not self.name_known:
            for key in ("ro.kernel.qemu.avd_name", "ro.boot.qemu.avd_name", "qemu.avd_name"):
                known[key] = ""
        merged = {**known, **self.setup.properties, **self.changed_properties}
        return {key: value for key, value in merged.items() if value}

    @property
    def name_known(self) -> bool:
        """Whether the phone tells its AVD name yet."""
        return self.setup.monotonic() >= self._name_at

    def drawing_disabled(self) -> bool:
        """Whether the image draws nothing, as headless test images do not."""
        return self.changed_properties.get("debug.hwui.drawing_enabled") == "0"

    def abis(self) -> tuple[str, ...]:
        """Native ABIs, the best first."""
        return {"x86_64": ("x86_64", "arm64-v8a"), "arm64-v8a": ("arm64-v8a",)}.get(self.avd.abi, (self.avd.abi,))

    async def run_boot(self) -> None:
        """Go through one boot's stages, as far as the fault plan lets it."""
        self.boot.enter(BootStage.OFF)
        self.begin_boot()
        stuck = self.faults.strikes("never_boots")
        last = BootStage[(stuck.text or "services").upper()] if stuck is not None else None
        slow = self.faults.strikes("slow_boot")
        late = self.faults.strikes("services_late")
        for stage in list(BootStage)[1:]:
            if last is not None and stage >= last:
                return
            pause = booting.seconds_to(stage, self.setup.profile)
            if slow is not None and stage == BootStage.COMPLETED:
                pause += slow.seconds
            await asyncio.sleep(pause)
            if stage == BootStage.SERVICES and late is not None:
                self._services_at = self.setup.monotonic() + late.seconds
            self.boot.enter(stage)
        if (anr := self.faults.strikes("systemui_anr")) is not None:
            self.stage.freeze(anr.text or "com.android.systemui")
        if self.faults.strikes("renderer_disabled") is not None:
            self.changed_properties["debug.hwui.drawing_enabled"] = "0"
        self.record("booted", boot_id=self.boot_id)

    def service_found(self, name: str) -> bool:
        """Whether `service check` finds a framework service."""
        return self.serving and self.setup.monotonic() >= self._services_at and name in SERVICES


SERVICES = (
    "activity", "activity_task", "package", "window", "input", "display", "SurfaceFlinger", "settings",
    "input_method", "clipboard", "power", "battery", "notification", "statusbar", "user", "appops", "content",
    "alarm", "audio", "connectivity", "wifi", "uimode", "webviewupdate", "lomi_agent",
)  # fmt: skip
