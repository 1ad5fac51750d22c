"""Licences: shown whole, agreed to per digest by a person, remembered where SDK tools look."""

from pathlib import Path

from devices.sdk.catalogue import Licence
from devices.sdk.faults import SetupFailed


def is_accepted(sdk: Path, licence: Licence) -> bool:
    """Whether this exact text was agreed to in this SDK; blocking."""
    try:
        return licence.digest in (sdk / "licenses" / licence.id).read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return False


def remember(sdk: Path, licence: Licence) -> None:
    """Write the digest as SDK tools do: one per line after a blank line; blocking. Only after a person's yes."""
    folder = sdk / "licenses"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / licence.id
    known = path.read_text(encoding="ascii").split() if path.exists() else []
    if licence.digest not in known:
        path.write_text("\n" + "\n".join([*known, licence.digest]), encoding="ascii")


def check_consent(licences: tuple[Licence, ...], agreed: frozenset[str]) -> None:
    """Every digest must have been agreed to.

    Raises:
        SetupFailed: reason licence_missing, with the first licence's id.
    """
    for licence in licences:
        if licence.digest not in agreed:
            raise SetupFailed("licence_missing", f"no consent for {licence.id}", fields={"licence": licence.id})
