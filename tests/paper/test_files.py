"""File sync over real adb: trees, modes, errors, and memory."""

import os
from pathlib import Path

from paper.lab import Lab, RunningPhone, phone

MOST_MIB = 60


def memory_mib(running: RunningPhone) -> float:
    """The most memory the phone's process has used so far."""
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def test_a_tree_comes_back_byte_for_byte(lab: Lab, tmp_path: Path) -> None:
    """Files of all sizes, pushed as a tree and pulled again, are unchanged; modes follow the owner's bits."""
    tree = tmp_path / "tree"
    (tree / "deep" / "er").mkdir(parents=True)
    contents = {"empty": b"", "small": b"x", "deep/é 中": os.urandom(70_000), "deep/er/big": os.urandom(3_000_000)}
    for name, content in contents.items():
        (tree / name).write_bytes(content)
    (tree / "small").chmod(0o755)
    with phone(lab) as running:
        running.adb("push", str(tree), "/sdcard/", check=True)
        running.adb("pull", "/sdcard/tree", str(tmp_path / "back"), check=True)
        for name, content in contents.items():
            assert (tmp_path / "back" / name).read_bytes() == content
        assert running.shell("stat -c %a /sdcard/tree/small; stat -c %a /sdcard/tree/empty") == "777\n666\n"
        assert running.shell("ls /sdcard/tree; cat /sdcard/tree/deep/er/big | md5sum | cut -c1-32").startswith("deep\n")


def test_large_files_stay_out_of_memory(lab: Lab, tmp_path: Path) -> None:
    """Pushing and pulling 24 MB keeps the phone under its memory bound and its files leave with it."""
    big = tmp_path / "big"
    with big.open("wb") as target:
        for _ in range(24):
            target.write(os.urandom(1 << 20))
    with phone(lab) as running:
        running.adb("push", str(big), "/sdcard/big", check=True)
        running.adb("pull", "/sdcard/big", str(tmp_path / "back"), check=True)
        assert (tmp_path / "back").read_bytes() == big.read_bytes()
        assert memory_mib(running) < MOST_MIB
        running.shell("rm /sdcard/big")
        assert list((running.directory / "paper-data").glob("content-*")) == []


def test_errors_are_adbds(lab: Lab, tmp_path: Path) -> None:
    """Places that cannot be written or read fail with the texts of the real adbd, and nothing is left there."""
    source = tmp_path / "x"
    source.write_text("x")
    with phone(lab) as running:
        result = running.adb("push", str(source), "/system/x")
        assert result.code == 1
        assert "remote couldn't create file: Read-only file system" in result.err
        result = running.adb("push", str(source), "/system/a/b")
        assert "remote secure_mkdirs failed: Read-only file system" in result.err
        result = running.adb("pull", "/nope", str(tmp_path))
        assert "failed to stat remote object '/nope': No such file or directory" in result.err
        assert "ls: /data/data: Permission denied" in running.adb("shell", "ls /data/data").err


def test_a_full_disk_refuses_files(lab: Lab, tmp_path: Path) -> None:
    """A file larger than the data partition is refused with the system's text; the partition's size is the AVD's."""
    lab.make_avd("tiny", disk_dataPartition_size="1M")
    source = tmp_path / "x"
    source.write_bytes(bytes(2 << 20))
    with phone(lab, "tiny") as running:
        assert "No space left on device" in running.adb("push", str(source), "/sdcard/x").err
        source.write_bytes(b"fits")
        running.adb("push", str(source), "/sdcard/x", check=True)
