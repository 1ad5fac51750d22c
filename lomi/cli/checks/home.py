"""The home: its privacy, its store, its preferences, its sockets, and what dead processes left in it."""

import os
import shlex
import socket
import stat
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

from devices.actor.locks import locks_in
from lomi.broker.preferences import NAME, PreferencesError, read_preferences
from lomi.cli.checks.finding import Finding, Place
from lomi.contract.limits import LAB
from lomi.link.discovery import read
from lomi.link.errors import BrokerAbsentError, DiscoveryRefusedError, LinkError
from lomi.link.limits import MAX_SOCKET_PATH
from lomi.link.registration import DISCOVERY_NAME, KEY_NAME
from lomi.store.failure import StoreLocked, StoreRefused, StoreUnavailable
from lomi.store.place import DIRECTORY, owned
from lomi.store.schema import APPLICATION, MIGRATIONS
from lomi.store.store import DATABASE
from lomi.store.verify import verify
from lomi.store.witness import Witness

_SOCKET = "lomi-control-0123456789abcdef/control.sock"


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def home(place: Place) -> tuple[Finding, ...]:
    """Whether the home is a directory of this user alone."""
    path = place.home
    if not os.path.lexists(path):
        above = next(parent for parent in path.parents if parent.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return (Finding(name="home", state="ok", said=f"{path} (made by the first `lomi up`)"),)
        said = f"{path} can't be made: {above} can't be written"
        return (Finding(name="home", state="problem", said=said, cure='export LOMI_HOME="$HOME/.lomi"'),)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        why, cure = "is no directory", f"mv {_quoted(path)} {_quoted(path)}.kept"
    elif status.st_uid != os.getuid():
        why, cure = "belongs to another user", 'export LOMI_HOME="$HOME/.lomi"'
    elif status.st_mode & 0o022:
        why, cure = "can be written by others", f"chmod 700 {_quoted(path)}"
    else:
        return (Finding(name="home", state="ok", said=str(path)),)
    return (Finding(name="home", state="problem", said=f"{path} {why}", cure=cure),)


def store(place: Place) -> tuple[Finding, ...]:
    """Whether a broker owns the store; if none does, whether it would be opened. Changes nothing in it."""
    if not (place.home / DIRECTORY).is_dir():
        return (Finding(name="store", state="ok", said="none yet (made by the first `lomi up`)"),)
    try:
        with owned(place.home, str(uuid.uuid4())) as directory:
            path = directory / DATABASE
            witness = Witness(path.with_suffix(".witness"))
            try:
                verify(
                    path,
                    application=APPLICATION,
                    version=len(MIGRATIONS),
                    wal_bytes=LAB.wal_bytes,
                    seen=witness.seen,
                )
            finally:
                witness.close()
    except StoreLocked as locked:
        return _broker(place, locked)
    except StoreRefused as refused:
        cure = f"mv {_quoted(place.home / DIRECTORY)} {_quoted(place.home / (DIRECTORY + '.damaged'))}"
        said = f"{refused} (docs/recovery.md says what is safe)"
        return (Finding(name="store", state="problem", said=said, cure=cure),)
    except (StoreUnavailable, OSError) as failed:
        return (Finding(name="store", state="problem", said=f"can't be read: {failed}", cure="df -h"),)
    found = Finding(name="store", state="ok", said="sound; no broker runs")
    try:
        _endpoint(place)
    except DiscoveryRefusedError as damage:
        return (found, _damaged(place, damage, None))
    return (found,)


def _endpoint(place: Place) -> Path | None:
    """Where the discovery file leads; None without one.

    Raises:
        DiscoveryRefusedError: it, or the key that it is signed with, is not to be trusted.
    """
    from lomi.client.find import own_broker

    try:
        found = own_broker({**place.environment, "LOMI_HOME": str(place.home)})
        return Path(read(found.discovery_file, found.discovery_key).endpoint)
    except BrokerAbsentError:
        return None


def _damaged(place: Place, damage: DiscoveryRefusedError, running: int | None) -> Finding:
    """What keeps clients from finding a broker, and from being told that there is none."""
    control = place.home / DIRECTORY
    path = _quoted(control / DISCOVERY_NAME)
    if _key_is_damaged(place):
        key = control / KEY_NAME
        cure = f"mv {_quoted(key)} {_quoted(key.with_suffix('.kept'))}"
    else:
        # A broker that ends leaves a file that is not its own; the next one replaces it, unless it is a directory.
        cure = f"rm -rf {path}"
    if running is not None:
        cure = f"kill {running}; {cure}"
    said = f"{damage}: no client finds a broker here" + ("" if running is None else ", though one runs")
    return Finding(name="discovery", state="problem", said=said, cure=cure)


def _key_is_damaged(place: Place) -> bool:
    from lomi.client.find import own_broker

    try:
        own_broker({**place.environment, "LOMI_HOME": str(place.home)})
    except LinkError:
        return True
    return False


def _broker(place: Place, locked: StoreLocked) -> tuple[Finding, ...]:
    """A running broker, or one that holds the home and does not listen."""
    try:
        endpoint = _endpoint(place)
    except DiscoveryRefusedError as damage:
        held = Finding(name="store", state="ok", said=str(locked))
        return (held, _damaged(place, damage, locked.owner.pid if locked.owner else None))
    if endpoint is not None and _listens(endpoint):
        return (Finding(name="store", state="ok", said=f"{locked}, which listens"),)
    cure = f"kill {locked.owner.pid}" if locked.owner else f"lsof {_quoted(place.home / DIRECTORY / 'owner.lock')}"
    said = f"{locked}, but nobody listens on its socket (it may be starting or stopping)"
    return (Finding(name="store", state="warning", said=said, cure=cure),)


def preferences(place: Place) -> tuple[Finding, ...]:
    """Whether the owner's stored choices can be read, and whether YOLO is on."""
    try:
        chosen = read_preferences(place.home)
    except PreferencesError as damage:
        path = place.home / NAME
        said = f"{damage}; YOLO is off and no choice can be saved"
        cure = f"mv {_quoted(path)} {_quoted(path)}.kept"
        return (Finding(name="preferences", state="problem", said=said, cure=cure),)
    if chosen.yolo_mode:
        said = "YOLO is on: any process of this user pairs without asking"
        return (Finding(name="preferences", state="warning", said=said, cure="lomi yolo off"),)
    return (Finding(name="preferences", state="ok", said="YOLO is off"),)


def _candidates(place: Place) -> list[Path]:
    runtime = place.environment.get("XDG_RUNTIME_DIR")
    temporary = Path(place.environment.get("TMPDIR") or tempfile.gettempdir())
    return [Path(runtime), temporary] if runtime else [temporary]


def sockets(place: Place) -> tuple[Finding, ...]:
    """Whether a socket finds a directory of its own whose path the kernel can hold."""
    cure = 'export XDG_RUNTIME_DIR="/run/user/$(id -u)"'
    why = []
    for candidate in _candidates(place):
        length = len(os.fsencode(candidate.resolve() / _SOCKET))
        if not candidate.is_dir() or not os.access(candidate, os.W_OK | os.X_OK):
            why.append(f"{candidate} can't be written")
        elif length > MAX_SOCKET_PATH:
            why.append(f"{candidate} makes a path of {length} bytes, over {MAX_SOCKET_PATH}")
        else:
            return (Finding(name="sockets", state="ok", said=f"below {candidate}"), *_adb_socket(place))
    return (Finding(name="sockets", state="problem", said="; ".join(why), cure=cure),)


def _adb_socket(place: Place) -> tuple[Finding, ...]:
    length = len(os.fsencode(place.home / "devices" / "adb.sock"))
    if length <= MAX_SOCKET_PATH:
        return ()
    said = f"the home's path is too long for the adb socket: {length} bytes, over {MAX_SOCKET_PATH}"
    return (Finding(name="adb-socket", state="problem", said=said, cure='export LOMI_HOME="$HOME/.lomi"'),)


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.3)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def leftovers(place: Place) -> tuple[Finding, ...]:
    """What dead processes left: sockets that nobody listens on, locks of phones that are gone."""
    dead, locks = list(_dead_sockets(place)), list(_dead_locks(place.home))
    found = []
    if dead:
        said = f"nobody listens on the socket in {len(dead)} directories such as {dead[0].name}"
        found.append(Finding(name="leftovers", state="note", said=said, cure=_removal(dead)))
    if locks:
        said = f"{len(locks)} locks name a process that is gone, such as {locks[0].name} of {locks[0].parent.name}"
        found.append(Finding(name="leftovers", state="note", said=said, cure=_removal(locks)))
    return tuple(found) or (Finding(name="leftovers", state="ok", said="nothing of dead processes"),)


def _removal(paths: list[Path]) -> str:
    return "rm -r " + " ".join(_quoted(path) for path in paths)


def _dead_sockets(place: Place) -> Iterator[Path]:
    for candidate in dict.fromkeys(_candidates(place)):
        for directory in sorted(candidate.glob("lomi-control-*")):
            mine = directory.is_dir() and directory.lstat().st_uid == os.getuid()
            if mine and not _listens(directory / "control.sock"):
                yield directory


def _dead_locks(home: Path) -> Iterator[Path]:
    for avd in sorted((home / "devices" / "avd").glob("*.avd")):
        yield from (lock.path for lock in locks_in(avd) if not lock.owner_alive)
