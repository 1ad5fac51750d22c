"""Which relative names are opened at all: pure rules, the same for every root."""

import unicodedata

from lomi.disk.refusal import DiskRefusedError, Reason

_MAX_PATH = 4096
_MAX_NAME = 255
_RESERVED_NAMES = frozenset({
    ".git", ".ssh", ".aws", ".azure", ".gnupg", ".codex", ".netrc", ".npmrc", ".pypirc",
    "credentials", "credentials.json", "id_rsa", "id_ed25519",
})  # fmt: skip
_RESERVED_PREFIX = ".env"
_RESERVED_SUFFIXES = (".pem", ".key", ".p12", ".pfx", ".keystore", ".jks")


def is_secret(name: str) -> bool:
    """Whether one path component is reserved for secrets, in any letter case and however its letters are composed."""
    # File systems that ignore case ignore composition and invisible characters too: `.GIT` and `.g<ZWJ>it` are `.git`.
    visible = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    folded = visible.casefold()
    return folded in _RESERVED_NAMES or folded.startswith(_RESERVED_PREFIX) or folded.endswith(_RESERVED_SUFFIXES)


def split(relative: str) -> tuple[str, ...]:
    """Return the components of a path below a root.

    Raises:
        DiskRefusedError: absolute, empty, `.` or `..`, a backslash or NUL, not UTF-8, too long, or a secret name.
    """
    if relative.startswith("/"):
        raise DiskRefusedError(Reason.NOT_RELATIVE)
    names = tuple(relative.split("/"))
    if "\0" in relative or "\\" in relative or any(name in {"", ".", ".."} for name in names):
        raise DiskRefusedError(Reason.NAME_INVALID)
    try:
        lengths = [len(name.encode()) for name in names]
    except UnicodeEncodeError as error:
        raise DiskRefusedError(Reason.NAME_INVALID) from error
    if max(lengths) > _MAX_NAME or sum(lengths) + len(lengths) > _MAX_PATH:
        raise DiskRefusedError(Reason.NAME_TOO_LONG)
    if any(is_secret(name) for name in names):
        raise DiskRefusedError(Reason.RESERVED_NAME)
    return names
