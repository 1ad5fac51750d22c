"""The egress proxy every browser context is forced through: it admits granted hosts and ports, and nothing else.

One `EgressProxy` a context listens on 127.0.0.1 and wants the context's own credential. It resolves names itself,
judges every address, connects to one that it judged, and sees each request of the context: documents, frames,
redirects, meta refresh, popups, forms, sub-resources, workers, beacons, prefetches and WebSockets alike.

How the engine learns of a refusal (header `Lomi-Egress`, value = the reason; no server can forge it):

- plain http navigation: 204, on which an engine keeps its old document; other plain http requests: 403, unreadable to
  the page;
- https with a `RefusalIdentity`: the same two answers over TLS inside the tunnel;
- https without one: 403 to CONNECT, for which an engine shows an error page in place of its document;
- a granted place that fails: 502 or 504 with the cause. It is no refusal.

What is not covered, and who has to hold it:

- Documents from `resources` over https: a tunnel does not show what it carries. The library must hold documents on
  every target by CDP (`Fetch.enable` for `Document`). Over plain http they are held here, by the headers that come with
  each navigation, and an answer from such a place is marked so that the engine's cache cannot turn it into one.
- A grant that shrinks: open connections outside it are cut, but what the engine has loaded or cached stays with it, and
  going back may show it without a request. End the context instead.
- `file:`, `data:`, `blob:`, `about:` and `javascript:` addresses, and signed exchanges, which make no request for the
  place they show.
- The engine's arguments: without `chromium.ENGINE_ARGUMENTS` WebRTC sends UDP past every proxy, and without the bypass
  rule of `chromium.proxy_settings` loopback goes directly.
- A popup whose first navigation is refused stays an empty target, which Playwright announces only when it closes.
- What a granted server does with what it is sent, and other processes of the same user.
"""

from browser.egress.answers import VERDICT_HEADER
from browser.egress.dial import system_resolve
from browser.egress.gate import EgressLimits
from browser.egress.grant import EgressGrant, RefusalReason
from browser.egress.names import Resolve
from browser.egress.origin import HostPort, HostSpellingError, Origin
from browser.egress.proxy import EgressProxy
from browser.egress.record import NetworkEntry, Refusal, Ring
from browser.egress.tls_refusal import RefusalIdentity

__all__ = [
    "VERDICT_HEADER",
    "EgressGrant",
    "EgressLimits",
    "EgressProxy",
    "HostPort",
    "HostSpellingError",
    "NetworkEntry",
    "Origin",
    "Refusal",
    "RefusalIdentity",
    "RefusalReason",
    "Resolve",
    "Ring",
    "system_resolve",
]
