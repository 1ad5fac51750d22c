"""Tokens with which a host joins: one use, ten minutes. The text carries where to go, whom to expect, and a secret."""

import base64
import binascii
import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from lomi.disk.private import private_directory, read_private, write_private
from lomi.disk.refusal import DiskRefusedError

LIFE_S = 600
_PREFIX = "lomi-join-"
_MOST = 4096
_KEPT_S = 24 * 3600


class TokenRefusedError(Exception):
    """Raised for a token that admits nobody.

    Attributes:
        reason: `token_malformed`, `token_unknown`, `token_used` or `token_expired`.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class JoinToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the text of a token says: host and port, SHA-256 of the certificate there in hex, and the secret in hex."""

    host: str
    port: int
    fingerprint: str
    secret: str

    def text(self) -> str:
        """The token as people copy it."""
        return _PREFIX + base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def parse_token(text: str) -> JoinToken:
    """Read a token.

    Raises:
        TokenRefusedError: it is none.
    """
    body = text.strip().removeprefix(_PREFIX)
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        token = msgspec.json.decode(raw, type=JoinToken)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise TokenRefusedError("token_malformed") from error
    if not text.strip().startswith(_PREFIX) or len(token.fingerprint) != 64 or not 0 < token.port < 65536:
        raise TokenRefusedError("token_malformed")
    return token


class _Issued(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    expires: float


class TokenBook:
    """The tokens that were issued, one small file each, by the hash of their secret; every call blocks.

    Files, so that `lomi lab token` can issue one while the scheduler runs, and a crash forgets none that was used.

    Args:
        folder: of this user alone; made where it is not there.
        now: seconds since the epoch.
    """

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        private_directory(folder)
        self._folder = folder
        self._now = now

    def issue(self, secret: str) -> None:
        """Let a secret admit one host within ten minutes."""
        self._forget_old()
        issued = _Issued(expires=self._now() + LIFE_S)
        write_private(self._folder / f"{_digest(secret)}.open", msgspec.json.encode(issued), replace=False)

    def redeem(self, secret: str) -> None:
        """Use a secret up.

        Raises:
            TokenRefusedError: it was never issued, is used, or is too old.
        """
        name = _digest(secret)
        opened, used = self._folder / f"{name}.open", self._folder / f"{name}.used"
        try:
            issued = msgspec.json.decode(read_private(opened, _MOST), type=_Issued)
            if self._now() > issued.expires:
                raise TokenRefusedError("token_expired")
            # Of two that come at once the rename serves one.
            opened.rename(used)
        except (DiskRefusedError, FileNotFoundError, msgspec.DecodeError) as error:
            raise TokenRefusedError("token_used" if used.exists() else "token_unknown") from error

    def _forget_old(self) -> None:
        for path in self._folder.iterdir():
            try:
                if self._now() - path.stat().st_mtime > _KEPT_S:
                    path.unlink()
            except FileNotFoundError:
                continue


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
