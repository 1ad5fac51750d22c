"""The four messages before the first request: announcement, acknowledgement, welcome, hello. Closed and bounded."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

from lomi.link.errors import EnrolmentReason, EnrolmentRefusedError
from lomi.link.frames import Frame, Kind
from lomi.link.limits import MAX_CERTIFICATE

IPC_VERSION = 1
_INSTANCE = re.compile(r"[0-9a-z](?:[0-9a-z-]{0,61}[0-9a-z])?")
_PIN = re.compile(r"[0-9a-f]{64}")
_MAX_OPTIONS = 16
_MAX_OPTION = 4096
_REFUSALS: dict[str, EnrolmentReason] = {
    reason: reason
    for reason in (
        "version_unknown",
        "instance_unknown",
        "label_invalid",
        "certificate_invalid",
        "connections_full",
        "handshakes_full",
        "message_malformed",
        "too_slow",
    )
}


class Announcement(NamedTuple):
    """The client's frame in clear: who asks, and with which certificate it is going to prove it."""

    instance_id: str
    label: str
    certificate: bytes


class Acknowledgement(NamedTuple):
    """The broker's frame in clear: its certificate, to be compared with the pin, and the id a person will see."""

    instance_id: str
    certificate: bytes
    pairing_request_id: str


class Welcome(NamedTuple):
    """The broker's first frame under TLS: the connection was accepted, and stands in `phase`."""

    instance_id: str
    phase: str
    pairing_request_id: str


class Hello(NamedTuple):
    """The client's first frame under TLS.

    Attributes:
        purpose: what the connection is for: `calls` or `mcp`.
        proof: HMAC that proves the client token, or None.
        options: small settings of the purpose (such as the profile of an MCP session).
    """

    purpose: str
    proof: bytes | None
    options: Mapping[str, str]


def is_instance_id(text: str) -> bool:
    """Whether `text` can be a broker instance: one lower-case DNS label."""
    return _INSTANCE.fullmatch(text) is not None


def is_pin(text: str) -> bool:
    """Whether `text` is a SHA-256 as 64 lower-case hex digits."""
    return _PIN.fullmatch(text) is not None


def is_label(text: str) -> bool:
    """Whether `text` can be a client label: 1 to 80 characters, none of them a control, format or line separator."""
    return 1 <= len(text) <= 80 and not any(
        unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in text
    )


def token_proof(token_sha256: bytes, instance_id: str, client_sha256: str, broker_sha256: str) -> bytes:
    """Return the proof that a client knows its token on this one connection: nothing that can be used on another.

    The key is the token's SHA-256, because that is what a policy file holds.
    """
    message = instance_id.encode() + bytes.fromhex(client_sha256) + bytes.fromhex(broker_sha256)
    return hmac.digest(token_sha256, message, "sha256")


def token_key(token: str) -> bytes:
    """Return the SHA-256 of a client token, the key of its proofs."""
    return hashlib.sha256(token.encode()).digest()


def encode_announcement(message: Announcement) -> Frame:
    """Return the frame of `message`."""
    return _frame(
        {
            "ipcVersion": IPC_VERSION,
            "instanceId": message.instance_id,
            "clientLabel": message.label,
            "certificate": base64.b64encode(message.certificate).decode(),
        }
    )


def decode_announcement(frame: Frame) -> Announcement:
    """Read an announcement.

    Raises:
        EnrolmentRefusedError: malformed, another version, a bad label or a too large certificate.
    """
    found = _object(frame, {"ipcVersion": int, "instanceId": str, "clientLabel": str, "certificate": str})
    label = str(found["clientLabel"])
    if not is_label(label):
        raise EnrolmentRefusedError("label_invalid")
    return Announcement(_instance(found), label, _certificate(found))


def encode_acknowledgement(message: Acknowledgement) -> Frame:
    """Return the frame of `message`."""
    return _frame(
        {
            "ipcVersion": IPC_VERSION,
            "instanceId": message.instance_id,
            "certificate": base64.b64encode(message.certificate).decode(),
            "pairingRequestId": message.pairing_request_id,
        }
    )


def decode_acknowledgement(frame: Frame) -> Acknowledgement:
    """Read an acknowledgement.

    Raises:
        EnrolmentRefusedError: malformed, another version, or a refusal with the broker's reason.
    """
    keys = {"ipcVersion": int, "instanceId": str, "certificate": str, "pairingRequestId": str}
    found = _object(frame, keys, refusable=True)
    return Acknowledgement(_instance(found), _certificate(found), str(found["pairingRequestId"]))


def encode_refusal(reason: EnrolmentReason) -> Frame:
    """Return the frame in clear that tells a client why it is not let in."""
    return _frame({"ipcVersion": IPC_VERSION, "refused": reason if reason in _REFUSALS else "message_malformed"})


def encode_welcome(message: Welcome) -> Frame:
    """Return the frame of `message`."""
    return _frame(
        {
            "ipcVersion": IPC_VERSION,
            "instanceId": message.instance_id,
            "phase": message.phase,
            "pairingRequestId": message.pairing_request_id,
        }
    )


def decode_welcome(frame: Frame) -> Welcome:
    """Read a welcome.

    Raises:
        EnrolmentRefusedError: malformed or another version.
    """
    found = _object(frame, {"ipcVersion": int, "instanceId": str, "phase": str, "pairingRequestId": str})
    return Welcome(_instance(found), str(found["phase"]), str(found["pairingRequestId"]))


def encode_hello(message: Hello) -> Frame:
    """Return the frame of `message`."""
    return _frame(
        {
            "ipcVersion": IPC_VERSION,
            "purpose": message.purpose,
            "proof": message.proof.hex() if message.proof is not None else "",
            "options": dict(message.options),
        }
    )


def decode_hello(frame: Frame) -> Hello:
    """Read a hello.

    Raises:
        EnrolmentRefusedError: malformed or another version.
    """
    found = _object(frame, {"ipcVersion": int, "purpose": str, "proof": str, "options": dict})
    proof, options = str(found["proof"]), found["options"]
    if found["purpose"] not in {"calls", "mcp"} or (proof and not is_pin(proof)):
        raise EnrolmentRefusedError("message_malformed")
    assert isinstance(options, dict)
    if len(options) > _MAX_OPTIONS or not all(
        type(v) is str and len(k) + len(v) <= _MAX_OPTION for k, v in options.items()
    ):
        raise EnrolmentRefusedError("message_malformed")
    return Hello(str(found["purpose"]), bytes.fromhex(proof) if proof else None, options)


def _frame(message: dict[str, object]) -> Frame:
    return Frame(Kind.JSON, json.dumps(message, separators=(",", ":")).encode())


def _object(frame: Frame, keys: dict[str, type], *, refusable: bool = False) -> dict[str, object]:
    """Decode a JSON object with exactly `keys`, each of exactly its type, none twice."""
    if frame.kind is not Kind.JSON:
        raise EnrolmentRefusedError("message_malformed")
    try:
        found = json.loads(bytes(frame.body), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise EnrolmentRefusedError("message_malformed") from error
    if not isinstance(found, dict):
        raise EnrolmentRefusedError("message_malformed")
    version = found.get("ipcVersion")
    if type(version) is int and version != IPC_VERSION:
        raise EnrolmentRefusedError("version_unknown")
    if refusable and found.keys() == {"ipcVersion", "refused"}:
        raise EnrolmentRefusedError(_REFUSALS.get(str(found["refused"]), "not_accepted"))
    if found.keys() != keys.keys() or any(type(found[key]) is not kind for key, kind in keys.items()):
        raise EnrolmentRefusedError("message_malformed")
    return found


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears twice")
    return found


def _instance(found: dict[str, object]) -> str:
    instance_id = str(found["instanceId"])
    if not is_instance_id(instance_id):
        raise EnrolmentRefusedError("instance_unknown")
    return instance_id


def _certificate(found: dict[str, object]) -> bytes:
    try:
        der = base64.b64decode(str(found["certificate"]), validate=True)
    except (binascii.Error, ValueError) as error:
        raise EnrolmentRefusedError("certificate_invalid") from error
    if not 0 < len(der) <= MAX_CERTIFICATE:
        raise EnrolmentRefusedError("certificate_invalid")
    return der
