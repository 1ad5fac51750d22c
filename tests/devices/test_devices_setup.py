"""Contract tests of SDK setup against a local mirror in Google's format: nothing unverified is ever installed."""

import hashlib
import io
import stat
import zipfile
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import pytest
from sdk_mirror import LICENCE, Mirror, a_mirror, package, zipped

from devices.faults import DeviceFault
from devices.sdk import tools
from devices.sdk.catalogue import HostKind, parse_local_package, read_repository, trimmed_licence
from devices.sdk.faults import SetupFailed
from devices.sdk.plans import Plan
from devices.sdk.setup import Setup, host_kind
from devices.sdk.unpack import unpack
from devices.world import World

HOST = HostKind("linux", "x64")
GOOD = zipped({"emulator.sh": b"#!/bin/sh\n", "lib/a.txt": b"a" * 5000})
NEXT = zipped({"emulator.sh": b"#!/bin/sh\n# two\n"})
DIGEST = hashlib.sha1(trimmed_licence(LICENCE).encode()).hexdigest()
AGREED = frozenset((DIGEST,))


async def fault_of(work: Awaitable[object]) -> DeviceFault | None:
    try:
        await work
    except DeviceFault as fault:
        return fault
    return None


async def a_setup(tmp_path: Path, mirror: Mirror, world: World | None = None) -> Setup:
    setup = Setup(tmp_path / "private", host=HOST, world=world or World(), base_url=mirror.url)
    await setup.open()
    return setup


async def planned(setup: Setup, *wanted: tuple[str, str]) -> Plan:
    catalogue = await setup.catalogue(refresh=True)
    return await setup.prepare(catalogue.revision, wanted)


async def test_a_plan_is_exact_and_an_apply_installs_it(tmp_path: Path) -> None:
    """Catalogue, plan with dependency and licence digest, verified install, package.xml and licence file on disk."""
    async with a_mirror() as mirror:
        mirror.files["/good.zip"] = GOOD
        mirror.files["/tool.zip"] = NEXT
        mirror.publish(
            package("image;a", GOOD, "good.zip", depends="emulator"),
            package("emulator", NEXT, "tool.zip", version="37.1.11"),
            package("emulator", b"preview", "preview.zip", version="37.2.5", channel=2),
        )
        setup = await a_setup(tmp_path, mirror)
        plan = await planned(setup, ("image;a", "1"))
        assert [(one.path, one.version) for one in plan.packages] == [("emulator", "37.1.11"), ("image;a", "1")]
        assert plan.download_bytes == len(GOOD) + len(NEXT)
        assert [licence.digest for licence in plan.licences] == [DIGEST]
        assert setup.plan(plan.id, plan.revision) is plan
        refused = await fault_of(setup.apply(plan, frozenset()))
        assert refused is not None
        assert refused.reason == "licence_missing"
        assert not any(path.endswith(".zip") for path, _ in mirror.requests)
        revision = await setup.apply(plan, AGREED)
        manifest, now = await setup.manifest()
        assert now == revision
        assert {one.path for one in manifest.installed} == {"emulator", "image;a"}
        image = setup.sdk / "image" / "a"
        assert (image / "lib" / "a.txt").read_bytes() == b"a" * 5000
        assert (image / "emulator.sh").stat().st_mode & stat.S_IXUSR
        told = parse_local_package((image / "package.xml").read_bytes())
        assert told is not None
        assert told[0] == "image;a"
        assert DIGEST in (setup.sdk / "licenses" / "sim-license").read_text()
        assert [(one.path, one.version) for one in tools.installed_in(setup.sdk)] == [
            ("emulator", "37.1.11"),
            ("image;a", "1"),
        ]
        assert (await planned(setup, ("image;a", "1"))).packages == ()


async def test_what_is_not_what_the_catalogue_names_is_never_installed(tmp_path: Path) -> None:
    """Wrong checksum, too short, too long and missing downloads fail by name; the SDK stays as it was."""
    async with a_mirror() as mirror:
        mirror.files |= {"/wrong.zip": GOOD, "/short.zip": GOOD[:-10], "/long.zip": GOOD + b"x"}
        mirror.publish(
            package("wrong", GOOD, "wrong.zip", checksum="1" * 40),
            package("short", GOOD, "short.zip"),
            package("long", GOOD, "long.zip"),
            package("gone", GOOD, "gone.zip"),
        )
        setup = await a_setup(tmp_path, mirror)
        reasons = {
            "wrong": "checksum_mismatch", "short": "download_size", "long": "download_size", "gone": "download_failed",
        }  # fmt: skip
        for path, reason in reasons.items():
            (tmp_path / "private" / "downloads" / f"{hashlib.sha1(GOOD).hexdigest()}.zip").unlink(missing_ok=True)
            fault = await fault_of(setup.apply(await planned(setup, (path, "1")), AGREED))
            assert isinstance(fault, SetupFailed)
            assert fault.reason == reason, path
            assert fault.effect == "none"
        assert (await setup.manifest())[0].installed == ()
        assert [path for path in setup.sdk.iterdir() if path.name != "licenses"] == []


async def test_an_interrupted_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A cut connection costs the rest of the bytes, not all of them."""
    async with a_mirror() as mirror:
        mirror.files["/good.zip"] = GOOD
        mirror.publish(package("one", GOOD, "good.zip"))
        mirror.cut["/good.zip"] = 100
        setup = await a_setup(tmp_path, mirror)
        await setup.apply(await planned(setup, ("one", "1")), AGREED)
        assert [start for path, start in mirror.requests if path == "/good.zip"] == ["", "100"]


async def test_update_roll_back_and_remove(tmp_path: Path) -> None:
    """An update keeps one older copy; rolling back brings it back; removing takes both; used packages stay."""
    async with a_mirror() as mirror:
        mirror.files |= {"/1.zip": GOOD, "/2.zip": NEXT}
        mirror.publish(package("emulator", GOOD, "1.zip"), package("emulator", NEXT, "2.zip", version="2"))
        setup = await a_setup(tmp_path, mirror)
        await setup.apply(await planned(setup, ("emulator", "1")), AGREED)
        revision = await setup.apply(await planned(setup, ("emulator", "2")), AGREED)
        manifest, _ = await setup.manifest()
        assert [one.version for one in manifest.installed] == ["2"]
        assert [one.version for one in manifest.rollbacks] == ["1"]
        used = await fault_of(setup.roll_back("emulator", revision, in_use=lambda _path: True))
        assert used is not None
        assert used.reason == "package_in_use"
        stale = await fault_of(setup.roll_back("emulator", "0" * 64, in_use=lambda _path: False))
        assert stale is not None
        assert stale.reason == "manifest_changed"
        revision = await setup.roll_back("emulator", revision, in_use=lambda _path: False)
        assert (setup.sdk / "emulator" / "lib" / "a.txt").exists()
        again = await fault_of(setup.roll_back("emulator", revision, in_use=lambda _path: False))
        assert again is not None
        assert again.reason == "nothing_to_roll_back"
        await setup.remove("emulator", revision, in_use=lambda _path: False)
        assert not (setup.sdk / "emulator").exists()


@pytest.mark.parametrize("moment", ["journal", "moved_away", "moved_in"])
async def test_a_crash_in_the_middle_of_a_swap_is_recovered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Stopped after the journal, after the old folder left, after the new one came: a whole package is recovered."""

    class CrashError(BaseException):
        pass

    async with a_mirror() as mirror:
        mirror.files |= {"/1.zip": GOOD, "/2.zip": NEXT}
        mirror.publish(package("emulator", GOOD, "1.zip"), package("emulator", NEXT, "2.zip", version="2"))
        setup = await a_setup(tmp_path, mirror)
        await setup.apply(await planned(setup, ("emulator", "1")), AGREED)
        plan = await planned(setup, ("emulator", "2"))
        rename, seen = Path.rename, 0
        crash_at = {"journal": 1, "moved_away": 2, "moved_in": 3}[moment]

        def crashing(self: Path, target: Path) -> Path:
            nonlocal seen
            seen += 1
            if seen == crash_at:
                raise CrashError
            return rename(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "rename", crashing)
            patch.setattr("devices.sdk.setup.shutil.rmtree", lambda *_a, **_k: None)
            if moment == "moved_in":
                patch.setattr(setup._manifest, "write", crash_in(CrashError))
            with pytest.raises(CrashError):
                await setup.apply(plan, AGREED)
        fresh = await a_setup(tmp_path, mirror)
        assert fresh.recovery_required
        refused = await fault_of(fresh.clean_up())
        assert refused is not None
        assert refused.reason == "recovery_required"
        await fresh.recover()
        assert not fresh.recovery_required
        manifest, _ = await fresh.manifest()
        assert [one.version for one in manifest.installed] == ["2"]
        assert b"# two" in (fresh.sdk / "emulator" / "emulator.sh").read_bytes()


def crash_in(kind: type[BaseException]) -> object:
    def crash(*_: object) -> str:
        raise kind

    return crash


async def test_plans_expire_and_are_few(tmp_path: Path) -> None:
    """A plan lives half an hour, at most eight are saved, and another revision of it is refused."""
    now = [0.0]
    async with a_mirror() as mirror:
        mirror.publish(package("one", GOOD, "good.zip"))
        setup = await a_setup(tmp_path, mirror, replace(World(), monotonic=lambda: now[0]))
        plans = [await planned(setup, ("one", "1")) for _ in range(8)]
        full = await fault_of(planned(setup, ("one", "1")))
        assert full is not None
        assert full.reason == "too_many_plans"
        with pytest.raises(SetupFailed, match="plan_changed"):
            setup.plan(plans[0].id, "0" * 64)
        now[0] = 1801
        with pytest.raises(SetupFailed, match="plan_expired"):
            setup.plan(plans[0].id, plans[0].revision)
        stale = await fault_of(setup.prepare("0" * 64, (("one", "1"),)))
        assert stale is not None
        assert stale.reason == "catalogue_changed"


@pytest.mark.parametrize(
    "document",
    [
        b"<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>",
        b"not xml",
        b"<x>" + b"y" * (9 << 20),
        b"<x><remotePackage",
    ],
    ids=["entities", "junk", "flood", "half"],
)
def test_hostile_catalogues_are_refused(document: bytes) -> None:
    """Entities, junk, floods and half documents are refused by name."""
    with pytest.raises(SetupFailed, match="catalogue_invalid"):
        read_repository(document, "http://x/", HOST)


def test_old_schemas_hosts_and_odd_packages() -> None:
    """Thirty-two bit archives, other hosts, hostile paths and missing checksums are left out; the rest is read."""
    head = '<r xmlns="http://schemas.android.com/sdk/android/repo/repository2/01">'
    bits = "<host-os>linux</host-os><host-bits>32</host-bits>"
    mac = "<host-os>macosx</host-os>"
    arm = "<host-os>linux</host-os><host-arch>aarch64</host-arch>"
    rows = [
        package("good;one", b"1", "a.zip", host="<host-os>linux</host-os><host-bits>64</host-bits>"),
        package("bits", b"1", "a.zip", host=bits),
        package("mac", b"1", "a.zip", host=mac),
        package("arm", b"1", "a.zip", host=arm),
        package("../../etc", b"1", "a.zip"),
        package("no sum", b"1", "a.zip"),
        package("weak", b"1", "a.zip", checksum="12"),
    ]
    text = f"{head}{''.join(rows)}</r>".encode()
    found = read_repository(text, "https://host/base/repo.xml", HOST)
    assert [one.path for one in found.packages] == ["good;one"]
    assert found.packages[0].archive.url == "https://host/base/a.zip"
    assert host_kind("Linux", "aarch64") == HostKind("linux", "aarch64")


def hostile_zips() -> list[tuple[str, bytes]]:
    cases = []
    for name in ("../out", "/abs", "a/../../b", "c\\d"):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr(zipfile.ZipInfo(name), b"x")
            archive.writestr("ok", b"y")
        cases.append((name, out.getvalue()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, b"/etc")
        archive.writestr("ok", b"y")
    cases.append(("link", out.getvalue()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", b"\0" * (64 << 20))
    cases.append(("bomb", out.getvalue()))
    return cases


@pytest.mark.parametrize(("name", "raw"), hostile_zips(), ids=[name for name, _ in hostile_zips()])
def test_hostile_archives_write_nothing_outside(tmp_path: Path, name: str, raw: bytes) -> None:
    """Names that climb, links that leave and bombs are refused."""
    path = tmp_path / "x.zip"
    path.write_bytes(raw)
    with pytest.raises(SetupFailed, match="archive_hostile"):
        unpack(path, tmp_path / "into" / "here")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "into" / "out").exists()


STAND_IN = """#!/bin/sh
case "$*" in
*"sdk install"*|*--install*)
  [ -n "$LIE" ] && exit 0
  mkdir -p "{sdk}/emulator"
  cp "$0.xml" "{sdk}/emulator/package.xml"
  echo "telemetry failed" >&2
  exit 1;;
*"create avd"*)
  printf 'Do you wish to create a custom hardware profile? [no] '
  read answer
  [ "$answer" = no ] || exit 9
  mkdir -p "$ANDROID_AVD_HOME/$4.avd"
  echo "hw.lcd.width=720" > "$ANDROID_AVD_HOME/$4.avd/config.ini"
  echo "path=x" > "$ANDROID_AVD_HOME/$4.ini";;
esac
"""


@pytest.mark.parametrize("front_end", ["android", "sdkmanager"])
async def test_googles_tools_are_judged_by_files(tmp_path: Path, front_end: str) -> None:
    """Both front ends: an exit code of 1 with files is a success, an exit code of 0 without is a failure."""
    sdk, home = tmp_path / "sdk", tmp_path / "avd"
    folder = sdk / "cmdline-tools" / "latest" / "bin"
    folder.mkdir(parents=True)
    home.mkdir()
    for name in (front_end, "avdmanager"):
        (folder / name).write_text(STAND_IN.format(sdk=sdk))
        (folder / name).chmod(0o755)
    (folder / f"{front_end}.xml").write_text(
        '<r><localPackage path="emulator"><revision><major>3</major></revision>'
        "<display-name>E</display-name></localPackage></r>"
    )
    ends = tools.front_ends(sdk)
    environment = {"PATH": "/usr/bin:/bin"}
    lie = await fault_of(
        tools.install_with_tool(sdk, ends, "emulator", environment=environment | {"LIE": "1"}, world=World())
    )
    assert lie is not None
    assert lie.reason == "install_failed"
    found = await tools.install_with_tool(sdk, ends, "emulator", environment=environment, world=World())
    assert found.version == "3"
    config = await tools.create_with_tool(
        sdk, ends, home, name="one", image="system-images;x", device="pixel", environment=environment, world=World()
    )
    assert config.exists()


async def test_a_mirror_of_older_schemas_is_read(tmp_path: Path) -> None:
    """Where the newest documents are missing the older ones are read; where none is there, that is said."""
    async with a_mirror() as mirror:
        mirror.publish(package("image;a", GOOD, "good.zip"))
        for newest, older in (("repository2-3", "repository2-1"), ("addons_list-5", "addons_list-3")):
            mirror.files[f"/{older}.xml"] = mirror.files.pop(f"/{newest}.xml")
        setup = await a_setup(tmp_path, mirror)
        assert [one.path for one in (await setup.catalogue()).packages] == ["image;a"]
        del mirror.files["/repository2-1.xml"]
        missing = await fault_of(setup.catalogue(refresh=True))
        assert missing is not None
        assert (missing.reason, missing.fields["status"]) == ("catalogue_unreachable", 404)
