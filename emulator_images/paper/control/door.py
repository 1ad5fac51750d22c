"""The gRPC port: on loopback only, never without a token or a JWT, and announced like the real one's."""

from __future__ import annotations

import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from emulator_images.paper.control.guard import Guard, JwtGuard, TokenGuard
from emulator_images.paper.control.messages import BadMessageError
from emulator_images.paper.control.service import Controller
from emulator_images.paper.phone import Phone

if TYPE_CHECKING:
    import grpc.aio

_SERVICE = "android.emulation.control.EmulatorController"
_MAX_MESSAGE = 64 << 20


@asynccontextmanager
async def controlled(phone: Phone, port: int | None, discovery: Path, *, jwt: bool) -> AsyncIterator[None]:
    """Serve the controller on a port while inside, and add it to the discovery file; nothing without a port.

    What stands in the way (grpcio missing, the port taken, a fault) is said on standard error: the phone runs without.
    """
    if port is None or phone.faults.strikes("grpc_absent") is not None:
        yield
        return
    try:
        import grpc.aio  # noqa: PLC0415 - an optional package, loaded by who asks for it
    except ImportError:
        _say("WARNING      | gRPC endpoints are disabled: the package grpcio is not installed")
        yield
        return
    folder = discovery.parent / discovery.stem / "jwks"
    token = secrets.token_urlsafe(32)
    guard: Guard = TokenGuard(token)
    lines = {"grpc.port": str(port), "grpc.token": token}
    if jwt:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        guard = JwtGuard(folder)
        lines = {"grpc.port": str(port), "grpc.jwks": str(folder)}
    # Without the option a second server of this user could take calls on the same port.
    options = (("grpc.so_reuseport", 0), ("grpc.max_send_message_length", _MAX_MESSAGE))
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, _handlers(phone, guard)),))
    try:
        server.add_insecure_port(f"127.0.0.1:{port}")
    except RuntimeError as error:
        _say(f"ERROR        | Failed to start gRPC service on 127.0.0.1:{port}: {error}")
        yield
        return
    await server.start()
    with discovery.open("a", encoding="utf-8") as target:
        target.write("".join(f"{key}={value}\n" for key, value in lines.items()))
    _say(
        f"INFO         | Started GRPC server at 127.0.0.1:{port}, security: Local, auth: {'+jwt' if jwt else '+token'}"
    )
    try:
        yield
    finally:
        await server.stop(None)
        if jwt:
            for path in folder.iterdir():
                path.unlink(missing_ok=True)
            folder.rmdir()
            folder.parent.rmdir()


def _handlers(phone: Phone, guard: Guard) -> dict[str, grpc.RpcMethodHandler]:
    import grpc  # noqa: PLC0415

    controller = Controller(phone)

    async def admit(name: str, context: grpc.aio.ServicerContext) -> None:
        given = dict(context.invocation_metadata() or ()).get("authorization", "")
        if not guard.admits(str(given), f"/{_SERVICE}/{name}"):
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "The authentication token is missing or wrong.")
        if phone.faults.strikes("grpc_fails") is not None:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "told to fail")

    def unary(name: str, run: Callable[[bytes], Awaitable[bytes]]) -> grpc.RpcMethodHandler:
        async def call(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
            await admit(name, context)
            try:
                return await run(request)
            except BadMessageError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
                raise

        return grpc.unary_unary_rpc_method_handler(call)

    async def stream(request: bytes, context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:
        await admit("streamScreenshot", context)
        try:
            async for image in controller.stream_screenshot(request):
                yield image
        except BadMessageError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

    plain = {
        "getStatus": controller.get_status,
        "getScreenshot": controller.get_screenshot,
        "sendTouch": controller.send_touch,
        "sendKey": controller.send_key,
        "getClipboard": controller.get_clipboard,
        "setClipboard": controller.set_clipboard,
    }
    handlers = {name: unary(name, run) for name, run in plain.items()}
    return {**handlers, "streamScreenshot": grpc.unary_stream_rpc_method_handler(stream)}


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
