"""Frozen descriptions: what a device is, what a readiness rule asks, and who a running device is."""

from dataclasses import dataclass
from pathlib import Path

from lomi.core.processes import ProcessName


@dataclass(frozen=True, slots=True)
class Display:
    """The hardware display, unrotated: pixels and dots per inch."""

    width: int
    height: int
    density: int


@dataclass(frozen=True, slots=True)
class Needs:
    """What one running device needs of the host: bytes, and whether hardware virtualisation must work."""

    ram_bytes: int = 0
    disk_bytes: int = 0
    kvm: bool = False


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a booted device counts as ready; all times in seconds.

    The device is ready after `stable_polls` polls in a row, `poll_s` apart, in which the boot flag is set, the boot
    animation has stopped, the `services` answer, no system dialog has the focus and the boot id is the same. A boot id
    that changes more than `reboots_allowed` times is a boot loop.
    """

    services: tuple[str, ...] = ("package", "input", "window")
    stable_polls: int = 3
    poll_s: float = 1.0
    process_s: float = 30.0
    adb_s: float = 60.0
    boot_s: float = 180.0
    reboots_allowed: int = 1
    offline_grace_s: float = 10.0


@dataclass(frozen=True, slots=True)
class StopRule:
    """How long each step of a stop may take, in seconds.

    `exit_s` is spent only on a device whose console said that it ends.
    """

    sync_s: float = 4.0
    console_s: float = 2.0
    exit_s: float = 20.0
    term_s: float = 3.0
    kill_s: float = 3.0

    @property
    def silent_s(self) -> float:
        """The most that the stop of a device takes which answers nothing: 10 s unless told otherwise."""
        return max(self.sync_s, self.console_s) + self.term_s + self.kill_s


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """One managed device as the composition root describes it.

    `command` starts the emulator and takes the emulator's command line; `environment` is complete, nothing of ours is
    added but the places of keys, AVDs and the marker; `avd_home` holds NAME.ini and NAME.avd; `arguments` are boot
    arguments of the image. `label` is what people call it, its name when empty. `simulated` marks a device that is not
    Android; `quick_boot` lets it start from its stored snapshot, which is put aside when the device does not get ready
    from it.
    """

    device_id: str
    name: str
    command: tuple[str, ...]
    avd_home: Path
    display: Display
    environment: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ("-no-window",)
    needs: Needs = Needs()
    readiness: Readiness = Readiness()
    stopping: StopRule = StopRule()
    simulated: bool = False
    grpc: bool = False
    quick_boot: bool = False
    label: str = ""

    @property
    def title(self) -> str:
        """What people call it."""
        return self.label or self.name

    @property
    def avd_directory(self) -> Path:
        """The folder with config.ini, images and locks."""
        return self.avd_home / f"{self.name}.avd"


@dataclass(frozen=True, slots=True)
class Ports:
    """The loopback ports of one running device: an even console port, the adb port above it, maybe gRPC."""

    console: int
    grpc: int | None = None

    @property
    def adb(self) -> int:
        """The adb port, always the console port plus one."""
        return self.console + 1

    @property
    def serial(self) -> str:
        """The name under which our adb server lists the device."""
        return f"emulator-{self.console}"


UNBORN = ProcessName(0, 0, "")
"""The process of a life that is about to be launched: no process has this name."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a running device is, stored before it is launched, when its process is `UNBORN`, and again before it is used.

    `marker` is carried by every process of this life in its environment: whoever dies in between is found by it.
    """

    device_id: str
    generation: str
    process: ProcessName
    ports: Ports
    marker: str


@dataclass(frozen=True, slots=True)
class Running:
    """A device that is ready: its identity, Android's boot id, and when each boot stage began in seconds.

    `snapshot_dropped` says that its quick-boot snapshot was bad and a cold boot was counted instead.
    """

    identity: Identity
    boot_id: str
    stages: tuple[tuple[str, float], ...]
    snapshot_dropped: bool = False
