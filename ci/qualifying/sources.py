"""Which sources were qualified: commit, changes, the hash of the tree, and the wheel that comes of it."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from ending.stopping import Stop

OWN = ("docs/qualification.md", "docs/qualification.json")
"""What this program writes is no part of what it qualifies."""
BY_HAND = "git ls-files -z -- ':!docs/qualification.*' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum"
BUILD_S = 600


def _git(root: Path, *arguments: str) -> bytes | None:
    try:
        return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def commit(root: Path) -> str:
    """The commit, or why there is none."""
    said = _git(root, "rev-parse", "HEAD")
    return said.decode().strip() if said else "none: no Git checkout"


def changed(root: Path) -> list[str]:
    """Paths that differ from the commit, new ones included, without what this program writes."""
    said = _git(root, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames") or b""
    paths = [entry[3:].decode(errors="replace") for entry in said.split(b"\0") if entry]
    return sorted(path for path in paths if path not in OWN)


def _files(root: Path) -> list[bytes]:
    said = _git(root, "ls-files", "-z") or b""
    return sorted(name for name in said.split(b"\0") if name and name.decode(errors="replace") not in OWN)


def tree_hash(root: Path) -> str:
    """The SHA-256 of the list of every tracked file's SHA-256 and path, as `BY_HAND` gives it; why not, elsewhere."""
    whole = hashlib.sha256()
    files = _files(root)
    if not files:
        return "none: no Git checkout"
    for name in files:
        try:
            content = (root / os.fsdecode(name)).read_bytes()
        except OSError as error:
            return f"none: {os.fsdecode(name)} can't be read ({error.strerror})"
        whole.update(hashlib.sha256(content).hexdigest().encode() + b"  " + name + b"\n")
    return whole.hexdigest()


def wheel(root: Path, work: Path, stop: Stop) -> dict[str, str]:
    """Build twice, in this folder and in a copy elsewhere under another umask; what came out.

    Raises:
        Stopped: told to stop.
    """
    copy = work / "copy of the sources"
    for name in _files(root):
        target = copy / os.fsdecode(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (root / os.fsdecode(name)).exists():
            shutil.copyfile(root / os.fsdecode(name), target)
    built = []
    for place, into, mask in ((root, work / "wheel-1", 0o022), (copy, work / "wheel-2", 0o077)):
        if not (place / "pyproject.toml").exists():
            return {"wheel": "not built: there is no pyproject.toml"}
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        try:
            ran = stop.run([*command, "--wheel-dir", str(into), str(place)], umask=mask, bound_s=BUILD_S)
        except subprocess.TimeoutExpired:
            return {"wheel": f"not built: pip took longer than {BUILD_S} s"}
        wheels = sorted(into.glob("*.whl"))
        if ran.returncode != 0 or len(wheels) != 1:
            last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
            return {"wheel": f"not built: pip said: {last}"}
        built.append(wheels[0])
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in built)
    said = {"wheel": built[0].name, "sha256": first, "bytes": str(built[0].stat().st_size)}
    said["built again"] = "the same bytes" if first == second else f"{second}; differs in {_difference(*built)}"
    return said


def _difference(first: Path, second: Path) -> str:
    """The entries of two wheels that are not alike."""
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(second) as other:
        left, right = ({i.filename: (i.CRC, i.date_time, i.external_attr) for i in w.infolist()} for w in (one, other))
    names = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") or "the archive's form"
