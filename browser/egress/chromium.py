"""How Chromium is told to use the proxy and nothing but the proxy.

For a page that somebody else drives with Playwright, `prove` gives the context's credential once; the engine then sends
it unasked with every request of the context, those of workers, beacons and prefetches included. Playwright's own
`username` and `password` for a proxy would stop every request of the page and turn the cache off.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypedDict

from browser.egress.answers import PROVING_HOST
from browser.egress.proxy import EgressProxy

if TYPE_CHECKING:
    from playwright.async_api import Page

ENGINE_ARGUMENTS: Final = (
    "--disable-quic",
    # The headless shell obeys the first of these only, the whole browser the second only.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    # Pages may not ask the system's resolver for names around the proxy.
    "--dns-prefetch-disable",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
"""Given to the engine once, beside `RefusalIdentity.engine_argument`."""


class ProxySettings(TypedDict):
    """What `Browser.new_context(proxy=...)` takes."""

    server: str
    bypass: str


def proxy_settings(proxy: EgressProxy) -> ProxySettings:
    """Return the context's proxy settings: no host bypasses the proxy, loopback included.

    Written out because Playwright's own default for loopback can be switched off by an environment variable.
    """
    return {"server": proxy.url, "bypass": "<-loopback>"}


async def prove(page: Page, proxy: EgressProxy) -> None:
    """Give the context of `page`, a fresh blank page, its credential. The page stays blank and its history empty.

    Raises:
        playwright.async_api.Error: The page or its engine is gone.
    """
    session = await page.context.new_cdp_session(page)
    credential = {"response": "ProvideCredentials", "username": proxy.username, "password": proxy.password}

    async def answer(event: dict[str, object]) -> None:
        await session.send(
            "Fetch.continueWithAuth", {"requestId": event["requestId"], "authChallengeResponse": credential}
        )

    async def go_on(event: dict[str, object]) -> None:
        await session.send("Fetch.continueRequest", {"requestId": event["requestId"]})

    async with asyncio.TaskGroup() as answers:
        session.on("Fetch.authRequired", lambda event: answers.create_task(answer(event)))
        session.on("Fetch.requestPaused", lambda event: answers.create_task(go_on(event)))
        await session.send("Fetch.enable", {"handleAuthRequests": True, "patterns": [{"resourceType": "Document"}]})
        # The proxy answers 204, which ends the navigation and leaves the page as it was.
        await session.send("Page.navigate", {"url": f"http://{PROVING_HOST}/"})
        await session.send("Fetch.disable")
    await session.detach()
