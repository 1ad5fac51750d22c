"""Which services adbd offers, and who serves them."""

import asyncio
import struct

from emulator_images.paper.commands.capture import picture
from emulator_images.paper.phone import Phone
from emulator_images.paper.wire.shell_service import serve_abb, serve_exec, serve_shell
from emulator_images.paper.wire.sync_service import serve_sync
from emulator_images.paper.wire.transport import Connection, Stream, StreamClosedError

FEATURES = (
    "shell_v2,cmd,stat_v2,ls_v2,fixed_push_mkdir,apex,abb,fixed_push_symlink_timestamp,abb_exec,remount_shell,"
    "sendrecv_v2"
)
_PREFIXES = ("shell:", "shell,", "exec:", "abb_exec:", "abb:", "sync:", "tcp:", "local", "reverse:", "root:", "unroot:",
             "remount:", "reboot:", "framebuffer:", "jdwp", "track-jdwp", "dev:", "tcpip:", "usb:")  # fmt: skip


def accepts(service: str) -> bool:
    """Whether adbd knows a service."""
    return service.startswith(_PREFIXES)


def banner(phone: Phone) -> str:
    """What the phone says of itself when a client connects."""
    properties = phone.properties()
    names = ("ro.product.name", "ro.product.model", "ro.product.device")
    return "device::" + "".join(f"{name}={properties[name]};" for name in names) + f"features={FEATURES}"


async def serve(phone: Phone, connection: Connection, reverses: "Reverses", stream: Stream, service: str) -> None:
    """Serve one opened service to its end."""
    name, _, rest = service.partition(":")
    if name == "shell" or name.startswith("shell,"):
        await serve_shell(phone, stream, service)
    elif name == "exec":
        await serve_exec(phone, stream, rest)
    elif name in {"abb_exec", "abb"}:
        await serve_abb(phone, stream, rest)
    elif name == "sync":
        await serve_sync(phone.files, stream)
    elif name in {"root", "unroot"}:
        await _switch_user(phone, connection, stream, root=name == "root")
    elif name in {"remount", "tcpip"}:
        await stream.write(_mode_answer(phone, name, rest).encode())
    elif name == "reboot":
        phone.record("reboot", reason=rest)
        phone.reboot_asked.set()
    elif name == "reverse":
        await reverses.serve(stream, rest)
    elif name == "framebuffer":
        await _framebuffer(phone, stream)
    elif name in {"jdwp", "track-jdwp"}:
        while await stream.read():  # real adbd keeps these open and silent when nothing can be debugged
            pass
    else:
        await _socket(stream, name, rest)


def _mode_answer(phone: Phone, name: str, port: str) -> str:
    """What adbd says; it listens on TCP already, so that for `tcpip` nothing has to be restarted."""
    if name == "tcpip":
        return f"restarting in TCP mode port: {port}\n"
    return "remount succeeded\n" if phone.files.root else 'Not running as root. Try "adb root" first.\n'


async def _switch_user(phone: Phone, connection: Connection, stream: Stream, *, root: bool) -> None:
    if phone.files.root == root:
        text = "adbd is already running as root\n" if root else "adbd not running as root\n"
        await stream.write(text.encode())
        return
    await stream.write(b"restarting adbd as root\n" if root else b"restarting adbd as non root\n")
    phone.files.root = root
    connection.release(stream)
    asyncio.get_running_loop().call_later(0.05, connection.cut)


async def _framebuffer(phone: Phone, stream: Stream) -> None:
    import io  # noqa: PLC0415

    from PIL import Image  # noqa: PLC0415 - Pillow is loaded when first needed

    with Image.open(io.BytesIO(picture(phone))) as image:
        pixels = image.convert("RGBA").tobytes()
        colours = (0, 8, 16, 8, 8, 8, 24, 8)  # offset and length of red, blue, green, alpha
        await stream.write(
            struct.pack("<IIIIII", 2, 32, 1, len(pixels), image.width, image.height) + struct.pack("<8I", *colours)
        )
    await stream.write(pixels)


async def _socket(stream: Stream, name: str, rest: str) -> None:
    """`tcp:` and `local...:` sockets on the phone. Only the echo socket `localabstract:lomi-echo` exists."""
    if name == "localabstract" and rest == "lomi-echo":
        while chunk := await stream.read():
            await stream.write(chunk)


class Reverses:
    """`adb reverse`: ports of the phone that lead to the client's machine.

    A port really listens on the loopback of the machine that simulates the phone, so `tcp:0` picks a free one.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rules: dict[str, tuple[str, asyncio.Server]] = {}

    async def serve(self, stream: Stream, request: str) -> None:
        """One `reverse:` request."""
        verb, _, rest = request.partition(":")
        if verb == "list-forward":
            text = "".join(f"(reverse) {here} {there}\n" for here, (there, _) in sorted(self._rules.items()))
            await stream.write(_message(text))
        elif verb == "killforward-all":
            for here in list(self._rules):
                self._drop(here)
            await stream.write(b"OKAY")
        elif verb == "killforward":
            known = rest in self._rules
            self._drop(rest)
            await stream.write(b"OKAY" if known else b"FAIL" + _message(f"listener '{rest}' not found"))
        elif verb == "forward":
            await self._add(stream, rest)
        else:
            await stream.write(b"FAIL" + _message(f"unknown reverse command {verb}"))

    async def _add(self, stream: Stream, rest: str) -> None:
        norebind = rest.startswith("norebind:")
        here, _, there = rest.removeprefix("norebind:").partition(";")
        if here in self._rules and norebind:
            await stream.write(b"FAIL" + _message("cannot rebind existing socket"))
            return
        if not here.startswith("tcp:"):
            await stream.write(b"FAIL" + _message(f"cannot bind listener: {here} is not simulated"))
            return
        if here in self._rules:
            self._rules[here] = (there, self._rules[here][1])
            await stream.write(b"OKAY")
            return
        wanted = int(here.removeprefix("tcp:") or 0)

        async def bridge(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._bridge(here, reader, writer)  # `here` by then names the port that was really bound

        try:
            server = await asyncio.start_server(bridge, "127.0.0.1", wanted)
        except OSError as error:
            await stream.write(b"FAIL" + _message(f"cannot bind listener: {error.strerror}"))
            return
        port = server.sockets[0].getsockname()[1]
        if wanted == 0:
            here = f"tcp:{port}"
        self._rules[here] = (there, server)
        await stream.write(b"OKAY" + (_message(str(port)) if wanted == 0 else b""))

    async def _bridge(self, here: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def outward(stream: Stream) -> None:
            while chunk := await reader.read(65536):
                await stream.write(chunk)
            self._connection.release(stream)

        async def inward(stream: Stream) -> None:
            while chunk := await stream.read():
                writer.write(chunk)
                await writer.drain()
            writer.close()

        try:
            stream = await self._connection.open_from_device(self._rules[here][0])
            async with asyncio.TaskGroup() as group:
                group.create_task(outward(stream))
                group.create_task(inward(stream))
        except* (ConnectionError, StreamClosedError, KeyError):
            pass
        finally:
            writer.close()

    def _drop(self, here: str) -> None:
        rule = self._rules.pop(here, None)
        if rule is not None:
            rule[1].close()

    def close(self) -> None:
        """Close every listening port."""
        for here in list(self._rules):
            self._drop(here)


def _message(text: str) -> bytes:
    payload = text.encode()
    return f"{len(payload):04x}".encode() + payload
