"""What the egress proxy costs a page load: the same page in the same Chromium, with and without, alternating.

The page has 60 small sub-resources and one file of 4 MB, none of them cacheable, from a server in a process of its own.
The proxy shares its process and loop with the code that drives the browser, as it does in the product.

    ci/bench egress [--runs 40] [--browser /usr/bin/chromium-headless-shell]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import time
from dataclasses import dataclass

from playwright.async_api import Browser, Page, async_playwright

from benches.rows import Report, row
from browser.egress import EgressGrant, EgressProxy, Origin
from browser.egress.chromium import ENGINE_ARGUMENTS, prove, proxy_settings

SMALL = 60
BIG_BYTES = 4 * 1024 * 1024
SERVER = """
import asyncio, sys
SMALL, BIG = int(sys.argv[1]), b"x" * int(sys.argv[2])
tags = "".join(
    f'<script src="/{i}.js"></script>' if i % 3 == 0 else f'<link rel="stylesheet" href="/{i}.css">' if i % 3 == 1
    else f'<img src="/{i}.svg">' for i in range(SMALL))
PAGE = ("<!doctype html><title>bench</title>" + tags + "<script>window.big = fetch('/big').then(r => r.arrayBuffer())"
        ".then(b => b.byteLength)</script>").encode()
KINDS = {
    "js": ("text/javascript", b"window.n = (window.n || 0) + 1;" + b"/" * 2000),
    "css": ("text/css", b".a { color: red }" + b" " * 1500),
    "svg": ("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>' + b" " * 900),
}
class Server(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.seen = transport, b""
    def data_received(self, data):
        self.seen += data
        while b"\\r\\n\\r\\n" in self.seen:
            head, _, self.seen = self.seen.partition(b"\\r\\n\\r\\n")
            path = head.split()[1].decode()
            if path == "/big":
                kind, body = "application/octet-stream", BIG
            else:
                kind, body = KINDS.get(path.rpartition(".")[2], ("text/html", PAGE))
            self.transport.write(f"HTTP/1.1 200 OK\\r\\nContent-Type: {kind}\\r\\nCache-Control: no-store\\r\\n"
                                 f"Content-Length: {len(body)}\\r\\n\\r\\n".encode() + body)
async def main():
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds of each load, in the order they ran, and of this process's own computing in them."""

    direct: tuple[float, ...]
    proxied: tuple[float, ...]
    direct_computed: tuple[float, ...]
    proxied_computed: tuple[float, ...]

    @property
    def computing(self) -> float:
        """Milliseconds of computing that the proxy adds to one load: hardly moved by what else the machine does."""
        return statistics.median(self.proxied_computed) - statistics.median(self.direct_computed)

    @property
    def paired(self) -> float:
        """Median of the ratios of neighbouring runs: less moved by a slow drift of the machine."""
        return statistics.median(p / d for p, d in zip(self.proxied, self.direct, strict=True))


async def load(page: Page, url: str) -> tuple[float, float]:
    """Load the page once; return the milliseconds until its last byte is there and those this process computed."""
    await page.goto("about:blank")
    begun, computed = time.perf_counter(), time.process_time()
    await page.goto(url)
    size = await page.evaluate("() => window.big")
    took = (time.perf_counter() - begun) * 1e3, (time.process_time() - computed) * 1e3
    assert size == BIG_BYTES
    return took


async def measure(browser: Browser, url: str, runs: int) -> Figures:
    """Load the page `runs` times each way, alternating."""
    grant = EgressGrant(origins=frozenset({Origin.parse(url)}))
    async with EgressProxy.serve(grant) as proxy:
        plain = await (await browser.new_context()).new_page()
        through = await (await browser.new_context(proxy=proxy_settings(proxy))).new_page()
        await prove(through, proxy)
        for page in (plain, through, plain, through):
            await load(page, url)
        seen = proxy.network_log.last
        figures: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
        for _ in range(runs):
            for page, into in zip((plain, through), figures, strict=True):
                into.append(await load(page, url))
        passed = proxy.network_log.last - seen
        assert passed >= runs * (SMALL + 2), f"only {passed} requests came through the proxy"
        (direct, direct_computed), (proxied, proxied_computed) = (zip(*each, strict=True) for each in figures)
        return Figures(direct, proxied, direct_computed, proxied_computed)


async def _measure(options: argparse.Namespace) -> Figures:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(SMALL), str(BIG_BYTES), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(await server.stdout.readline())}"
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=options.browser,
                chromium_sandbox=os.geteuid() != 0,
                args=["--disable-gpu", *ENGINE_ARGUMENTS],
            )
            figures = await measure(browser, url, options.runs)
            await browser.close()
            return figures
    finally:
        server.terminate()
        await server.wait()


def run(options: argparse.Namespace) -> Report:
    """All rows."""
    report = Report("egress")
    report.notes.append("one page load: 60 small sub-resources and one file of 4 MB, nothing cached")
    figures = asyncio.run(_measure(options))
    report.rows.append(row("page load through the proxy", figures.proxied, ("without it", figures.direct), target=1.1))
    note = f"median of neighbouring loads' ratios {figures.paired:.2f}"
    report.rows.append(row("  computing that it adds", [figures.computing], note=note))
    fastest = [min(figures.proxied)], [min(figures.direct)]
    report.rows.append(row("  fastest load", fastest[0], ("without it", fastest[1])))
    return report


def add_options(parser: argparse._ActionsContainer) -> None:
    """How many loads, in which browser."""
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--browser", default=shutil.which("chromium-headless-shell"))
