"""Who may call: a bearer of the announced token, or of a JWT signed by a key in the announced folder."""

import base64
import binascii
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_MOST_BYTES = 65536


@dataclass(frozen=True, slots=True)
class TokenGuard:
    """Lets in whoever bears the token."""

    token: str

    def admits(self, authorization: str, method: str) -> bool:
        """Whether a call of a method may be made with this header."""
        del method
        return hmac.compare_digest(authorization.encode(), f"Bearer {self.token}".encode())


@dataclass(frozen=True, slots=True)
class JwtGuard:
    """Lets in whoever bears an unexpired ES256 JWT for the method, signed by a key whose public JWK is in `folder`."""

    folder: Path
    now: Callable[[], float] = time.time

    def admits(self, authorization: str, method: str) -> bool:
        """Whether a call of a method may be made with this header."""
        scheme, _, token = authorization.partition(" ")
        parts = token.split(".")
        if scheme != "Bearer" or len(parts) != 3:
            return False
        try:
            head, claims = (_mapping(json.loads(_decoded(part))) for part in parts[:2])
            signature = _decoded(parts[2])
        except (ValueError, binascii.Error):
            return False
        audience = claims.get("aud")
        allowed = audience if isinstance(audience, list) else [audience]
        expires = claims.get("exp")
        if head.get("alg") != "ES256" or method not in allowed or not isinstance(expires, int | float):
            return False
        signed = ".".join(parts[:2]).encode()
        return expires > self.now() and any(_signed(key, signature, signed) for key in self._keys(head.get("kid")))

    def _keys(self, wanted: object) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        for path in sorted(self.folder.glob("*.jwk")):
            try:
                loaded = _mapping(json.loads(path.read_bytes()[:_MOST_BYTES]))
            except (OSError, ValueError):
                continue
            listed = loaded.get("keys")
            keys = [_mapping(one) for one in listed] if isinstance(listed, list) else [loaded]
            found += [key for key in keys if wanted is None or key.get("kid") == wanted]
        return found


Guard = TokenGuard | JwtGuard


def _signed(key: dict[str, object], signature: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only who asks for JWTs pays for it
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    if (key.get("kty"), key.get("crv")) != ("EC", "P-256") or len(signature) != 64:
        return False
    try:
        x, y = (int.from_bytes(_decoded(str(key[name])), "big") for name in ("x", "y"))
        public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        r, s = (int.from_bytes(signature[at : at + 32], "big") for at in (0, 32))
        public.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))
    except (KeyError, ValueError, binascii.Error, InvalidSignature):
        return False
    return True


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - callers ask for malformed text of any kind
    return value
