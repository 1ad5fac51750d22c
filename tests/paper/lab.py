"""What the tests of `paper` stand on: a private adb server, AVD homes and paper processes."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import adbutils
from harness.journal import written_lines

from paper.pairs import port_pairs

ADB = Path(adbutils.__file__).parent / "binaries" / "adb"


@dataclass(frozen=True)
class Result:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str
    raw: bytes = b""


@dataclass
class Lab:
    """One private world: a home, an adb server on a socket file (or a private loopback port), AVDs."""

    root: Path
    binary: Path = ADB
    tcp_port: int = 0
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.root / "avd").mkdir()
        (self.root / "run").mkdir()
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.root),
            "ANDROID_USER_HOME": str(self.root),
            "ANDROID_EMULATOR_HOME": str(self.root),
            "ANDROID_AVD_HOME": str(self.root / "avd"),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "TMPDIR": str(self.root),
            "ADB_SERVER_SOCKET": f"tcp:{self.tcp_port}" if self.tcp_port else f"localfilesystem:{self.root}/s",
            "ADB_VENDOR_KEYS": str(self.root / "adbkey"),
            "ANDROID_ADB_LOG_PATH": str(self.root / "adb.log"),
            "ADB_MDNS": "0",
            "ADB_USB": "0",
            "ADB_EMU": "0",
            "ADB_LOCAL_TRANSPORT_MAX_PORT": "1",
        }

    def make_keys(self) -> None:
        """An adb key pair of this world."""
        subprocess.run([self.binary, "keygen", self.root / "adbkey"], env=self.environment, check=True, timeout=20)

    def make_avd(self, name: str, target: str = "android-36", **config: str) -> Path:
        """Write an AVD; keyword names use `_` for `.`."""
        directory = self.root / "avd" / f"{name}.avd"
        directory.mkdir()
        lines = {"avd.ini.encoding": "UTF-8", "abi.type": "x86_64"} | {
            k.replace("_", "."): v for k, v in config.items()
        }
        (directory / "config.ini").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        (self.root / "avd" / f"{name}.ini").write_text(
            f"avd.ini.encoding=UTF-8\npath={directory}\npath.rel=avd/{name}.avd\ntarget={target}\n"
        )
        return directory

    @contextmanager
    def server(self) -> Iterator[None]:
        """Run the adb server."""
        process = subprocess.Popen(
            [self.binary, "nodaemon", "server"],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_for(self._server_listens)
            yield
        finally:
            process.kill()
            process.wait(10)
            left = end_strays(self.root)
        assert not left, f"adb processes of this world lived on: {left}"

    @property
    def _server_address(self) -> tuple[str, int] | str:
        return ("127.0.0.1", self.tcp_port) if self.tcp_port else f"{self.root}/s"

    def _server_listens(self) -> bool:
        with socket.socket(socket.AF_INET if self.tcp_port else socket.AF_UNIX) as probe:
            return probe.connect_ex(self._server_address) == 0

    def announce(self, adb_port: int) -> None:
        """Tell the server of a phone, as emulators do."""
        message = f"host:emulator:{adb_port}"
        with socket.socket(socket.AF_INET if self.tcp_port else socket.AF_UNIX) as client:
            client.connect(self._server_address)
            client.sendall(f"{len(message):04x}{message}".encode())

    def adb(self, *arguments: str, stdin: bytes | None = None, check: bool = False, timeout: float = 30) -> Result:
        """Run the real adb client."""
        done = subprocess.run(
            [self.binary, *arguments],
            env=self.environment,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        result = Result(
            done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"), done.stdout
        )
        assert not check or result.code == 0, result
        return result


@dataclass
class RunningPhone:
    """A paper process and how to speak with it."""

    lab: Lab
    name: str
    directory: Path
    console_port: int
    adb_port: int
    process: "subprocess.Popen[bytes]"

    @property
    def serial(self) -> str:
        """The name adb lists it under."""
        return f"emulator-{self.console_port}"

    def adb(self, *arguments: str, stdin: bytes | None = None, check: bool = False, timeout: float = 30) -> Result:
        """Adb for this phone."""
        return self.lab.adb("-s", self.serial, *arguments, stdin=stdin, check=check, timeout=timeout)

    def shell(self, command: str, *, check: bool = True) -> str:
        """Standard output of a shell command."""
        return self.adb("shell", command, check=check).out

    def journal(self, event: str = "") -> list[dict[str, object]]:
        """The phone's journal, or its lines of one event."""
        return [line for line in written_lines(self.directory / "paper-journal.jsonl") if event in {"", line["event"]}]

    def wait_booted(self) -> None:
        """Wait until the phone is ready; announced again each time, as after a reboot the server has forgotten it."""

        def ready() -> bool:
            self.lab.announce(self.adb_port)
            return self.adb("shell", "getprop init.svc.bootanim").out.strip() == "stopped"

        wait_for(ready)

    def boot_id(self) -> str:
        """The id of the boot that answers now; empty when none does."""
        return self.adb("shell", "cat /proc/sys/kernel/random/boot_id").out.strip()

    def stderr(self) -> str:
        """What the process has printed so far."""
        return (self.directory / "stderr.txt").read_text()


def end_strays(root: Path) -> list[str]:
    """End every adb process that was started for a folder; answers with their command lines.

    A client that finds no server starts one of its own, which outlives everybody.
    """
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = _command(process).split(b"\0")
            if Path(os.fsdecode(words[0])).name == "adb" and os.fsencode(root) in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
                wait_for(lambda process=process: not _command(process))
                left.append(os.fsdecode(b" ".join(words)))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return left


def _command(process: Path) -> bytes:
    """The command line of a process; empty when it has let go of its memory, or is no more."""
    try:
        return (process / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def wait_for(holds: object, seconds: float = 20) -> None:
    """Wait until a condition holds; it is asked again as fast as is polite."""
    assert callable(holds)
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "the awaited did not happen in time"
        time.sleep(0.01)


def free_pair() -> tuple[int, int]:
    """Two free neighbouring ports, the first one even; no other call gives them soon."""
    with port_pairs().hold(grpc=False) as held:
        return held.console, held.adb


def spawn(lab: Lab, arguments: list[str], extra: Mapping[str, str], stderr: Path) -> "subprocess.Popen[bytes]":
    """Start the emulator command."""
    with stderr.open("wb") as target:
        return subprocess.Popen(
            [sys.executable, "-m", "emulator_images.paper", *arguments],
            env={**lab.environment, **extra, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=target,
        )


def run_to_end(lab: Lab, arguments: list[str], **extra: str) -> tuple[int, str]:
    """Run the emulator command to its end; exit code and what it printed on standard error."""
    process = spawn(lab, arguments, extra, lab.root / "err")
    try:
        return process.wait(20), (lab.root / "err").read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


@contextmanager
def phone(
    lab: Lab, name: str = "phone", *, flags: tuple[str, ...] = (), wait: bool = True, faults: str = "", **extra: str
) -> Iterator[RunningPhone]:
    """Run a paper phone; `faults` is the text of a fault plan."""
    directory = lab.root / "avd" / f"{name}.avd"
    if not directory.exists():
        lab.make_avd(name)
    if faults:
        plan = lab.root / f"{name}-faults.toml"
        plan.write_text(faults)
        extra["PAPER_FAULTS"] = str(plan)
    console, adb_port = free_pair()
    process = spawn(
        lab,
        ["-avd", name, "-ports", f"{console},{adb_port}", "-no-window", "-no-audio", *flags],
        extra,
        directory / "stderr.txt",
    )
    running = RunningPhone(lab, name, directory, console, adb_port, process)
    try:
        wait_for(lambda: listening(adb_port) or process.poll() is not None)
        if wait:
            running.wait_booted()
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(10)


def listening(port: int) -> bool:
    """Whether something accepts connections on a loopback port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
