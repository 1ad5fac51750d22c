"""Our adb server and client: private, strict about what they read, and flat in descriptors."""

import asyncio
import os
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import adbutils
import pytest
from device_rig import a_fleet, a_phone, descriptors, on_device, spec_for, until

from devices.adb import adbutils_over
from devices.adb.server import bundled_adb
from devices.adb.shell import ShellLane, quote, run_once
from devices.adb.wire import AdbClient, Row, parse_rows
from devices.faults import ChannelLost
from devices.world import World


def test_noise_in_a_device_list_is_no_device() -> None:
    """Daemon lines, version quarrels, titles and repeats are read past; states of two words are known (pains 23)."""
    text = (
        "List of devices attached \n* daemon not running; starting now at tcp:5037 *\n"
        "adb server version (32) doesn't match this client (41); killing...\n* daemon started successfully *\n"
        "emulator-5554\toffline\nemulator-5556 device product:x model:y\n"
        "emulator-5554\tdevice\nabc\tno permissions (missing udev rules?); see [http://x]\n\n"
    )
    assert parse_rows(text) == (
        Row("emulator-5554", "device"),
        Row("emulator-5556", "device"),
        Row("abc", "no permissions"),
    )


WORDS = ["$(reboot)", "`id`", "a;b&&c|d", "'", 'it\'s "x"', "%s", "*?[a]", "~", "-n", "", "\\", "$HOME", "\t"]


async def test_a_quoted_word_is_one_literal_argument(tmp_path: Path) -> None:
    """Whatever a word holds, the device's shell hands it on unchanged; line breaks are refused (pains 48)."""
    async with a_phone(tmp_path) as phone:
        for word in WORDS:
            assert await on_device(phone, f"printf '%s|' {quote(word)} end") == f"{word}|end|"
    for word in ("a\nb", "a\0b"):
        with pytest.raises(ValueError, match="line break"):
            quote(word)


async def test_a_strangers_adb_sees_nothing_and_may_do_nothing(tmp_path: Path) -> None:
    """Another adb server with another key that is pointed at the phone is unauthorized; ours goes on (pains 23)."""
    async with a_phone(tmp_path) as phone:
        assert phone.running is not None
        port = phone.running.identity.ports.adb
        home = tmp_path / "stranger"
        home.mkdir()
        environment = {"HOME": str(home), "TMPDIR": str(home), "PATH": "/usr/bin:/bin", "ADB_MDNS": "0", "ADB_USB": "0",
                       "ADB_EMU": "0", "ADB_SERVER_SOCKET": f"localfilesystem:{home}/s"}  # fmt: skip

        def adb(*words: str) -> str:
            done = subprocess.run(
                [str(bundled_adb()), *words], env=environment, capture_output=True, text=True, timeout=20, check=False
            )
            return done.stdout + done.stderr

        try:
            assert "emulator" not in await asyncio.to_thread(adb, "devices")
            await asyncio.to_thread(adb, "connect", f"127.0.0.1:{port}")
            told = await asyncio.to_thread(adb, "devices")
            assert f"127.0.0.1:{port}\tunauthorized" in told or f"127.0.0.1:{port}\toffline" in told
            assert "uid=" not in await asyncio.to_thread(adb, "-s", f"127.0.0.1:{port}", "shell", "id")
        finally:
            await asyncio.to_thread(adb, "kill-server")
        assert "uid=" in await on_device(phone, "id")


async def test_silence_is_a_typed_time_out(tmp_path: Path) -> None:
    """A server that accepts and says nothing costs one deadline, not for ever (pains 27)."""
    path = tmp_path / "s"

    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_unix_server(silent, path)
    async with server:
        with pytest.raises(ChannelLost) as fault:
            async with asyncio.timeout(5):
                await AdbClient(path, step_s=0.2).rows()
        assert fault.value.reason == "adb_timeout"
        await left.wait()
        with pytest.raises(ChannelLost) as refused:
            await AdbClient(tmp_path / "nobody").rows()
        assert refused.value.reason == "channel_lost"


async def test_two_thousand_calls_leave_descriptors_flat(tmp_path: Path) -> None:
    """Connections are scoped: two thousand host calls and many device calls later nothing is left open (pains 27)."""
    async with a_phone(tmp_path) as phone:
        client = phone._host.server.client
        assert phone.running is not None
        serial = phone.running.identity.ports.serial
        await phone.eyes.snapshot()
        await phone.eyes.capture(max_edge=200)
        before = descriptors()
        lane = phone._actor.usable(None)[1].look
        for _ in range(2000):
            await client.rows()
            await lane.run("true", within=5)
        for _ in range(20):
            await run_once(client, serial, "true", within=5)
            await phone.eyes.capture(max_edge=200)
        await until(lambda: descriptors() <= before)


async def test_a_lane_survives_hostile_output_and_a_lost_command(tmp_path: Path) -> None:
    """Binary output, output without a last line break, exit codes and both streams arrive; a timed-out lane reopens."""
    async with a_phone(tmp_path) as phone:
        _, lanes = phone._actor.usable(None)
        answer = await lanes.look.run("printf 'a\\0b'; echo err >&2; false", within=5)
        assert (answer.out, answer.err, answer.code) == (b"a\0b", b"err\n", 1)
        with pytest.raises(ChannelLost) as late:
            await lanes.look.run("sleep 5", within=0.1)
        assert (late.value.reason, late.value.effect) == ("adb_timeout", "unknown")
        assert (await lanes.look.run("echo again", within=5)).out == b"again\n"
        with pytest.raises(ChannelLost):
            await lanes.look.run("cat /proc/sys/kernel/random/boot_id; " * 40, within=5, limit=100)
        assert (await lanes.look.run("echo still", within=5)).out == b"still\n"


@pytest.mark.parametrize(
    ("packets", "told"),
    [
        ([(1, 0xFFFFFFFF, b"")], "more output than allowed"),
        ([(2, 3, b"MRK"), (1, 7, b"MRK1x2\n")], "no number"),
        ([(3, 0, b"")], "of another length"),
    ],
)
async def test_a_device_that_lies_in_the_shells_protocol_ends_the_call_alone(
    tmp_path: Path, packets: list[tuple[int, int, bytes]], told: str
) -> None:
    """An endless packet, an exit code that is none, an empty one: each a lost channel at once, for lane and call."""

    async def lying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            for _ in range(2):
                length = int(await reader.readexactly(4), 16)
                service = await reader.readexactly(length)
                writer.write(b"OKAY")
            mark = b""
            if service == b"shell,v2,raw:":
                mark = (await reader.readuntil(b">&2\n")).split()[-2]
            for kind, size, body in packets:
                said = body.replace(b"MRK", mark)
                writer.write(struct.pack("<BI", kind, size if size > 1 << 20 else len(said)) + said)
            await reader.read()
        writer.close()

    async with await asyncio.start_unix_server(lying, tmp_path / "s"):
        client = AdbClient(tmp_path / "s", step_s=5)
        lane = ShellLane(client, "emulator-5554", World())
        in_lane, alone = told != "of another length", told != "no number"
        if in_lane:
            with pytest.raises(ChannelLost, match=told):
                await lane.run("true", within=5)
        if alone:
            with pytest.raises(ChannelLost, match=told):
                await run_once(client, "emulator-5554", "true", within=5)


async def test_adbutils_works_over_our_socket(tmp_path: Path) -> None:
    """The library others know speaks to the private server through a small connection subclass."""
    async with a_phone(tmp_path) as phone:
        assert phone.running is not None
        serial = phone.running.identity.ports.serial

        def use() -> tuple[str, list[str]]:
            client = adbutils_over.client(phone._host.server.socket_path)
            device = client.device(serial)
            assert isinstance(device, adbutils.AdbDevice)
            device.sync.push(b"hello", "/data/local/tmp/hello.txt")
            return device.shell("cat /data/local/tmp/hello.txt"), [one.serial for one in client.list()]

        told, serials = await asyncio.to_thread(use)
        assert told == "hello"
        assert serials == [serial]


async def test_the_servers_log_is_bounded_and_nothing_is_scanned(tmp_path: Path) -> None:
    """A listener on the classic ports is never contacted, and hours of quarrel leave no growing file (pains 24)."""
    contacted = asyncio.Event()

    async def classic(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        contacted.set()
        writer.close()

    try:
        listener = await asyncio.start_server(classic, "127.0.0.1", 5585)
    except OSError:  # it must be a port that an adb server scans, and somebody else listens there
        pytest.skip("port 5585 is taken on this machine")
    async with listener, a_phone(tmp_path) as phone:
        assert phone._host.server.rows
        assert not contacted.is_set()
        files = [path for path in (tmp_path / "f").rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) < 65536
        assert not [path for path in files if path.suffix == ".log"]


async def test_a_lost_adb_server_comes_back_with_its_devices(tmp_path: Path) -> None:
    """When the server dies it is started again and the running phone is announced to it: the same generation."""
    phases: list[str] = []
    async with a_fleet(tmp_path, changed=lambda phone: phases.append(phone.phase)) as fleet:
        phone = fleet.phone(spec_for(tmp_path))
        first = await phone.start()
        assert fleet.server.process is not None
        os.kill(fleet.server.process.pid, 9)
        await until(lambda: phases[-2:] == ["offline", "running"])
        assert phone.running is not None
        assert phone.running.identity == first.identity
        assert (await phone.eyes.snapshot()).tree.nodes
