"""The machine, and the version of everything that takes part."""

import importlib.metadata
import json
import os
import platform
import sqlite3
import ssl
import subprocess
import sys
from pathlib import Path

from ending.stopping import Stop

from browser.process import find_engine
from devices.adb.server import bundled_adb


def host() -> dict[str, str]:
    """What the figures were measured on. A fact that can't be had is left out."""
    found = {
        "system": _os_release() or platform.platform(),
        "kernel": f"{platform.system()} {platform.release()}",
        "CPU": _cpu() or platform.processor(),
        "architecture": platform.machine(),
        "cores": _cores(),
        "memory": _memory(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "user": "root" if os.getuid() == 0 else "not root",
        "/dev/kvm": "present" if Path("/dev/kvm").exists() else "absent",
    }
    return {name: value for name, value in found.items() if value}


def _os_release() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return ""


def _line_of(path: str, start: str) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(start)), "")


def _cpu() -> str:
    return _line_of("/proc/cpuinfo", "model name")


def _cores() -> str:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    said = f"{usable}"
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return said
    return said if quota == "max" else f"{said}, held to {int(quota) / int(period):g} by the control group"


def _memory() -> str:
    kib = _line_of("/proc/meminfo", "MemTotal").partition(" ")[0]
    if not kib.isdecimal():
        return ""
    said = f"{int(kib) / (1 << 20):.1f} GiB"
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return said
    return said if most == "max" else f"{said}, held to {int(most) / (1 << 30):.1f} GiB by the control group"


def versions(stop: Stop) -> dict[str, str]:
    """Programs first, then every distribution of this environment by name.

    Raises:
        Stopped: told to stop.
    """
    found = {
        "Chromium": _first_line([*_chromium(), "--version"], stop) if _chromium() else "absent",
        "adb": _first_line([*_adb(), "version"], stop) if _adb() else "absent",
        "git": _first_line(["git", "--version"], stop),
        "SQLite": sqlite3.sqlite_version,
        "TLS": ssl.OPENSSL_VERSION,
        "C library": " ".join(platform.libc_ver()),
    }
    packages = {
        distribution.metadata["Name"]: distribution.version for distribution in importlib.metadata.distributions()
    }
    return {**found, **dict(sorted(packages.items(), key=lambda pair: pair[0].lower()))}


def _chromium() -> list[str]:
    found = find_engine(headed=False)
    return [str(found)] if found is not None else []


def _adb() -> list[str]:
    path = bundled_adb()
    return [str(path)] if path.exists() else []


def _first_line(command: list[str], stop: Stop) -> str:
    try:
        ran = stop.run(command, bound_s=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"gives no answer ({type(error).__name__})"
    lines = ran.stdout.strip().splitlines()
    versions = [line for line in lines if line.startswith("Version ")]
    return f"{lines[0]}; {versions[0]}" if versions else lines[0] if lines else "gives no answer"


def absent(stop: Stop) -> dict[str, str]:
    """What the doctor says this machine has not, of what real phones need.

    Raises:
        Stopped: told to stop.
    """
    try:
        ran = stop.run([str(Path(sys.executable).with_name("lomi")), "doctor", "--json"], bound_s=60)
    except (OSError, subprocess.TimeoutExpired):
        return {"Google's emulator": "unknown: the doctor gave no answer"}
    try:
        findings = json.loads(ran.stdout)["findings"]
    except (ValueError, KeyError):
        return {"Google's emulator": "unknown: the doctor gave no answer"}
    lacks = [one["said"] for one in findings if one["name"] in ("sdk", "kvm") and one["state"] != "ok"]
    return {"Google's emulator": "; ".join(lacks)} if lacks else {}
