"""Real images are locked to what a catalogue offers: the command line before a local mirror."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from sdk_mirror import Mirror, a_mirror, package, zipped

NAME, IMAGE = "atd-34-x86_64", "system-images;android-34;aosp_atd;x86_64"
FIRST, SECOND = (zipped({"system.img": word}) for word in (b"first", b"second"))


async def images(tmp_path: Path, *arguments: str) -> tuple[int, str, str]:
    """Run `lomi images` in a folder of its own."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LOMI_HOME": str(tmp_path / "home")}
    command = [str(Path(sys.executable).with_name("lomi")), "images", *arguments]
    ran = await asyncio.to_thread(
        subprocess.run, command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=40, check=False
    )
    return ran.returncode, ran.stdout, ran.stderr


def offer(mirror: Mirror, archive: bytes, *, version: str = "7") -> None:
    """Let the mirror offer the image, and a newer preview of it that nobody asked for."""
    mirror.publish(
        package(IMAGE, archive, "s.zip", version=version), package(IMAGE, archive, "s.zip", version="99", channel=3)
    )


async def test_a_real_image_is_locked_from_a_mirror_and_drift_is_refused(tmp_path: Path) -> None:
    """`lock` takes revision and checksum from the catalogue; other content later is refused until it is renewed."""
    async with a_mirror() as mirror:
        catalogue = ("--catalogue", mirror.url)
        offer(mirror, FIRST)
        assert await images(tmp_path, "lock", NAME, *catalogue) == (0, f"{NAME} is locked to {digest(mirror)}\n", "")
        code, told, _ = await images(tmp_path, "show", NAME, "--json")
        shown = json.loads(told)
        assert (code, shown["revision"], shown["checksum"]) == (0, "7", digest(mirror))
        before = (tmp_path / "emulator-images.lock").read_bytes()
        offer(mirror, SECOND)
        code, _, error = await images(tmp_path, "lock", NAME, *catalogue)
        assert (code, error.splitlines()[-1]) == (1, "hint: --renew takes the new content on purpose")
        assert (tmp_path / "emulator-images.lock").read_bytes() == before
        assert (await images(tmp_path, "lock", NAME, "--renew", *catalogue))[0] == 0
        assert digest(mirror) in (tmp_path / "emulator-images.lock").read_text()
        mirror.publish()
        code, _, error = await images(tmp_path, "lock", NAME, *catalogue)
        assert (code, IMAGE in error) == (1, True)
        mirror.files.clear()
        code, _, error = await images(tmp_path, "lock", NAME, *catalogue)
        assert (code, error.startswith("Error: the catalogue can't be read")) == (1, True)


def digest(mirror: Mirror) -> str:
    """The checksum that the mirror offers now."""
    document = mirror.files["/repository2-3.xml"].decode()
    return "sha1:" + document.split('<checksum type="sha1">', 1)[1].split("<", 1)[0]
