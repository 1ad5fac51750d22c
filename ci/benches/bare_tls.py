"""The yardstick of a connect: mutual TLS 1.3 over a Unix socket, a context made per connection on both sides.

As a program it is the server: `python bare_tls.py SOCKET CERTIFICATE PEER`. It says one line once it listens, one line
to each client after the handshake, and ends with its stdin.
"""

import asyncio
import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path


def context(protocol: int, chain: str, peer: str) -> ssl.SSLContext:
    """A fresh context that trusts one certificate."""
    made = ssl.SSLContext(protocol)
    made.minimum_version = made.maximum_version = ssl.TLSVersion.TLSv1_3
    made.options |= ssl.OP_NO_TICKET
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    made.load_cert_chain(chain)
    made.load_verify_locations(peer)
    return made


def make_pair(folder: Path) -> tuple[Path, Path]:
    """Two self-signed Ed25519 certificates with their keys, the server's and the client's."""
    return _make(folder, "server"), _make(folder, "client")


def _make(folder: Path, name: str) -> Path:
    from cryptography import x509  # noqa: PLC0415  the server process needs none of this
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2000, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
        .sign(key, None)
    )
    pem = serialization.Encoding.PEM
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()) + made.public_bytes(pem)
    )
    return path


async def connect(path: str, chain: str, peer: str) -> None:
    """Connect, hear the server's line, close."""
    made = context(ssl.PROTOCOL_TLS_CLIENT, chain, peer)
    reading, writing = await asyncio.open_unix_connection(path, ssl=made, server_hostname="server")
    await reading.readline()
    writing.close()
    await writing.wait_closed()


async def _serve(path: str, chain: str, peer: str) -> None:
    loop = asyncio.get_running_loop()

    async def handle(reading: asyncio.StreamReader, writing: asyncio.StreamWriter) -> None:
        # The context is made when the client is there, as a broker that pins each client must.
        await writing.start_tls(context(ssl.PROTOCOL_TLS_SERVER, chain, peer))
        writing.write(b"welcome\n")
        await reading.read()
        writing.close()

    server = await asyncio.start_unix_server(handle, path)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:4]))
