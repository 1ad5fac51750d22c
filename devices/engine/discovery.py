"""Where a running emulator says which gRPC port it serves and which token it wants."""

from dataclasses import dataclass
from pathlib import Path

from devices.sdk.avds import read_ini
from devices.spec import Ports


@dataclass(frozen=True, slots=True)
class Announced:
    """A gRPC service on loopback; `token` is sent as a bearer, empty when none is wanted."""

    port: int
    token: str


def announced(runtime_directory: Path, ports: Ports) -> Announced | None:
    """What the emulator with this console port announced in our private runtime folder; blocking."""
    for path in sorted((runtime_directory / "avd" / "running").glob("pid_*.ini")):
        try:
            keys = read_ini(path)
        except (OSError, UnicodeDecodeError):
            continue
        if keys.get("port.serial") == str(ports.console) and keys.get("grpc.port", "").isdigit():
            return Announced(int(keys["grpc.port"]), keys.get("grpc.token", ""))
    return None
