"""The emulator process: command line, files, ports, console and end."""

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from emulator_images.paper import avd
from emulator_images.paper.flags import Flags, UnknownFlagError, parse
from paper.lab import Lab, free_pair, listening, phone, run_to_end, wait_for


def run(lab: Lab, *arguments: str) -> tuple[int, str]:
    return run_to_end(lab, list(arguments))


def running_files(lab: Lab) -> list[Path]:
    return sorted((lab.root / "run").rglob("pid_*.ini"))


def test_real_command_lines_are_read() -> None:
    """The command lines of real tools are understood; what only the real emulator can do is accepted and ignored."""
    words = [
        "-avd", "x", "-ports", "5600,5601", "-no-window", "-no-audio", "-no-boot-anim", "-no-snapshot", "-gpu",
        "swiftshader_indirect", "-memory", "2048", "-cores", "2", "-accel", "on", "-wipe-data", "-skip-adb-auth",
        "-prop", "a.b=c=d", "-timezone", "Europe/Athens", "-change-locale", "el-GR", "-read-only", "-grpc", "8600",
        "-grpc-use-token", "-no-snapshot-save", "-camera-back", "none", "-verbose",
    ]  # fmt: skip
    flags = parse(words)
    assert flags == Flags(
        avd="x",
        console_port=5600,
        adb_port=5601,
        grpc_port=8600,
        read_only=True,
        wipe_data=True,
        skip_adb_auth=True,
        timezone="Europe/Athens",
        locale="el-GR",
        properties={"a.b": "c=d"},
    )
    assert (parse(["@y", "-port", "5603"]).avd, parse(["@y", "-port", "5603"]).adb_port) == ("y", 5603)


@pytest.mark.parametrize("words", [["-nonsense"], ["-avd"], ["-port", "x"], ["-ports", "5"], ["-ports", "1,99999"]])
def test_bad_command_lines_are_refused(words: list[str]) -> None:
    """A flag that is unknown or lacks its value is an error."""
    with pytest.raises(UnknownFlagError):
        parse(words)


def test_mistakes_end_with_the_emulators_words(lab: Lab) -> None:
    """An unknown flag, an unknown AVD and no AVD at all end with exit code 1 and the real emulator's words."""
    code, text = run(lab, "-frobnicate")
    assert (code, text) == (1, "unknown option: -frobnicate\nplease use -help for a list of valid options\n")
    code, text = run(lab, "-avd", "nobody", "-no-window")
    assert code == 1
    assert "Unknown AVD name [nobody], use -list-avds to see valid list." in text
    assert run(lab, "-no-window")[0] == 1


def test_questions_are_answered_without_a_boot(lab: Lab) -> None:
    """-list-avds and -version print and end."""
    lab.make_avd("b")
    lab.make_avd("a")
    command = [sys.executable, "-m", "emulator_images.paper"]
    listed = subprocess.run([*command, "-list-avds"], env=lab.environment, capture_output=True, timeout=20, check=True)
    assert listed.stdout == b"a\nb\n"
    told = subprocess.run([*command, "-version"], env=lab.environment, capture_output=True, timeout=20, check=True)
    assert b"SIMULATED" in told.stdout


def test_files_of_a_running_emulator(lab: Lab) -> None:
    """While it runs, locks and the discovery file are there with the real keys; afterwards they are gone."""
    with phone(lab) as running:
        pid = str(running.process.pid)
        for name in avd.LOCK_NAMES:
            assert (running.directory / name).read_text() == pid
        (found,) = running_files(lab)
        assert found.name == f"pid_{pid}.ini"
        keys = avd.read_ini(found)
        assert (keys["port.serial"], keys["port.adb"]) == (str(running.console_port), str(running.adb_port))
        assert (keys["avd.id"], keys["avd.dir"]) == ("phone", str(running.directory))
        assert found.stat().st_mode & 0o777 == 0o600
    assert running.process.returncode == 0
    assert running_files(lab) == []
    assert not any((running.directory / name).exists() for name in avd.LOCK_NAMES)


def test_one_avd_one_emulator(lab: Lab) -> None:
    """A second emulator of the same AVD is refused while the first lives; a dead one's lock is taken over."""
    with phone(lab) as running:
        console, adb_port = free_pair()
        code, text = run(lab, "-avd", "phone", "-ports", f"{console},{adb_port}")
        assert code == 1
        assert "Running multiple emulators with the same AVD is an experimental feature." in text
        assert "Please use -read-only flag to enable this feature." in text
        with phone(lab, flags=("-read-only",)) as second:
            assert second.shell("echo both") == "both\n"
        running.process.kill()
        running.process.wait(10)
        assert (running.directory / avd.LOCK_NAMES[0]).exists()
    with phone(lab) as running:
        assert running.shell("echo again") == "again\n"


def test_taken_ports_are_refused(lab: Lab) -> None:
    """If either port is taken, the emulator ends with exit code 1 and leaves no lock behind."""
    directory = lab.make_avd("phone")
    for half in (0, 1):
        pair = free_pair()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", pair[half]))
            taken.listen()
            code, text = run(lab, "-avd", "phone", "-ports", f"{pair[0]},{pair[1]}")
        assert code == 1
        assert "too many emulator instances are running on this machine" in text
        assert not (directory / avd.LOCK_NAMES[0]).exists()


def console(port: int, lines: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(lines)
        answer = b""
        while chunk := client.recv(4096):
            answer += chunk
    return answer.decode()


def test_console_asks_for_its_token(lab: Lab) -> None:
    """Without the token the console tells where it lies and does nothing; with it, it serves."""
    with phone(lab) as running:
        token_file = lab.root / ".emulator_console_auth_token"
        token = token_file.read_text()
        assert token_file.stat().st_mode & 0o777 == 0o600
        stranger = console(running.console_port, b"avd name\nkill\nauth wrong\nquit\n")
        assert f"you can find your <auth_token> in \r\n'{token_file}'\r\nOK\r\n" in stranger
        assert stranger.count("KO: ") == 3
        assert "phone" not in stranger.split("OK\r\n", 1)[1]
        known = console(
            running.console_port, f"auth {token}\navd name\navd status\nping\nhelp\nnonsense\nquit\n".encode()
        )
        assert "phone\r\nOK\r\nvirtual device is running\r\nOK\r\nI am alive!\r\nOK\r\n" in known
        assert known.endswith("KO: unknown command, try 'help'\r\n")
        assert running.process.poll() is None
        assert running.adb("emu", "avd", "name").out.replace("\r", "") == "phone\nOK\n"


def test_console_events_reach_the_screen(lab: Lab) -> None:
    """`event` and `rotate` act on the display."""
    with phone(lab) as running:
        token = (lab.root / ".emulator_console_auth_token").read_text()
        running.shell("am start -n lomi.paper.form/.FormActivity; input tap 300 230")
        console(running.console_port, f"auth {token}\nevent text hello\nrotate\nquit\n".encode())
        assert "hello" in running.adb("exec-out", "uiautomator dump /dev/tty").out
        assert running.journal("rotated")[-1]["rotation"] == 3


@pytest.mark.parametrize("way", ["console", "SIGTERM", "SIGINT"])
def test_it_ends_when_told(lab: Lab, way: str) -> None:
    """`emu kill` and signals end the process in time, with exit code 0 and both ports free."""
    with phone(lab) as running:
        if way == "console":
            assert running.adb("emu", "kill").out.startswith("OK: killing emulator, bye bye")
        else:
            running.process.send_signal(signal.Signals[way])
        assert running.process.wait(10) == 0
        assert not listening(running.console_port)
        assert not listening(running.adb_port)
        assert running_files(lab) == []


def test_a_client_of_the_last_moment_does_not_keep_it(lab: Lab) -> None:
    """Who connects in the moment of its end is let go, and the phone ends."""
    with phone(lab, wait=False, faults='[[fault]]\nname = "never_boots"\ntext = "adbd"\n') as running:
        wait_for(lambda: running.journal("boot"))
        running.process.send_signal(signal.SIGSTOP)
        with socket.create_connection(("127.0.0.1", running.adb_port), timeout=5):
            # Both are there when it goes on: somebody at the door, and the order to end.
            running.process.terminate()
            running.process.send_signal(signal.SIGCONT)
            assert running.process.wait(10) == 0


def test_flags_shape_the_phone(lab: Lab) -> None:
    """Time zone, locale and properties come from the command line, the display from the AVD."""
    lab.make_avd("wide", hw_lcd_width="1280", hw_lcd_height="800", hw_lcd_density="160", target="android-33")
    with phone(lab, "wide", flags=("-timezone", "Asia/Tokyo", "-change-locale", "ja-JP", "-prop", "x.y=z")) as running:
        out = running.shell("date +%H:%M; getprop persist.sys.locale; getprop x.y; wm size; wm density")
        assert out == "18:00\nja-JP\nz\nPhysical size: 1280x800\nPhysical density: 160\n"


def test_user_data_survives_until_wiped(lab: Lab) -> None:
    """Files, settings, permissions and removed apps outlive the process; -wipe-data makes the phone new."""
    kept = "cat /sdcard/note; settings get system x; pm path lomi.paper.list; wc -c </sdcard/big; cat /sdcard/DCIM/d/e"
    with phone(lab) as running:
        running.shell("echo hello > /sdcard/note; settings put system x 7; pm uninstall lomi.paper.list")
        running.shell(
            "pm grant lomi.paper.permissions android.permission.CAMERA; mkdir /sdcard/DCIM/d; rm -r /sdcard/Pictures"
        )
        running.shell("echo deep > /sdcard/DCIM/d/e")
        (lab.root / "big").write_bytes(b"x" * 200_000)
        running.adb("push", str(lab.root / "big"), "/sdcard/big", check=True)
    with phone(lab) as running:
        assert running.shell(kept) == "hello\n7\n200000\ndeep\n"
        assert "CAMERA: granted=true" in running.shell("dumpsys package lomi.paper.permissions")
        assert "Pictures" not in running.shell("ls /sdcard")
        assert running.journal("boot")[-1]["boot"] == 2
    with phone(lab, flags=("-wipe-data",)) as running:
        assert running.adb("shell", "cat /sdcard/note").code == 1
        assert running.shell("settings get system x; pm path lomi.paper.list").startswith("null\npackage:")
        assert running.journal("boot")[-1]["boot"] == 1


def test_it_announces_itself_only_to_a_named_server(lab: Lab) -> None:
    """With ANDROID_ADB_SERVER_PORT the phone tells that server of itself, as the emulator does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(15)
        port = server.getsockname()[1]
        with phone(lab, wait=False, ANDROID_ADB_SERVER_PORT=str(port)) as running:
            client, _ = server.accept()
            with client:
                message = f"host:emulator:{running.adb_port}"
                assert client.recv(100).decode() == f"{len(message):04x}{message}"
