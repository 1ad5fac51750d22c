"""The helper process `lomi-mcp`: what an agent host starts. A pipe between its stdio and the broker; it owns nothing.

It imports the SDK only when it has to answer by itself.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from lomi.client.find import own_broker
from lomi.link.client import connect, connect_endpoint
from lomi.link.connection import BrokerConnection
from lomi.mcp.pipe import Connect, Pipe, Standing
from lomi.mcp.stdio import LineReader, LineWriter, Streams, take_streams

DEFAULT_LABEL = "lomi-mcp"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the helper until its client closes stdin; return the exit code."""
    arguments = _parser().parse_args(argv)
    if arguments.version:
        return _print_version()
    connecting = _connecting(arguments, os.environ)
    try:
        streams = take_streams()
    except OSError as error:
        sys.stderr.write(f"lomi-mcp: stdin or stdout is closed: {error.strerror}\n")
        return 2
    closed_because = asyncio.run(_run(streams, connecting, _selection(arguments)))
    if closed_because is not None:
        sys.stderr.write(f"lomi-mcp: input closed: {closed_because}\n")
        return 1
    return 0


async def _run(streams: Streams, connecting: Connect, selection: dict[str, str]) -> str | None:
    async def serve_locally(
        lines: AsyncIterator[bytes], send_line: Callable[[bytes], Awaitable[None]], standing: Standing
    ) -> None:
        from lomi.mcp.local import serve_local  # noqa: PLC0415  the SDK costs half a second; mostly it isn't needed

        await serve_local(lines, send_line, standing, selection)

    writer = LineWriter(streams.outgoing)
    async with asyncio.TaskGroup() as tasks:
        pipe = Pipe(LineReader(streams.incoming), writer, connecting, serve_locally, tasks)
        writing, carrying = tasks.create_task(writer.run()), tasks.create_task(pipe.carry())
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, carrying.cancel)
        await asyncio.wait({writing, carrying}, return_when=asyncio.FIRST_COMPLETED)
        carrying.cancel()
        await pipe.say_goodbye()
        writing.cancel()
    return None if carrying.cancelled() else carrying.result()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lomi-mcp", description="MCP over stdio, piped to the local Lomi broker.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    direct = parser.add_argument_group("a broker whose socket is known")
    direct.add_argument("--endpoint", type=Path, metavar="PATH", help="its socket")
    direct.add_argument("--instance", metavar="ID", help="its instance")
    direct.add_argument("--broker-sha256", metavar="HEX", help="pin of its certificate")
    registered = parser.add_argument_group("a registered broker (without either group: that of LOMI_HOME)")
    registered.add_argument("--discovery-file", type=Path, metavar="PATH", help="its discovery file")
    registered.add_argument("--discovery-key", metavar="HEX", help="public key of its signature")
    parser.add_argument("--profile", choices=("qa",), help="list a short selection of tools")
    parser.add_argument("--tools", metavar="A,B", help="list only these tools and tool families")
    return parser


def _connecting(arguments: argparse.Namespace, environment: MutableMapping[str, str]) -> Connect:
    """How to connect, as the arguments say. The token leaves the environment: no child of ours may read it there."""
    label = environment.get("LOMI_CLIENT_LABEL") or DEFAULT_LABEL
    token = environment.pop("LOMI_CLIENT_TOKEN", None) or None
    direct = (arguments.endpoint, arguments.instance, arguments.broker_sha256)
    registered = (arguments.discovery_file, arguments.discovery_key)
    if (any(direct) and any(registered)) or any(direct) is not all(direct) or any(registered) is not all(registered):
        _parser().error(
            "give --endpoint, --instance and --broker-sha256, or --discovery-file and --discovery-key, or none"
        )
    options = _selection(arguments)
    _check(options)

    @asynccontextmanager
    async def connecting() -> AsyncIterator[BrokerConnection]:
        if all(direct):
            way = connect_endpoint(*direct, label=label, token=token, purpose="mcp", options=options)
        else:
            file, key = registered if all(registered) else await asyncio.to_thread(own_broker, environment)
            way = connect(file.absolute(), key, label=label, token=token, purpose="mcp", options=options)
        async with way as broker:
            yield broker

    return connecting


def _selection(arguments: argparse.Namespace) -> dict[str, str]:
    given = {"profile": arguments.profile, "tools": arguments.tools}
    return {name: value for name, value in given.items() if value}


def _check(selection: dict[str, str]) -> None:
    """A misspelt tool ends the helper at once, with the names there are; not with a list that lacks it."""
    if "tools" in selection:
        from lomi.contract.profiles import UnknownSelectionError, select  # noqa: PLC0415  only when names are given

        try:
            select(tools=selection["tools"])
        except UnknownSelectionError as error:
            _parser().error(str(error))


def _print_version() -> int:
    from importlib.metadata import version  # noqa: PLC0415  slow to import, and only needed here

    sys.stdout.write(f"lomi-mcp {version('lomi-lab')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
