"""Installing packages: bytes from the client or a file on the phone, and what the package manager says to them."""

import asyncio
import io
import itertools
import tempfile
from typing import IO, cast

from emulator_images.paper.apk import BadApkError, read_apk
from emulator_images.paper.commands.calling import Call
from emulator_images.paper.install_rules import Refusal, install_apk

_sessions = itertools.count(1)
_open_sessions: dict[str, "tempfile.SpooledTemporaryFile[bytes] | None"] = {}


async def install(call: Call) -> int:
    """`pm install [-r] [-d] [-t] [-g] [-S SIZE] [PATH]`."""
    options, names = call.options("-S -i --user --abi --install-location")
    path = names[-1] if names and names[-1] != "-" else None
    if path is not None and "-S" not in options:
        entry = call.phone.files.find(call.shell.path(path))
        if entry is None:
            await call.out(f"Error: Unable to open file: {path}\nConsider using a file under /data/local/tmp/\n")
            return await call.fail(f"Error: Can't open file: {path}")
        with entry.opened() as source:
            return await _finish(call, source, options)
    with call.phone.files.spool() as gathered:
        await _gather(call, gathered, int(options["-S"] or 0) if "-S" in options else None)
        return await _finish(call, cast("IO[bytes]", gathered), options)


async def _gather(call: Call, target: "tempfile.SpooledTemporaryFile[bytes]", size: int | None) -> None:
    while (size is None or target.tell() < size) and (chunk := await call.streams.stdin.read()):
        target.write(chunk)


async def _finish(call: Call, payload: IO[bytes], options: dict[str, str]) -> int:
    phone = call.phone
    slow = phone.faults.strikes("slow_install")
    await phone.latency.spend("install")
    if slow is not None:
        await asyncio.sleep(slow.seconds)
    size = payload.seek(0, io.SEEK_END)
    failed = phone.faults.strikes("failed_install")
    try:
        apk = read_apk(payload)
        package = install_apk(
            phone,
            apk,
            size,
            downgrade="-d" in options,
            test_only="-t" in options,
            grant="-g" in options,
            refused=failed,
        )
    except BadApkError as error:
        code = "INSTALL_PARSE_FAILED_NOT_APK" if error.no_zip else "INSTALL_FAILED_INVALID_APK"
        return await _refuse(call, f"{code}: {error}")
    except Refusal as refusal:
        return await _refuse(call, str(refusal))
    phone.files.place(package.path, b"")
    await call.out("Success\n")
    return 0


async def _refuse(call: Call, verdict: str) -> int:
    call.phone.record("install_refused", code=verdict)
    await call.out(f"Failure [{verdict}]\n")
    return 1


async def create_session(call: Call) -> int:
    """`pm install-create`."""
    number = str(next(_sessions) + 1_000_000)
    _open_sessions[number] = None
    await call.out(f"Success: created install session [{number}]\n")
    return 0


async def write_session(call: Call) -> int:
    """`pm install-write [-S SIZE] SESSION NAME [PATH|-]`; only the base APK's bytes are kept."""
    options, names = call.options("-S")
    if not names or names[0] not in _open_sessions:
        await call.out("Error: java.lang.SecurityException: Caller has no access to session\n")
        return 1
    gathered = call.phone.files.spool()
    if len(names) > 2 and names[2] != "-":
        entry = call.phone.files.find(call.shell.path(names[2]))
        gathered.write(entry.content() if entry else b"")
    else:
        await _gather(call, gathered, int(options.get("-S") or 0))
    size = gathered.tell()
    held = _open_sessions[names[0]]
    if held is None or "base" in names[1]:
        held, _open_sessions[names[0]] = gathered, gathered
    else:
        gathered.close()
    await call.out(f"Success: streamed {size} bytes\n")
    return 0


async def commit_session(call: Call) -> int:
    """`pm install-commit SESSION`."""
    _, names = call.options()
    payload = _open_sessions.pop(names[0], None) if names else None
    if payload is None:
        await call.out("Failure [INSTALL_FAILED_INVALID_APK: no such session]\n")
        return 1
    with payload:
        return await _finish(call, cast("IO[bytes]", payload), {})


async def abandon_session(call: Call) -> int:
    """`pm install-abandon SESSION`."""
    if call.args:
        _open_sessions.pop(call.args[0], None)
    await call.out("Success\n")
    return 0
