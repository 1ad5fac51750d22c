"""What must be true of the host and the AVD before an emulator is started."""

import os
import shutil
from pathlib import Path

from devices.actor import locks
from devices.faults import LaunchRefused
from devices.spec import DeviceSpec
from lomi.core.processes import ProcessName


def check(spec: DeviceSpec, known: frozenset[ProcessName]) -> None:
    """Refuse a launch that cannot work; blocking, call it in a thread.

    Locks left by dead processes in `known` are removed; a lock of a living or unknown process refuses.

    Raises:
        LaunchRefused: reasons no_emulator, no_avd, no_space, no_memory, no_kvm, avd_locked, avd_locked_stale.
    """
    if shutil.which(spec.command[0]) is None:
        raise LaunchRefused("no_emulator", f"cannot execute {spec.command[0]}")
    if not (spec.avd_home / f"{spec.name}.ini").is_file() or not (spec.avd_directory / "config.ini").is_file():
        raise LaunchRefused("no_avd", f"no AVD named {spec.name}")
    _check_space(spec)
    _check_memory(spec)
    if spec.needs.kvm:
        _check_kvm()
    for lock in locks.remove_dead(spec.avd_directory, known):
        reason = "avd_locked" if lock.owner_alive else "avd_locked_stale"
        raise LaunchRefused(reason, f"{lock.path.name} names pid {lock.pid}", fields={"pid": lock.pid or 0})


def _check_space(spec: DeviceSpec) -> None:
    have = shutil.disk_usage(spec.avd_directory).free
    if have < spec.needs.disk_bytes:
        fields = {"need": spec.needs.disk_bytes, "have": have}
        raise LaunchRefused("no_space", "not enough free bytes for the device's images", fields=fields)


def _check_memory(spec: DeviceSpec) -> None:
    have = _available_memory()
    if have is not None and have < spec.needs.ram_bytes:
        fields = {"need": spec.needs.ram_bytes, "have": have}
        raise LaunchRefused("no_memory", "not enough free memory for the device", fields=fields)


def _available_memory() -> int | None:
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii")
    except OSError:
        return None
    words = next((line.split() for line in text.splitlines() if line.startswith("MemAvailable:")), None)
    return None if words is None else int(words[1]) * 1024


def _check_kvm() -> None:
    """Node, permission and CPU flag; that a guest really runs is proven only by a boot."""
    node = Path("/dev/kvm")
    if not node.exists():
        raise LaunchRefused("no_kvm", "/dev/kvm is missing", fields={"step": "node"})
    if not os.access(node, os.R_OK | os.W_OK):
        raise LaunchRefused("no_kvm", "/dev/kvm may not be opened by this user", fields={"step": "permission"})
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        flags = ""
    words = set(flags.split())
    if os.uname().machine == "x86_64" and not words & {"svm", "vmx"}:
        raise LaunchRefused("no_kvm", "the CPU shows no hardware virtualisation", fields={"step": "cpu_flag"})
