"""Which hosts are qualified: Linux on x86_64 and arm64, kernel 5.6 or newer.

MacOS runs and says that it is unverified.
"""

import os
import platform
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostGate:
    """What is known of this host."""

    qualified: bool
    limitations: tuple[str, ...] = ()


def host_gate(system: str, machine: str, release: str) -> HostGate:
    """Judge a host by its system, machine and kernel release, as `platform` names them."""
    if system == "Darwin":
        return HostGate(qualified=False, limitations=("macOS is not verified: it runs, but nobody has tested it",))
    numbers = [int(part) for part in release.partition("-")[0].split(".")[:2] if part.isdigit()]
    modern = len(numbers) == 2 and tuple(numbers) >= (5, 6)
    if system == "Linux" and machine in ("x86_64", "aarch64", "arm64") and modern:
        return HostGate(qualified=True)
    return HostGate(qualified=False, limitations=(f"host_unqualified: {system} {machine} {release} is not supported",))


def this_host() -> HostGate:
    """The host that this process runs on."""
    return host_gate(platform.system(), platform.machine(), os.uname().release)
