"""Managed devices: made, changed, wiped and deleted by revision and name, and a damaged file that is not believed."""

from collections.abc import Awaitable
from pathlib import Path

from device_rig import a_fleet, spec_for

from devices.faults import DeviceFault
from devices.sdk import avds
from devices.sdk.avds import Hardware, Image
from devices.sdk.book import DeviceBook
from devices.world import World

PAPER = Image("paper-34", "1", 34, "x86_64", "paper", simulated=True)
HARDWARE = Hardware(ram_mib=1024)


async def fault_of(work: Awaitable[object]) -> DeviceFault | None:
    try:
        await work
    except DeviceFault as fault:
        return fault
    return None


async def a_book(tmp_path: Path) -> DeviceBook:
    book = DeviceBook(tmp_path / "book", images={PAPER.id: PAPER}, world=World())
    await book.open()
    return book


async def test_a_device_is_created_booted_changed_wiped_and_deleted(tmp_path: Path) -> None:
    """One device's whole administration; what the book wrote boots for real."""
    book = await a_book(tmp_path)
    _, empty = await book.read()
    device, revision = await book.create(
        empty, name="Phone one", image="paper-34", profile_id="small_phone", hardware=HARDWARE
    )
    config = avds.read_ini(book.avd_home / f"{device.avd}.avd" / "config.ini")
    assert config["hw.ramSize"] == "1024"
    assert avds.display_of(config).width == 720
    async with a_fleet(tmp_path) as fleet:
        spec = spec_for(tmp_path, avd_home=book.avd_home, name="other")
        phone = fleet.phone(
            type(spec)(
                **{
                    **{key: getattr(spec, key) for key in spec.__dataclass_fields__},
                    "name": device.avd,
                    "avd_home": book.avd_home,
                }
            )
        )
        await phone.start()
        assert (await phone.eyes.snapshot()).tree.nodes
    stale = await fault_of(book.modify(empty, device.device_id, name="x", profile_id="small_phone", hardware=HARDWARE))
    assert stale is not None
    assert stale.reason == "devices_changed"
    fixed = await fault_of(
        book.modify(
            revision, device.device_id, name="x", profile_id="small_phone", hardware=Hardware(ram_mib=1024, data_gib=9)
        )
    )
    assert fixed is not None
    assert fixed.reason == "data_size_fixed"
    revision = await book.modify(
        revision, device.device_id, name="Renamed", profile_id="pixel_7", hardware=Hardware(ram_mib=2048)
    )
    wrong = await fault_of(book.wipe(revision, device.device_id, confirmation="Phone one"))
    assert wrong is not None
    assert wrong.reason == "wrong_confirmation"
    await book.wipe(revision, device.device_id, confirmation="Renamed")
    assert {path.name for path in (book.avd_home / f"{device.avd}.avd").iterdir()} == {"config.ini"}
    await book.delete(revision, device.device_id, confirmation="Renamed")
    assert (await book.read())[0].items == ()
    assert list(book.avd_home.iterdir()) == []


async def test_refusals_name_their_reason(tmp_path: Path) -> None:
    """Names, images, profiles and hardware that cannot be are refused before anything is written."""
    book = await a_book(tmp_path)
    _, revision = await book.read()
    cases = [
        ({"name": "bad/name"}, "bad_name"),
        ({"image": "nothing"}, "image_unknown"),
        ({"profile_id": "nothing"}, "profile_unknown"),
        ({"hardware": Hardware(ram_mib=1)}, "bad_hardware"),
        ({"hardware": Hardware(gpu="magic")}, "bad_hardware"),
    ]
    good: dict[str, object] = {"name": "ok", "image": "paper-34", "profile_id": "small_phone", "hardware": HARDWARE}
    for change, reason in cases:
        fault = await fault_of(book.create(revision, **{**good, **change}))  # type: ignore[arg-type]
        assert fault is not None
        assert fault.reason == reason
    assert list(book.avd_home.iterdir()) == []
    _, revision = await book.create(revision, **good)  # type: ignore[arg-type]
    taken = await fault_of(book.create(revision, **good))  # type: ignore[arg-type]
    assert taken is not None
    assert taken.reason == "name_taken"


async def test_a_damaged_file_is_refused_and_restored_from_its_backup(tmp_path: Path) -> None:
    """Half a file is damage with a digest; restoring needs that digest; the devices file is never reset."""
    book = await a_book(tmp_path)
    _, revision = await book.read()
    for name in ("one", "two"):
        _, revision = await book.create(
            revision, name=name, image="paper-34", profile_id="small_phone", hardware=HARDWARE
        )
    path = tmp_path / "book" / "devices.json"
    path.write_bytes(path.read_bytes()[:40])
    path.chmod(0o600)
    unread = await fault_of(book.read())
    assert unread is not None
    assert unread.reason == "metadata_damaged"
    (damage,) = await book.damage()
    assert damage.backup_revision is not None
    other = await fault_of(book.restore_metadata("devices", "0" * 64, reset=False))
    assert other is not None
    assert other.reason == "metadata_changed"
    reset = await fault_of(book.restore_metadata("devices", damage.digest, reset=True))
    assert reset is not None
    assert reset.reason == "unsupported_reset"
    assert await book.restore_metadata("devices", damage.digest, reset=False) == damage.backup_revision
    assert [device.name for device in (await book.read())[0].items] == ["one"]
    assert len(await book.clean_up()) == 1
