"""The public device calls of adbutils that are seldom used; with those of `test_clients` they are all there are."""

import gc
import http.server
import re
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import adbutils
import pytest
from adbutils import sync

from paper import test_clients
from paper.lab import Lab, RunningPhone, free_pair, phone, wait_for
from paper.test_clients import FORM, device, make_apk, tcp_phone

__all__ = ["device", "tcp_phone"]
# adbutils leaves sockets and files open, and its older names are driven too.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{name}")
    for name in ("pytest.PytestUnraisableExceptionWarning", "ResourceWarning", "DeprecationWarning")
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Let the sockets that adbutils leaves open go at once, without their warnings."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@contextmanager
def served(content: bytes) -> Iterator[str]:
    """A file on a loopback web server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/app.apk"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_files(device: adbutils.AdbDevice, tmp_path: Path) -> None:
    """Push and pull of files and trees, and reads by piece, bring the exact bytes."""
    content = bytes(range(256)) * 400
    (tmp_path / "f").write_bytes(content)
    device.shell("mkdir -p /sdcard/tree")
    assert device.push(str(tmp_path / "f"), "/sdcard/tree/f") == len(content)
    assert device.sync.read_bytes("/sdcard/tree/f") == content
    assert b"".join(device.sync.iter_content("/sdcard/tree/f")) == content
    assert [entry.path for entry in device.sync.iter_directory("/sdcard/tree")] == ["f"]
    for name, pull in (("a", device.sync.pull), ("b", device.sync.pull_file)):
        assert pull("/sdcard/tree/f", str(tmp_path / name)) == len(content)
        assert (tmp_path / name).read_bytes() == content
    assert device.sync.pull_dir("/sdcard/tree", str(tmp_path / "tree")) == len(content)
    assert (tmp_path / "tree" / "f").read_bytes() == content


def test_packages(device: adbutils.AdbDevice, tmp_path: Path) -> None:
    """A package is downloaded from a web server, pushed, installed from the phone's own file, and described."""
    apk = make_apk("org.example.rest", code=3)
    with served(apk) as url:
        device.download_apk(url, tmp_path / "got.apk")
    assert (tmp_path / "got.apk").read_bytes() == apk
    device.push(str(tmp_path / "got.apk"), "/data/local/tmp/rest.apk")
    device.install_remote("/data/local/tmp/rest.apk", clean=True)
    assert not device.sync.exists("/data/local/tmp/rest.apk")
    assert device.package_info("org.example.rest")["version_code"] == 3
    assert device.package_info(FORM)["version_name"] == "1.0"


def test_connections(
    device: adbutils.AdbDevice, tcp_phone: RunningPhone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raw connections, shells, forwards both ways and a followed log work, and adb's own program beside them."""
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(tcp_phone.lab.tcp_port))
    assert device.adb_output("shell", "echo hi").strip() == "hi"
    with device.open_transport("get-state") as connection:
        assert connection.read_string_block() == "device"
    with device.open_shell(["echo", "two words"]) as shell:
        assert shell.read_until_close() == "two words\n"
    device.create_connection("tcp", 5555).close()
    assert device.get_devpath() == "unknown", "an emulator hangs on no bus"
    for forward in device.forward_list():
        device.forward_remove(forward.local)
    assert list(device.forward_list()) == []
    device.reverse("tcp:8123", "tcp:9")
    device.reverse_remove("tcp:8123")
    assert list(device.reverse_list()) == []
    followed = device.logcat(tmp_path / "log", command="logcat -v time")
    followed.stop()
    assert (tmp_path / "log").exists()


def test_modes() -> None:
    """`tcpip`, `root` and `reboot` answer as an emulator does; the last one really reboots."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root:
        lab = Lab(Path(root), tcp_port=free_pair()[0])
        lab.make_keys()
        with lab.server(), phone(lab) as running:
            device = adbutils.AdbClient("127.0.0.1", lab.tcp_port, socket_timeout=20).device(running.serial)
            assert device.tcpip(5555) == "restarting in TCP mode port: 5555\n"
            assert device.get_state() == "device"
            assert "restarting adbd as root" in device.root()
        with lab.server(), phone(lab) as running:
            device = adbutils.AdbClient("127.0.0.1", lab.tcp_port, socket_timeout=20).device(running.serial)
            device.reboot()
            record = running.directory / "paper-journal.jsonl"
            wait_for(lambda: '"reboot"' in record.read_text(encoding="utf-8"))


def test_what_needs_code_on_the_phone_fails_loudly(device: adbutils.AdbDevice, tmp_path: Path) -> None:
    """A recording needs a program that runs on Android: refused by name, and no file pretends to be a film."""
    for call in (lambda: device.start_recording(str(tmp_path / "v.mp4")), device.is_recording, device.stop_recording):
        with pytest.raises(adbutils.AdbError, match="screenrecord"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_every_public_call_is_driven() -> None:
    """No public name of the device, or of its files, is missing from these two modules."""
    text = "".join(Path(str(one)).read_text(encoding="utf-8") for one in (__file__, test_clients.__file__))
    of_device = {name for name in dir(adbutils.AdbDevice) if not name.startswith("_")}
    of_files = {name for name in dir(sync.Sync) if not name.startswith("_")}
    assert {name for name in of_device if not re.search(rf"\b(d|device)\.{name}\b", text)} == set()
    assert {name for name in of_files if not re.search(rf"\bsync\.{name}\b", text)} == set()
