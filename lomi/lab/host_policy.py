"""A host's own policy file: made once, then the owner's to edit; no plan changes it."""

import hashlib
import json
import secrets
from pathlib import Path
from typing import NamedTuple

from lomi.disk.private import read_private, write_private
from lomi.disk.refusal import DiskRefusedError, Reason

LABEL = "lab"
_SCOPES = (
    *("workspace.read", "panel.create", "panel.focus", "panel.close", "files.read"),
    *("artifact.import", "artifact.import_file", "android.*", "android.manage"),
)
_DECIDED = ("lomi_android_install_apk", "lomi_android_device_manage")
_MOST_TOKEN = 256


class TokenMissingError(Exception):
    """Raised where a policy is there without the token that it names by its hash; the policy is left as it is."""


class Access(NamedTuple):
    """The policy file of a host's broker, and what its workers prove themselves with."""

    policy: Path
    label: str
    token: str


def own_access(folder: Path, image: str, phones: int) -> Access:
    """The policy and token in a folder; made there if they aren't yet. An existing policy stays as it is; blocks.

    Raises:
        DiskRefusedError: one of them is not this user's alone.
        TokenMissingError: there is a policy, and no token.
    """
    policy, kept = folder / "policy.toml", folder / "lab.token"
    try:
        return Access(policy, LABEL, read_private(kept, _MOST_TOKEN).decode())
    except DiskRefusedError as absent:
        if absent.reason is not Reason.NOT_FOUND:
            raise
    token = secrets.token_urlsafe(32)
    try:
        write_private(policy, _text(token, image, phones).encode(), replace=False)
    except DiskRefusedError as taken:
        if taken.reason is not Reason.EXISTS:
            raise
        raise TokenMissingError(f"{policy} is there, and {kept.name}, which proves this host to it, is not") from taken
    write_private(kept, token.encode())
    return Access(policy, LABEL, token)


def _text(token: str, image: str, phones: int) -> str:
    devices = "".join(
        f'[[device]]\nname = "phone-{number}"\nimage = {json.dumps(image)}\n\n' for number in range(1, phones + 1)
    )
    return (
        "# What the lab may do on this host. Yours to edit: plans and other hosts can't change it.\n"
        "# To let tests open pages, add browser.* to the scopes and name the origins.\n"
        f"version = 1\n\n{devices}[[client]]\nlabel = {json.dumps(LABEL)}\n"
        f'token_sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\n'
        f'scopes = {json.dumps(list(_SCOPES))}\nworkspaces = ["*"]\ndevices = ["*"]\npackages = ["*"]\n'
        f"decide = {json.dumps(list(_DECIDED))}\n"
    )
