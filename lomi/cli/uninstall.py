"""`lomi uninstall`: removes what Lomi keeps on this machine, after saying exactly what, and asking."""

import os
import shlex
import shutil
import stat
import sys
import uuid
from pathlib import Path

import click

from lomi.cli.asking import forget_typed_ahead
from lomi.cli.failing import fail
from lomi.cli.shown import size, table

FIRST = ("devices", "terminals", "android", "logs", "cluster", "agent-control-preferences.json")
LAST = "agent-control"
"""Removed at the end: as long as it is there, an interrupted removal can be taken up again."""
_MEANING = {
    "devices": "phones, their state and their adb key",
    "terminals": "places of terminals",
    "android": "the private Android SDK and its devices",
    "logs": "the broker's log",
    "cluster": "membership in a cluster of hosts: keys, and the authority on a scheduler's host",
    "agent-control-preferences.json": "whether YOLO is on",
    LAST: "receipts, artifacts, layout, and the key that clients know this broker by",
}


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed and what stays.")
def uninstall(yes: bool, dry_run: bool) -> None:
    """Remove the home: receipts, artifacts, phones, logs. Says first what goes and what stays, and asks."""
    from lomi.disk.home import state_home

    home = state_home(os.environ)
    if not (home / LAST).is_dir() and not (home / "cluster").is_dir():
        fail(f"{home} holds nothing of Lomi", "LOMI_HOME says where to look")
    going = [name for name in (*FIRST, LAST) if os.path.lexists(home / name)]
    click.echo(f"removes from {home}:")
    rows = [(f"  {name}", size(_size(home / name)), _MEANING[name]) for name in going]
    click.echo("\n".join(table(("  WHAT", "SIZE", "HOLDS"), rows)))
    click.echo("keeps:\n" + "\n".join(f"  {line}" for line in _kept(home)))
    if dry_run:
        return
    if not yes:
        if not sys.stdin.isatty():
            fail("nothing was removed: there is no terminal to ask at", "--yes does not ask")
        forget_typed_ahead()
        click.confirm("Remove it?", abort=True)
    _remove(home, going)
    click.echo("removed")


def _kept(home: Path) -> list[str]:
    """What stays, and how it goes if that is wanted."""
    strange = sorted({path.name for path in home.iterdir()} - {*FIRST, LAST})
    return [
        *(f"{home / name} (not Lomi's)" for name in strange),
        *_caches(),
        "the folders of your projects",
        "Chromium, and an Android SDK that ANDROID_HOME names",
        "what you pasted into agent hosts (`lomi mcp-config CLIENT` says where)",
        *_checkout(),
    ]


def _checkout() -> list[str]:
    """This program with its environment, and the reports of the demo, each with the command that removes it."""
    import lomi
    from lomi.demo.main import MARK

    root, environment = Path(lomi.__file__).resolve().parents[1], Path(sys.prefix)
    reports = dict.fromkeys(place / "demo-report" for place in (Path.cwd(), root))
    found = [f"{one} (a report of the demo: rm -r {_quoted(one)})" for one in reports if (one / MARK).is_file()]
    if (environment / ".lomi-made").is_file():
        how = f"rm -r {_quoted(environment)}"
        return [*found, f"{environment} (the environment that the checkout made, {size(_size(environment))}: {how})"]
    return [*found, f"this program ({shlex.quote(sys.executable)} -m pip uninstall lomi-lab)"]


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _caches() -> list[str]:
    """What other commands have fetched into the user's cache."""
    from lomi.demo.apk import cache_folder

    demo = cache_folder(os.environ)
    found = ((demo, "the demo's app"), (demo.parents[1] / "lomi-ci", "what ci/bench and ci/conformance compare with"))
    return [f"{folder} ({what})" for folder, what in found if folder.is_dir()]


def _size(path: Path) -> int:
    """The bytes below a path, without following a link."""
    total, waiting = 0, [path]
    while waiting:
        one = waiting.pop()
        try:
            status = one.lstat()
            if stat.S_ISDIR(status.st_mode):
                waiting += one.iterdir()
            else:
                total += status.st_blocks * 512
        except OSError:
            continue
    return total


def _remove(home: Path, going: list[str]) -> None:
    """Under the lock of the home, so that no broker starts in the middle."""
    from lomi.store.failure import StoreLocked, StoreRefused, StoreUnavailable
    from lomi.store.place import owned

    try:
        with owned(home, str(uuid.uuid4())):
            if orphans := _orphans(home):
                fail(
                    f"nothing was removed: phones of a killed broker still run (pid {', '.join(map(str, orphans))})",
                    "the next broker ends them: `lomi up`, then `lomi down`",
                )
            _remove_socket(home)
            for name in going:
                _remove_one(home / name)
    except StoreLocked as locked:
        fail(f"nothing was removed: {locked}", "stop it with `lomi down`")
    except (StoreRefused, StoreUnavailable) as refused:
        fail(f"nothing was removed: {refused}", "`lomi doctor` says what is wrong with the home")
    except OSError as error:
        fail(f"{error.filename or home} can't be removed: {error.strerror}", "run it again once that is put right")
    if not any(home.iterdir()):
        home.rmdir()


def _orphans(home: Path) -> list[int]:
    """Processes that still use the home's phones: adb servers and emulators, by their arguments or environment."""
    mark, found = os.fsencode(home / "devices"), []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            named = mark in (entry / "cmdline").read_bytes() or mark in (entry / "environ").read_bytes()
        except OSError:
            continue
        if named and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return sorted(found)


def _remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _remove_socket(home: Path) -> None:
    """The socket that a killed broker left in the runtime directory."""
    from lomi.client.find import own_broker
    from lomi.link.discovery import read
    from lomi.link.errors import LinkError
    from lomi.link.place import remove_dead

    try:
        found = own_broker({**os.environ, "LOMI_HOME": str(home)})
        remove_dead(Path(read(found.discovery_file, found.discovery_key).endpoint))
    except (LinkError, OSError):
        return
