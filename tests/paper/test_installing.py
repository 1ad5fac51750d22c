"""Installing through real adb: what the package manager takes, refuses and remembers."""

import sys
from pathlib import Path

import pytest

from paper.lab import Lab, Result, RunningPhone, phone

sys.path.append(str(Path(__file__).parents[1] / "devices"))
from apk_maker import make_apk

PACKAGE = "org.example.app"


def install(running: RunningPhone, payload: bytes, *flags: str) -> Result:
    path = running.lab.root / "app.apk"
    path.write_bytes(payload)
    return running.adb("install", *flags, str(path))


def test_install_launch_update_uninstall(lab: Lab) -> None:
    """An APK is installed, listed, launched, updated keeping its age, and uninstalled; the journal tells all."""
    with phone(lab) as running:
        assert install(running, make_apk(PACKAGE, code=3, name="1.3")).code == 0
        assert f"package:{PACKAGE}\n" in running.shell("pm list packages -3")
        assert running.shell(f"pm path {PACKAGE}").startswith("package:/data/app/")
        assert "Status: ok" in running.shell(f"am start -W -n {PACKAGE}/.Main")
        assert f"{PACKAGE}/{PACKAGE}.Main" in running.shell("dumpsys window | grep mCurrentFocus")
        running.shell("cmd lomi_agent clock advance 3600")
        assert install(running, make_apk(PACKAGE, code=4, name="1.4")).code == 0
        told = running.shell(f"dumpsys package {PACKAGE}")
        assert "versionCode=4 minSdk=26 targetSdk=34" in told
        assert "firstInstallTime=2026-01-01 09:00:00" in told
        assert "lastUpdateTime=2026-01-01 10:00:00" in told
        assert running.adb("uninstall", PACKAGE).out == "Success\n"
        assert running.adb("uninstall", PACKAGE).code == 1
        assert running.shell(f"pm path {PACKAGE}", check=False) == ""
        events = [(line["event"], line.get("replaced")) for line in running.journal() if line.get("package") == PACKAGE]
        assert ("install", None) in events
        assert ("install", 3) in events
        assert events[-1] == ("uninstall", None)


REFUSALS = [
    ("INSTALL_FAILED_OLDER_SDK: Failed parse during installPackageLI: Requires newer sdk version #99",
     {"min_sdk": 99}),
    ("INSTALL_FAILED_NO_MATCHING_ABIS", {"abi": "armeabi-v7a"}),
    ("INSTALL_FAILED_DEPRECATED_SDK_VERSION: App package must target at least SDK version 24, but found 20",
     {"target_sdk": 20}),
    ("INSTALL_FAILED_VERSION_DOWNGRADE: Downgrade detected: Update version code 1 is older than current 5",
     {"code": 1}),
    (f"INSTALL_FAILED_UPDATE_INCOMPATIBLE: Existing package {PACKAGE} signatures do not match newer version; ignoring!",
     {"code": 6, "certificate": b"somebody else"}),
]  # fmt: skip


def test_what_breaks_a_rule_is_refused(lab: Lab) -> None:
    """Each rule of the package manager refuses with its code and text, and the installed version stays as it was."""
    with phone(lab) as running:
        assert install(running, make_apk(PACKAGE, code=5)).code == 0
        for text, options in REFUSALS:
            result = install(running, make_apk(PACKAGE, **{"code": 5, **options}))  # type: ignore[arg-type]
            assert (result.code, text in result.err) == (1, True), result
        assert "versionCode=5 " in running.shell(f"dumpsys package {PACKAGE}")
        assert len(running.journal("install")) == 1
        assert len(running.journal("install_refused")) == len(REFUSALS)


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"no zip at all", "INSTALL_PARSE_FAILED_NOT_APK"),
        (b"PK\x05\x06" + bytes(18), "INSTALL_FAILED_INVALID_APK"),
    ],
)
def test_what_is_no_apk_is_refused(shared_phone: RunningPhone, payload: bytes, code: str) -> None:
    """Files that are no APK are refused as such."""
    result = install(shared_phone, payload)
    assert result.code == 1
    assert f"Failure [{code}: " in result.err


def test_unsigned_apks_are_refused(shared_phone: RunningPhone) -> None:
    """An APK whose signing block is cut out has no certificates."""
    signed = make_apk("org.example.unsigned")
    directory = int.from_bytes(signed[-6:-2], "little")
    start = directory - int.from_bytes(signed[directory - 24 : directory - 16], "little") - 8
    end = bytearray(signed[directory:])
    end[-6:-2] = start.to_bytes(4, "little")
    result = install(shared_phone, signed[:start] + bytes(end))
    assert "INSTALL_PARSE_FAILED_NO_CERTIFICATES" in result.err


def test_large_apk_is_streamed_without_memory(lab: Lab) -> None:
    """A 40 MB APK is installed and the phone stays under its bound."""
    with phone(lab) as running:
        result = install(running, make_apk(PACKAGE, padding=0) + b"")
        assert result.code == 0
        big = make_apk("org.example.big", padding=40 << 20)
        assert install(running, big).code == 0
        status = Path(f"/proc/{running.process.pid}/status").read_text()
        assert int(status.split("VmHWM:")[1].split()[0]) < 60 * 1024


def test_installed_apps_outlive_the_process(lab: Lab) -> None:
    """An installed app is there after a restart, with its version and signature."""
    with phone(lab) as running:
        assert install(running, make_apk(PACKAGE, code=5)).code == 0
    with phone(lab) as running:
        assert "versionCode=5 " in running.shell(f"dumpsys package {PACKAGE}")
        assert "UPDATE_INCOMPATIBLE" in install(running, make_apk(PACKAGE, code=6, certificate=b"other")).err
        assert "Status: ok" in running.shell(f"am start -W -n {PACKAGE}/.Main")


def test_an_older_phone_takes_older_apks(lab: Lab) -> None:
    """The AVD's API level decides: what API 36 refuses, API 30 takes."""
    lab.make_avd("old", target="android-30")
    with phone(lab, "old") as running:
        assert install(running, make_apk(PACKAGE, target_sdk=20)).code == 0
        assert running.shell("getprop ro.build.version.sdk; getprop ro.build.version.release") == "30\n11\n"


def test_session_and_pushed_installs(lab: Lab) -> None:
    """The older ways, a pushed file and an install session, work too."""
    with phone(lab) as running:
        path = lab.root / "app.apk"
        path.write_bytes(make_apk(PACKAGE))
        running.adb("install", "--no-streaming", str(path), check=True)
        assert running.adb("install-multiple", str(path)).out == "Success\n"
        assert "Unable to open file" in running.adb("shell", "pm install /data/local/tmp/none.apk").out
