"""Google's own code beside ours: the same repository read alike, and what we installed seen as installed."""

import asyncio
import hashlib
from pathlib import Path

import pytest
import sdk_oracle
from sdk_mirror import LICENCE, a_mirror, zipped

from devices.sdk.catalogue import HostKind
from devices.sdk.setup import Setup
from devices.world import World

HEAD = (
    '<?xml version="1.0"?><sdk:sdk-repository xmlns:sdk="http://schemas.android.com/sdk/android/repo/repository2/01" '
    'xmlns:generic="http://schemas.android.com/repository/android/generic/01" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
)
ARCHIVE = zipped({"a.txt": b"a"})


def row(path: str, version: tuple[int, ...], channel: int) -> str:
    """One package as the oldest schema has it."""
    revision = "".join(
        f"<{name}>{part}</{name}>" for name, part in zip(("major", "minor", "micro"), version, strict=False)
    )
    return (
        f'<remotePackage path="{path}"><type-details xsi:type="generic:genericDetailsType"/><revision>{revision}'
        f'</revision><display-name>{path}</display-name><uses-license ref="sim-license"/>'
        f'<channelRef ref="channel-{channel}"/><archives><archive><complete><size>{len(ARCHIVE)}</size>'
        f"<checksum>{hashlib.sha1(ARCHIVE).hexdigest()}</checksum><url>a.zip</url></complete></archive></archives>"
        "</remotePackage>"
    )


@pytest.mark.skipif(sdk_oracle.missing() is not None, reason=sdk_oracle.missing() or "")
async def test_googles_code_reads_alike_and_sees_what_was_installed(tmp_path: Path) -> None:
    """Paths, versions and licence hashes of a catalogue agree; a package of ours is installed for Google's code too."""
    channels = "".join(f'<channel id="channel-{number}">c{number}</channel>' for number in range(4))
    packages = (row("emulator", (36, 1, 2), 0), row("tools;extra", (7,), 0), row("tools;preview", (9, 1), 3))
    async with a_mirror() as mirror:
        mirror.files["/repository2-1.xml"] = (
            f'{HEAD}<license id="sim-license" type="text">{LICENCE}</license>{channels}{"".join(packages)}'
            "</sdk:sdk-repository>"
        ).encode()
        mirror.files["/a.zip"] = ARCHIVE
        mirror.files["/addons_list-3.xml"] = (
            b'<c:site-list xmlns:c="http://schemas.android.com/sdk/android/repo/addon2/sites/3"/>'
        )
        setup = Setup(tmp_path / "private", host=HostKind("linux", "x64"), world=World(), base_url=mirror.url)
        await setup.open()
        catalogue = await setup.catalogue()
        plan = await setup.prepare(catalogue.revision, (("tools;extra", "7"),))
        (licence,) = plan.licences
        await setup.apply(plan, frozenset((licence.digest,)))
        told = await asyncio.to_thread(sdk_oracle.ask, tmp_path, setup.sdk, mirror.url)
    offered = {path: version for (kind, path), (version, _) in told.items() if kind == "remote"}
    assert offered == {one.path: one.version for one in catalogue.packages}
    assert {digest for (kind, _), (_, digest) in told.items() if kind == "remote"} == {licence.digest}
    assert {path: version for (kind, path), (version, _) in told.items() if kind == "local"} == {"tools;extra": "7"}
