"""Installing packages: bytes from the client or a file on the phone, and what the package manager says to them."""

import asyncio
import io
import itertools

from emulator_images.paper.apk import BadApkError, read_apk
from emulator_images.paper.commands.calling import Call
from emulator_images.paper.install_rules import Refusal, install_apk
from emulator_images.paper.shell.flow import read_all
from emulator_images.paper.shell.interpreter import FileError

_sessions = itertools.count(1)
_open_sessions: dict[str, bytes] = {}


async def install(call: Call) -> int:
    """`pm install [-r] [-d] [-t] [-g] [-S SIZE] [PATH]`."""
    options, names = call.options("-S -i --user --abi --install-location")
    try:
        payload = await _payload(call, options, names)
    except FileError as error:
        await call.out(f"Error: Unable to open file: {names[0]}\nConsider using a file under /data/local/tmp/\n")
        return await call.fail(f"Error: Can't open file: {names[0]} ({error})")
    return await _finish(call, payload, options)


async def _payload(call: Call, options: dict[str, str], names: list[str]) -> bytes:
    if "-S" in options and not [name for name in names if name != "-"]:
        return await _exactly(call, int(options["-S"] or 0))
    if names and names[-1] != "-":
        return call.phone.files.read(call.shell.path(names[-1]))
    return await read_all(call.streams.stdin)


async def _exactly(call: Call, size: int) -> bytes:
    target = io.BytesIO()
    while target.tell() < size and (chunk := await call.streams.stdin.read()):
        target.write(chunk)
    return target.getvalue()


async def _finish(call: Call, payload: bytes, options: dict[str, str]) -> int:
    phone = call.phone
    slow = phone.faults.strikes("slow_install")
    await phone.latency.spend("install")
    if slow is not None:
        await asyncio.sleep(slow.seconds)
    try:
        apk = read_apk(payload)
        failed = phone.faults.strikes("failed_install")
        if failed is not None:
            raise Refusal(failed.text or "INSTALL_FAILED_INSUFFICIENT_STORAGE")
        package = install_apk(
            phone, apk, len(payload), downgrade="-d" in options, test_only="-t" in options, grant="-g" in options
        )
    except BadApkError as error:
        return await _refuse(
            call, "INSTALL_PARSE_FAILED_NOT_APK" if error.no_zip else "INSTALL_FAILED_INVALID_APK", error
        )
    except Refusal as refusal:
        phone.record("install_refused", code=str(refusal))
        await call.out(f"Failure [{refusal}]\n")
        return 1
    phone.files.place(package.path, b"")
    await call.out("Success\n")
    return 0


async def _refuse(call: Call, code: str, error: Exception) -> int:
    call.phone.record("install_refused", code=code)
    await call.out(f"Failure [{code}: {error}]\n")
    return 1


async def create_session(call: Call) -> int:
    """`pm install-create`."""
    number = str(next(_sessions) + 1_000_000)
    _open_sessions[number] = b""
    await call.out(f"Success: created install session [{number}]\n")
    return 0


async def write_session(call: Call) -> int:
    """`pm install-write [-S SIZE] SESSION NAME [PATH|-]`; only the base APK's bytes are kept."""
    options, names = call.options("-S")
    if not names or names[0] not in _open_sessions:
        await call.out("Error: java.lang.SecurityException: Caller has no access to session\n")
        return 1
    size = int(options.get("-S") or 0)
    from_file = len(names) > 2 and names[2] != "-"
    payload = call.phone.files.read(call.shell.path(names[2])) if from_file else await _exactly(call, size)
    if not _open_sessions[names[0]] or "base" in names[1]:
        _open_sessions[names[0]] = payload
    await call.out(f"Success: streamed {len(payload)} bytes\n")
    return 0


async def commit_session(call: Call) -> int:
    """`pm install-commit SESSION`."""
    _, names = call.options()
    payload = _open_sessions.pop(names[0], None) if names else None
    if payload is None:
        await call.out("Failure [INSTALL_FAILED_INVALID_APK: no such session]\n")
        return 1
    return await _finish(call, payload, {})


async def abandon_session(call: Call) -> int:
    """`pm install-abandon SESSION`."""
    if call.args:
        _open_sessions.pop(call.args[0], None)
    await call.out("Success\n")
    return 0
