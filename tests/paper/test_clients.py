"""Other people's clients against paper: all of adbutils, and an older adb and npm's mobile-mcp where they are found."""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import adbutils
import pytest

from devices.processes import MARKER_VARIABLE, carriers, end_processes
from devices.world import World
from paper.lab import ADB, Lab, RunningPhone, free_pair, phone

sys.path.append(str(Path(__file__).parents[1] / "devices"))
from apk_maker import make_apk

OLD_ADB = os.environ.get("LOMI_TEST_OLD_ADB") or "/usr/lib/android-sdk/platform-tools/adb"
MOBILE_MCP = os.environ.get("LOMI_TEST_MOBILE_MCP", "")
"""The script of an installed @mobilenext/mobile-mcp; `ci/deep` names one."""
NODE = os.environ.get("LOMI_TEST_NODE") or shutil.which("node") or ""
FORM = "lomi.paper.form"


@pytest.fixture(scope="module")
def tcp_phone() -> Iterator[RunningPhone]:
    """A phone at an adb server on a private loopback port, for clients that know no socket files."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root:
        lab = Lab(Path(root), tcp_port=free_pair()[0])
        lab.make_keys()
        with lab.server(), phone(lab) as running:
            yield running


@pytest.fixture
def device(tcp_phone: RunningPhone) -> adbutils.AdbDevice:
    return adbutils.AdbClient("127.0.0.1", tcp_phone.lab.tcp_port, socket_timeout=20).device(tcp_phone.serial)


CALLS: dict[str, Callable[[adbutils.AdbDevice], object]] = {
    "shell": lambda d: d.shell("echo hi") == "hi",
    "shell2 v1": lambda d: d.shell2("false").returncode == 1,
    "shell2 v2": lambda d: d.shell2("echo e >&2; exit 4", v2=True).returncode == 4,
    "getprop": lambda d: d.getprop("ro.lomi.simulated") == "true",
    "prop": lambda d: (d.prop.model, d.prop.device) == ("Lomi Paper", "lomi_paper"),
    "get_state": lambda d: d.get_state() == "device",
    "get_features": lambda d: "shell_v2" in d.get_features(),
    "get_serialno": lambda d: d.get_serialno() == d.serial,
    "info": lambda d: d.info["serialno"] == d.serial,
    "window_size": lambda d: tuple(d.window_size()) == (720, 1280),
    "rotation": lambda d: d.rotation() == 0,
    "is_screen_on": lambda d: d.is_screen_on() is True,
    "screenshot": lambda d: d.screenshot().size == (720, 1280),
    "screenshot by display": lambda d: d.screenshot(display_id=0, error_ok=False).size == (720, 1280),
    "framebuffer": lambda d: d.framebuffer().size == (720, 1280),
    "click": lambda d: d.click(100, 100) is None,
    "swipe": lambda d: d.swipe(100, 900, 100, 200, 0.1) is None,
    "drag": lambda d: d.drag(1, 2, 3, 4, 0.1) is None,
    "keyevent": lambda d: not d.keyevent("HOME"),
    "send_keys": lambda d: d.send_keys("abc") == "",
    "battery": lambda d: d.battery().level == 100,
    "brightness_value": lambda d: d.brightness_value == 102,
    "brightness_mode": lambda d: d.brightness_mode.value == 0,
    "wlan_ip": lambda d: d.wlan_ip() == "10.0.2.16",
    "volume": lambda d: (d.volume_up(), d.volume_down(), d.volume_mute()) == (None, None, None),
    "switch_wifi": lambda d: d.switch_wifi(enable=True) is None,
    "switch_airplane": lambda d: d.switch_airplane(enable=False) is None,
    "switch_screen": lambda d: d.switch_screen(enable=True) is None,
    "list_packages": lambda d: FORM in d.list_packages(),
    "app_start": lambda d: d.app_start(FORM, ".FormActivity") is None and d.app_current().package == FORM,
    "app_start by monkey": lambda d: d.app_start("lomi.paper.list") is None,
    "app_info": lambda d: d.app_info(FORM).version_name == "1.0",
    "app_stop": lambda d: d.app_stop(FORM) is None,
    "app_clear": lambda d: d.app_clear(FORM) is None,
    "open_browser": lambda d: d.open_browser("https://example.org/") is None,
    "dump_hierarchy": lambda d: d.dump_hierarchy().startswith("<?xml"),
    "forward": lambda d: d.forward("tcp:0", "tcp:9") is None and len(list(d.forward_list())) > 0,
    "forward_port": lambda d: d.forward_port(8000) > 0,
    "forward_remove_all": lambda d: d.forward_remove_all() is None,
    "reverse": lambda d: d.reverse("tcp:0", "tcp:9") is None and len(list(d.reverse_list())) == 1,
    "reverse_remove_all": lambda d: d.reverse_remove_all() is None and list(d.reverse_list()) == [],
    "sync": lambda d: d.sync.push(b"hello", "/sdcard/h") == 5 and d.sync.read_text("/sdcard/h") == "hello",
    "sync.stat": lambda d: d.sync.stat("/sdcard/h").size == 5 and not d.sync.exists("/nope"),
    "sync.list": lambda d: "h" in [entry.path for entry in d.sync.list("/sdcard")],
    "remove": lambda d: d.remove("/sdcard/h") is None and not d.sync.exists("/sdcard/h"),
    "rmtree": lambda d: d.rmtree("/sdcard/DCIM") is None,
}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # adbutils leaves some sockets open
def test_adbutils(device: adbutils.AdbDevice) -> None:
    """Every public device call of adbutils works: each with a true answer."""
    failed = [name for name, call in CALLS.items() if not call(device)]
    assert failed == []


def test_adbutils_installs_and_removes(device: adbutils.AdbDevice, tmp_path: Path) -> None:
    """Adbutils' own install, by push and pm, and its uninstall."""
    path = tmp_path / "a.apk"
    path.write_bytes(make_apk("org.example.adbutils", code=7))
    device.install(str(path), silent=True)
    assert device.app_info("org.example.adbutils").version_code == 7
    assert "Success" in device.uninstall("org.example.adbutils")


@pytest.mark.skipif(not Path(OLD_ADB).is_file(), reason=f"no older adb at {OLD_ADB} (LOMI_TEST_OLD_ADB names one)")
def test_an_older_adb(tmp_path: Path) -> None:
    """Debian's adb 29 speaks with paper too: list, shell, files, install, forward, kill."""
    with tempfile.TemporaryDirectory(prefix="paper-") as root:
        lab = Lab(Path(root), binary=Path(OLD_ADB))
        lab.make_keys()
        (tmp_path / "f").write_bytes(b"x" * 100_000)
        (tmp_path / "a.apk").write_bytes(make_apk("org.example.old"))
        with lab.server(), phone(lab) as running:
            assert f"{running.serial}\tdevice" in lab.adb("devices").out
            assert running.adb("shell", "echo e >&2; exit 3").code == 3
            running.adb("push", str(tmp_path / "f"), "/sdcard/f", check=True)
            running.adb("pull", "/sdcard/f", str(tmp_path / "g"), check=True)
            assert (tmp_path / "g").read_bytes() == b"x" * 100_000
            assert "Success" in running.adb("install", str(tmp_path / "a.apk"), check=True).out
            assert running.adb("emu", "kill").out.startswith("OK: killing")
            assert running.process.wait(10) == 0


class Mcp:
    """A minimal MCP client over stdio."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._count = 0

    def call(self, method: str, **params: object) -> dict[str, object]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        while True:
            line = self._process.stdout.readline()
            assert line, "the server has ended"
            answer = json.loads(line)
            if answer.get("id") == self._count:
                return dict(answer["result"])

    def tool(self, name: str, **arguments: object) -> str:
        return json.dumps(self.call("tools/call", name=f"mobile_{name}", arguments=arguments))


@pytest.mark.deep
@pytest.mark.skipif(not (MOBILE_MCP and NODE), reason="LOMI_TEST_MOBILE_MCP names no script of @mobilenext/mobile-mcp")
def test_mobile_mcp(tcp_phone: RunningPhone, tmp_path: Path) -> None:
    """mobile-mcp's tools work on paper: list, install, apps, launch, look, tap, type, turn, close, uninstall."""
    lab, serial = tcp_phone.lab, tcp_phone.serial
    tools = tmp_path / "sdk" / "platform-tools"
    tools.mkdir(parents=True)
    (tools / "adb").symlink_to(ADB)
    (tmp_path / "a.apk").write_bytes(make_apk("org.example.mcp"))
    marker = secrets.token_hex(16)
    environment = {
        **lab.environment,
        MARKER_VARIABLE: marker,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "ANDROID_HOME": str(tmp_path / "sdk"),
        "ANDROID_ADB_SERVER_PORT": str(lab.tcp_port),
        "MOBILEMCP_DISABLE_TELEMETRY": "1",
        "MOBILEMCP_LEGACY_ROBOT": "1",
    }
    process = subprocess.Popen(
        [NODE, MOBILE_MCP],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        mcp = Mcp(process)
        mcp.call("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})
        assert serial in mcp.tool("list_available_devices")
        at = {"device": serial}
        assert "Installed app" in mcp.tool("install_app", **at, path=str(tmp_path / "a.apk"))
        assert "org.example.mcp" in mcp.tool("list_apps", **at)
        assert "720x1280" in mcp.tool("get_screen_size", **at)
        assert "Launched" in mcp.tool("launch_app", **at, packageName=FORM)
        assert '"image"' in mcp.tool("take_screenshot", **at)
        assert "Name" in mcp.tool("list_elements_on_screen", **at)
        assert "Clicked" in mcp.tool("click_on_screen_at_coordinates", **at, x=300, y=230)
        assert "Typed text" in mcp.tool("type_keys", **at, text="Ada", submit=False)
        assert "Ada" in mcp.tool("list_elements_on_screen", **at)
        assert "Double-tapped" in mcp.tool("double_tap_on_screen", **at, x=300, y=230)
        assert "Long pressed" in mcp.tool("long_press_on_screen_at_coordinates", **at, x=300, y=230)
        assert "Swiped up" in mcp.tool("swipe_on_screen", **at, direction="up")
        assert "BACK" in mcp.tool("press_button", **at, button="BACK")
        assert "landscape" in mcp.tool("set_orientation", **at, orientation="landscape")
        assert "landscape" in mcp.tool("get_orientation", **at)
        assert "portrait" in mcp.tool("set_orientation", **at, orientation="portrait")
        assert "Error" not in mcp.tool("open_url", **at, url="https://example.org")
        assert "Terminated" in mcp.tool("terminate_app", **at, packageName=FORM)
        assert "Uninstalled" in mcp.tool("uninstall_app", **at, bundle_id="org.example.mcp")
    finally:
        process.kill()
        process.communicate()
        # It starts a daemon, in a session of its own, and leaves it running.
        left = asyncio.run(end_processes(carriers(marker), world=World(), term_s=3.0, kill_s=3.0))
    assert left == ()
