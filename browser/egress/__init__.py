"""The egress proxy every browser context is forced through: it admits granted hosts and ports, and nothing else."""

from browser.egress.answers import VERDICT_HEADER
from browser.egress.dial import Resolve, system_resolve
from browser.egress.gate import EgressLimits
from browser.egress.grant import EgressGrant, RefusalReason
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
