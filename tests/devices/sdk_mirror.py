"""A local mirror in Google's repository format, with good, wrong, truncated and preview-only archives."""

import asyncio
import contextlib
import hashlib
import io
import re
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

NAMESPACE = 'xmlns:sdk="http://schemas.android.com/sdk/android/repo/repository2/03"'
LICENCE = "Simulated licence text.\n   Second line."


def zipped(files: dict[str, bytes], *, top: str = "pkg") -> bytes:
    """A zip with one top folder; names that end in .sh are executable."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(f"{top}/{name}")
            entry.external_attr = (0o100755 if name.endswith(".sh") else 0o100644) << 16
            archive.writestr(entry, content)
    return out.getvalue()


def package(
    path: str,
    archive: bytes,
    url: str,
    *,
    version: str = "1",
    channel: int = 0,
    checksum: str | None = None,
    depends: str = "",
    host: str = "",
) -> str:
    """One remotePackage element."""
    major, *rest = version.split(".")
    more = "".join(f"<{name}>{part}</{name}>" for name, part in zip(("minor", "micro"), rest, strict=False))
    digest = checksum or hashlib.sha1(archive).hexdigest()
    dependency = f'<dependencies><dependency path="{depends}"/></dependencies>' if depends else ""
    return (
        f'<remotePackage path="{path}"><revision><major>{major}</major>{more}</revision>'
        f'<display-name>{path} shown</display-name><uses-license ref="sim-license"/>{dependency}'
        f'<channelRef ref="channel-{channel}"/><archives>'
        f"<archive><complete><size>1</size><checksum>{'0' * 40}</checksum><url>other.zip</url></complete>"
        "<host-os>windows</host-os></archive>"
        f'<archive><complete><size>{len(archive)}</size><checksum type="sha1">{digest}</checksum><url>{url}</url>'
        f"</complete>{host}</archive></archives></remotePackage>"
    )


@dataclass
class Mirror:
    """Files by path, requests in order, and faults by path.

    `cut` closes after so many bytes, once; `slow` sends a byte at a time until `hurry` is set, and counts `trickled`.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    cut: dict[str, int] = field(default_factory=dict)
    slow: set[str] = field(default_factory=set)
    trickled: int = 0
    hurry: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    def publish(self, *packages: str) -> None:
        """Serve these packages as the repository."""
        channels = "".join(f'<channel id="channel-{number}">c{number}</channel>' for number in range(4))
        self.files["/repository2-3.xml"] = (
            f'<?xml version="1.0"?><sdk:sdk-repository {NAMESPACE}>'
            f'<license id="sim-license" type="text">{LICENCE}</license>{channels}{"".join(packages)}'
            "</sdk:sdk-repository>"
        ).encode()
        self.files["/addons_list-5.xml"] = (
            b'<list xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
            b'<site xsi:type="sdk:sysImgSiteType"><url>sys-img/x/sys-img2-3.xml</url></site>'
            b'<site xsi:type="sdk:sysImgSiteType"><url>http://elsewhere.invalid/x.xml</url></site></list>'
        )
        self.files.setdefault("/sys-img/x/sys-img2-3.xml", b"<s/>")


@asynccontextmanager
async def a_mirror() -> AsyncIterator[Mirror]:
    """A mirror on a loopback port."""
    mirror = Mirror()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = request.split(" ", 2)[1]
        ranged = re.search(r"Range: bytes=(\d+)-", request, re.IGNORECASE)
        mirror.requests.append((path, ranged[1] if ranged else ""))
        body = mirror.files.get(path)
        if body is None:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        else:
            start = int(ranged[1]) if ranged else 0
            status = "206 Partial Content" if ranged else "200 OK"
            part = body[start:]
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(part)}\r\nConnection: close\r\n\r\n".encode())
            part = part[: mirror.cut.pop(path)] if path in mirror.cut else part
            while path in mirror.slow and len(part) > 1 and not mirror.hurry.is_set() and not writer.is_closing():
                writer.write(part[:1])
                part = part[1:]
                mirror.trickled += 1
                await asyncio.sleep(0.005)
            writer.write(part)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        mirror.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        yield mirror
