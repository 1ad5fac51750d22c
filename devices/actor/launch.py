"""The command line and the environment an emulator is started with."""

import shutil

from devices.adb.server import AdbServer
from devices.processes import MARKER_VARIABLE
from devices.spec import DeviceSpec, Ports


def launch_argv(spec: DeviceSpec, ports: Ports, *, cold: bool) -> tuple[str, ...]:
    """The emulator's arguments: the AVD by name, exactly our ports, gRPC only with a token, no snapshot when `cold`."""
    argv = [*spec.command, "-avd", spec.name, "-ports", f"{ports.console},{ports.adb}", *spec.arguments]
    if ports.grpc is not None:
        argv += ["-grpc", str(ports.grpc), "-grpc-use-token"]
    if cold:
        argv.append("-no-snapshot-load")
    return tuple(argv)


def put_snapshot_aside(spec: DeviceSpec) -> None:
    """Rename the quick-boot snapshot so that it is kept for a look but never loaded again; blocking."""
    stored = spec.avd_directory / "snapshots" / "default_boot"
    if stored.is_dir():
        aside = stored.with_name("default_boot.bad")
        shutil.rmtree(aside, ignore_errors=True)
        stored.rename(aside)


def launch_environment(spec: DeviceSpec, server: AdbServer, marker: str) -> dict[str, str]:
    """The emulator's environment: what the spec allows, and the places of our key, token and AVDs."""
    return {
        "PATH": "/usr/bin:/bin",
        **dict(spec.environment),
        "HOME": str(server.home),
        "ANDROID_USER_HOME": str(server.user_home),
        "ANDROID_EMULATOR_HOME": str(server.user_home),
        "ANDROID_AVD_HOME": str(spec.avd_home),
        # Nobody listens on port 1: the emulator must not announce itself to a stranger's adb server.
        "ANDROID_ADB_SERVER_PORT": "1",
        "XDG_RUNTIME_DIR": str(server.runtime_directory),
        MARKER_VARIABLE: marker,
    }
