"""Machines that are none: network namespaces on one bridge, each with an address and a cable that can be pulled."""

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from typing import NamedTuple


class Machine(NamedTuple):
    """One namespace: its name, its address, and the port of the bridge that its cable is in."""

    name: str
    address: str
    port: str

    def command(self, *words: str) -> list[str]:
        """The words, run there."""
        return ["ip", "netns", "exec", self.name, *words]


def why_not() -> str:
    """Why namespaces can't be had here; empty when they can."""
    if shutil.which("ip") is None:
        return "there is no `ip` command"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"lh{secrets.token_hex(3)}-try"
    made = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True, text=True)
    if made.returncode != 0:
        return f"network namespaces are not permitted: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


class Network:
    """Some machines on one switch."""

    def __init__(self, mark: str, count: int) -> None:
        self._switch = f"{mark}-sw"
        self.machines = [
            Machine(f"{mark}-{number}", f"10.77.0.{number}", f"p{mark}{number}") for number in range(1, count + 1)
        ]

    def up(self) -> None:
        """Lay every cable."""
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "br0", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "br0", "up")
        for machine in self.machines:
            _ip("netns", "add", machine.name)
            _ip(
                *("link", "add", "eth0", "netns", machine.name, "type", "veth"),
                *("peer", "name", machine.port, "netns", self._switch),
            )
            _ip("-n", self._switch, "link", "set", machine.port, "master", "br0", "up")
            _ip("-n", machine.name, "address", "add", f"{machine.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", machine.name, "link", "set", device, "up")

    def pull(self, machine: Machine) -> None:
        """Take a machine's cable out."""
        _ip("-n", self._switch, "link", "set", machine.port, "down")

    def plug(self, machine: Machine) -> None:
        """Put it in again."""
        _ip("-n", self._switch, "link", "set", machine.port, "up")

    def down(self) -> None:
        """Remove everything, also when only a part was made."""
        for name in (*(machine.name for machine in self.machines), self._switch):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


@contextlib.contextmanager
def opened_network(count: int) -> Iterator[Network]:
    """So many machines; all are gone with the context, and nothing of them is left."""
    mark = f"lh{secrets.token_hex(2)}"
    network = Network(mark, count)
    try:
        network.up()
        yield network
    finally:
        network.down()
        left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
        assert mark not in left
