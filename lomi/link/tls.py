"""TLS contexts: 1.3 only, mutual, one pinned peer each, no tickets and so no resumption and no early data.

A context is made in two steps, because loading a key costs a millisecond and can be done while the other side works:
first one that trusts nobody, then `trust_only` the certificate that the peer announced.
"""

import ssl

from lomi.link.certificate import HELPER_NAME, Certificate, broker_name, fingerprint
from lomi.link.errors import EnrolmentRefusedError

ALPN = "lomi-control/1"


def broker_context(own: Certificate, instance_id: str) -> ssl.SSLContext:
    """Return a broker's context for one connection, which trusts nobody yet."""
    context = _context(ssl.PROTOCOL_TLS_SERVER, own)
    context.num_tickets = 0
    context.verify_mode = ssl.CERT_REQUIRED
    expected = broker_name(instance_id)

    def check_name(
        _connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _context: ssl.SSLContext
    ) -> int | None:
        return None if name == expected else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context.sni_callback = check_name
    return context


def client_context(own: Certificate) -> ssl.SSLContext:
    """Return a client's context for one connection, which trusts nobody yet and will check the broker's name."""
    return _context(ssl.PROTOCOL_TLS_CLIENT, own)


def trust_only(context: ssl.SSLContext, peer_der: bytes) -> None:
    """Make `peer_der` the one certificate that a fresh context accepts.

    Raises:
        EnrolmentRefusedError: `peer_der` is no certificate.
    """
    assert context.cert_store_stats()["x509"] == 0
    try:
        context.load_verify_locations(cadata=peer_der)
    except ssl.SSLError as error:
        raise EnrolmentRefusedError("certificate_invalid") from error


def check_peer(tls: ssl.SSLObject, sha256: str, *, client: bool) -> None:
    """Look again at what the handshake agreed on, so that no setting of a context is trusted alone.

    Args:
        tls: the finished handshake.
        sha256: the pin of the peer's certificate.
        client: whether the peer is a client, whose certificate then has the helper's name.

    Raises:
        EnrolmentRefusedError: something differs.
    """
    der = tls.getpeercert(binary_form=True)
    if der is None or fingerprint(der) != sha256:
        raise EnrolmentRefusedError("certificate_mismatch")
    if tls.version() != "TLSv1.3" or tls.selected_alpn_protocol() != ALPN:
        raise EnrolmentRefusedError("tls_failed")
    if client and dict(tls.getpeercert() or {}).get("subjectAltName") != (("DNS", HELPER_NAME),):
        raise EnrolmentRefusedError("certificate_invalid")


def _context(protocol: int, own: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols([ALPN])
    # The pinned leaf is the only anchor; OpenSSL takes a leaf as anchor only when told that partial chains are fine.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    with own.chain_file() as path:
        context.load_cert_chain(path)
    return context
