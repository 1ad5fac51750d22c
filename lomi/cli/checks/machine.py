"""The machine: Python, host, memory, disk, KVM, ports."""

import fcntl
import grp
import os
import platform
import shlex
import shutil
import socket
import sys
from contextlib import suppress
from pathlib import Path

from browser.process import memory_available
from devices.actor.ports import PortPairs
from devices.faults import LaunchRefused
from lomi.broker.host_gate import this_host
from lomi.cli.checks.finding import Finding, Place, State
from lomi.cli.shown import size

_GIB, _MIB = 1 << 30, 1 << 20
_KVM_GET_API_VERSION, _KVM_CREATE_VM = 0xAE00, 0xAE01
"""Source: linux/kvm.h."""
_OTHERS_ADB = 5037
_BOOT = "lomi images verify atd-36-x86_64"
"""The one proof that an image boots here."""


def python(place: Place) -> tuple[Finding, ...]:
    """Which Python runs this, and on which host."""
    del place
    gate = this_host()
    said = f"{platform.python_version()} at {sys.executable}"
    host = f"{platform.system()} {os.uname().release} on {platform.machine()}"
    found = (Finding(name="python", state="ok", said=said),)
    if gate.qualified:
        return (*found, Finding(name="host", state="ok", said=host))
    return (*found, Finding(name="host", state="warning", said=f"{host}: {gate.limitations[0]}", cure="uname -srm"))


def memory(place: Place) -> tuple[Finding, ...]:
    """Whether there is memory for an engine and a phone."""
    free = memory_available(place.proc / "meminfo")
    if free == 1 << 62:
        return (Finding(name="memory", state="note", said="can't be read on this system"),)
    state: State = "problem" if free < 256 * _MIB else "warning" if free < _GIB else "ok"
    cure = None if state == "ok" else "ps -eo rss,pid,args --sort=-rss | head"
    said = f"{size(free)} free; a page takes about 100 MiB, a paper phone 64 MiB, a real one 2 to 4 GiB"
    return (Finding(name="memory", state=state, said=said, cure=cure),)


def disk(place: Place) -> tuple[Finding, ...]:
    """Whether the home has room for receipts, artifacts and images."""
    there = next(path for path in (place.home, *place.home.parents) if path.exists())
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return (
            Finding(
                name="disk",
                state="problem",
                said=f"{there}: {error.strerror}",
                cure=f"ls -ld {shlex.quote(str(there))}",
            ),
        )
    state: State = "problem" if free < 256 * _MIB else "warning" if free < 2 * _GIB else "ok"
    cure = None if state == "ok" else f"du -xh --max-depth=2 {shlex.quote(str(there))} | sort -h | tail"
    return (Finding(name="disk", state=state, said=f"{size(free)} free for {place.home}", cure=cure),)


def kvm(place: Place) -> tuple[Finding, ...]:
    """Whether a real emulator can run at speed: present, permitted, answering; and whether that was ever proven.

    A device that opens and answers may still run no guest, so without a boot the last word is "unverified".
    """
    if sys.platform != "linux":
        return (Finding(name="kvm", state="note", said="only Linux has it; paper phones need none"),)
    flags = _cpu_flags(place.proc)
    driver = "kvm_amd" if "svm" in flags else "kvm_intel"
    if not place.kvm.exists():
        return (_kvm_missing(place, flags, driver),)
    try:
        version = _kvm_answer(place.kvm)
    except PermissionError:
        said = f"{place.kvm} is there, but this user may not open it: only paper phones run here"
        return (Finding(name="kvm", state="warning", said=said, cure=_kvm_permission(place.kvm)),)
    except OSError as error:
        said = f"{place.kvm} opens, but makes no machine ({error.strerror}): only paper phones run here"
        cure = f"sudo sh -c 'modprobe -r {driver}; modprobe {driver}'"
        return (Finding(name="kvm", state="warning", said=said, cure=cure),)
    answers = f"present, permitted, answers (API {version})"
    if platform.machine() == "x86_64" and not flags & {"svm", "vmx"}:
        said = f"{answers}, but the CPU shows neither svm nor vmx: a real image may not boot"
        return (Finding(name="kvm", state="warning", said=said, cure=_BOOT),)
    said = f"{answers}; unverified until a real image has booted here"
    return (Finding(name="kvm", state="note", said=said, cure=_BOOT),)


def _kvm_missing(place: Place, flags: frozenset[str], driver: str) -> Finding:
    """What brings the device: its driver, the container's owner, or nothing at all on this machine."""
    said = f"{place.kvm} is missing: only paper phones run here"
    if not flags & {"svm", "vmx"}:
        said += "; this CPU offers no virtualisation (a virtual machine's host can switch nested virtualisation on)"
        return Finding(name="kvm", state="note", said=said, cure="lomi up . --phone paper-36")
    if driver in _modules(place.proc):
        said += "; the kernel has it, so this is a container that was not given it"
        return Finding(name="kvm", state="note", said=said, cure=f"docker run --device {place.kvm} IMAGE")
    return Finding(name="kvm", state="note", said=said, cure=f"sudo modprobe {driver}")


def _kvm_permission(node: Path) -> str:
    """The group that has the device, for the next log-in; where no group has it, the device for this user."""
    status = node.stat()
    group = ""
    with suppress(KeyError):
        group = grp.getgrgid(status.st_gid).gr_name
    if status.st_gid and group and status.st_mode & 0o060 == 0o060:
        return f'sudo usermod -aG {group} "$USER"'
    return f'sudo chown "$USER" {shlex.quote(str(node))}'


def _modules(proc: Path) -> frozenset[str]:
    try:
        text = (proc / "modules").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    return frozenset(line.split(" ", 1)[0] for line in text.splitlines())


def _kvm_answer(node: Path) -> int:
    descriptor = os.open(node, os.O_RDWR | os.O_CLOEXEC)
    try:
        version = fcntl.ioctl(descriptor, _KVM_GET_API_VERSION)
        os.close(fcntl.ioctl(descriptor, _KVM_CREATE_VM, 0))
    finally:
        os.close(descriptor)
    return version


def _cpu_flags(proc: Path) -> frozenset[str]:
    try:
        text = (proc / "cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    return frozenset(next((line.split(":", 1)[1].split() for line in text.splitlines() if line[:5] == "flags"), ()))


def ports(place: Place) -> tuple[Finding, ...]:
    """Whether a phone finds a pair of ports, and whether another adb server is about."""
    try:
        with PortPairs().hold(grpc=False) as pair:
            said = f"free for phones from {pair.console}"
    except LaunchRefused:
        said = "every pair from 5600 to 5899 is taken: no phone can start"
        return (Finding(name="ports", state="problem", said=said, cure="ss -ltnp 'sport >= 5600 and sport < 5900'"),)
    if _is_listened_on(place.proc, _OTHERS_ADB):
        said += f"; another program's adb server listens on {_OTHERS_ADB}, Lomi leaves it alone"
    return (Finding(name="ports", state="ok", said=said),)


def _is_listened_on(proc: Path, port: int) -> bool:
    """Whether a server has a port of this machine; where the kernel tells, without a word to that server."""
    tables = [proc / "net" / name for name in ("tcp", "tcp6")]
    if any(table.exists() for table in tables):
        return any(f"{port:04X} 0A" == row for table in tables if table.exists() for row in _rows(table))
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _rows(table: Path) -> list[str]:
    """Port and state of each socket, as `13AD 0A`."""
    fields = [line.split() for line in table.read_text(encoding="ascii").splitlines()[1:]]
    return [f"{local.rpartition(':')[2]} {state}" for _, local, _, state, *_ in fields]
