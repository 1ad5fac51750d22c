"""Who may connect, and how: real adb servers with trusted and strange keys, old protocol versions, broken peers."""

import asyncio
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from emulator_images.direct_adb import DirectAdb
from emulator_images.paper.wire import packets
from emulator_images.paper.wire.packets import Packet
from paper.lab import Lab, phone, wait_for


def test_a_strangers_key_is_unauthorized(lab: Lab) -> None:
    """The server with the trusted key gets in; another server with its own key stays outside and reaches nothing."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root, phone(lab) as running:
        stranger = Lab(Path(root))
        stranger.make_keys()
        with stranger.server():
            stranger.announce(running.adb_port)
            wait_for(lambda: "unauthorized" in stranger.adb("devices").out)
            result = stranger.adb("-s", running.serial, "shell", "echo inside")
            assert result.code == 1
            assert "device unauthorized" in result.err
            assert result.out == ""
        assert running.shell("echo still here") == "still here\n"
        assert running.journal("stranger")


def test_authentication_can_be_switched_off(lab: Lab) -> None:
    """With -skip-adb-auth a client without any key gets in, and without the flag it does not."""
    with phone(lab, flags=("-skip-adb-auth",)) as running:
        answer = asyncio.run(DirectAdb("127.0.0.1", running.adb_port).run("echo open"))
        assert answer == b"open\n"


async def _old_peer(port: int, version: int, *, damage: bool) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(packets.encode(Packet(packets.CNXN, version, 4096, b"host::\0"), checksum=True))
        greeting = await packets.receive(reader, checksum=True)
        assert greeting.command == packets.CNXN
        assert greeting.payload.startswith(b"device::ro.product.name=")
        opened = packets.encode(Packet(packets.OPEN, 7, 0, b"shell:echo old\0"), checksum=True)
        if damage:
            opened = opened[:16] + struct.pack("<I", 1) + opened[20:]
        writer.write(opened)
        out = b""
        while True:
            packet = await packets.receive(reader, checksum=True)
            if packet.command == packets.WRTE:
                out += packet.payload
                writer.write(packets.encode(Packet(packets.OKAY, 7, packet.first), checksum=True))
            if packet.command == packets.CLSE:
                return out
    except asyncio.IncompleteReadError:
        return b"gone"
    finally:
        writer.close()


def test_old_clients_get_checksums(lab: Lab) -> None:
    """A client of the protocol version with checksums is served with correct ones, and a wrong one ends the talk."""
    with phone(lab, flags=("-skip-adb-auth",)) as running:
        assert asyncio.run(_old_peer(running.adb_port, 0x01000000, damage=False)) == b"old\n"
        assert asyncio.run(_old_peer(running.adb_port, 0x01000000, damage=True)) == b"gone"


async def _garbage(port: int) -> None:
    for payload in (b"\0" * 24, b"GET / HTTP/1.1\r\n\r\n" * 9, b"CNXN" + b"\xff" * 20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(payload)
        assert await reader.read() == b""
        writer.close()


def test_garbage_is_dropped_and_hurts_nobody(lab: Lab) -> None:
    """Bytes that are no adb end their own connection only."""
    with phone(lab) as running:
        asyncio.run(asyncio.wait_for(_garbage(running.adb_port), 10))
        assert running.shell("echo well") == "well\n"
        assert running.stderr().count("\n") == 1


def test_forward_and_reverse_carry_bytes(lab: Lab) -> None:
    """A forwarded socket of the phone echoes, and a reversed port leads to a server on the client's machine."""

    async def echo(port: int, payload: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(payload)
        answer = await reader.readexactly(len(payload))
        writer.close()
        await writer.wait_closed()
        return answer

    async def through(running_port: int) -> bytes:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write((await reader.readexactly(4))[::-1])
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            listed = await asyncio.to_thread(running.adb, "reverse", "tcp:0", f"tcp:{port}")
            return await echo(int(listed.out), b"abcd")

    with phone(lab) as running:
        forwarded = int(running.adb("forward", "tcp:0", "localabstract:lomi-echo", check=True).out)
        assert asyncio.run(echo(forwarded, b"ping" * 5000)) == b"ping" * 5000
        assert asyncio.run(through(running.adb_port)) == b"dcba"
        assert "tcp:" in running.adb("reverse", "--list").out
        running.adb("reverse", "--remove-all", check=True)
        assert running.adb("reverse", "--list").out.strip() == ""
        running.adb("forward", "--remove-all", check=True)


def test_a_client_that_leaves_hurts_no_other(lab: Lab) -> None:
    """Clients that go away in the middle of endless output end their own command only, pipelines included."""
    with phone(lab) as running:
        kept = subprocess.Popen(
            [lab.binary, "-s", running.serial, "shell"],
            env=lab.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert kept.stdin is not None
            assert kept.stdout is not None
            for endless in ("while true; do echo xxxxxxxx; done", "while true; do echo x; done | cat", "logcat"):
                with pytest.raises(subprocess.TimeoutExpired):
                    running.adb("shell", endless, timeout=0.7)
            kept.stdin.write(b"echo still here\n")
            kept.stdin.flush()
            assert kept.stdout.readline() == b"still here\n"
        finally:
            kept.kill()
            kept.communicate()


def test_root_and_reboot(lab: Lab) -> None:
    """Adbd can be restarted as root, and a reboot brings a new boot id, the journal going on."""
    with phone(lab) as running:
        assert "uid=2000(shell)" in running.shell("id")
        before = running.boot_id()
        running.adb("reboot", check=True)
        wait_for(lambda: running.boot_id() != before)
        running.wait_booted()
        assert running.boot_id() not in {"", before}
        assert [line["boot"] for line in running.journal("boot")] == [1, 2]
        assert running.lab.adb("-s", running.serial, "get-state").out == "device\n"
