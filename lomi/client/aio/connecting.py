"""From nothing to a lab: find the broker, connect, wait for the pairing decision, bind to a workspace."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from lomi.client.aio.lab import Lab
from lomi.client.aio.session import Session
from lomi.client.client import Client, connect
from lomi.client.errors import HostUnqualifiedError, PairingRequiredError, TargetNotFoundError
from lomi.client.find import Found, own_broker
from lomi.contract.codes import MESSAGES, ErrorCode
from lomi.contract.session import Connected, ConnectInput, Status, StatusInput
from lomi.contract.workspace import WorkspaceListInput, Workspaces, WorkspaceView

LABEL_VARIABLE = "LOMI_CLIENT_LABEL"
TOKEN_VARIABLE = "LOMI_CLIENT_TOKEN"  # noqa: S105  # the name of it
PAIRING_S = 120.0
"""How long a person or a policy may take to decide on the pairing."""


@asynccontextmanager
async def connect_async(
    *,
    label: str | None = None,
    token: str | None = None,
    discovery: Found | None = None,
    home: str | Path | None = None,
    workspace: str | None = None,
    pairing_timeout_s: float = PAIRING_S,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Lab]:
    """Connect as a paired client like any other; the session and what it opened end with the context.

    Args:
        label: our name as the owner sees it; default `LOMI_CLIENT_LABEL`, else `lomi python`.
        token: the secret that the policy knows by its hash; default `LOMI_CLIENT_TOKEN`. It is never sent.
        discovery: discovery file and key; default those of the home.
        home: state folder of the broker; default `LOMI_HOME`.
        workspace: id or name of the workspace; default the first granted one.
        pairing_timeout_s: how long to wait for the decision on this pairing.
        environment: where the variables are read; default the process's own.

    Raises:
        LinkError: no broker, or one that is not to be trusted or does not accept us.
        PairingRequiredError: nobody approved the pairing in time.
        TargetNotFoundError: no workspace is granted, or not this one.
    """
    given = dict(os.environ if environment is None else environment)
    if home is not None:
        given["LOMI_HOME"] = str(home)
    found = await asyncio.to_thread(own_broker, given) if discovery is None else discovery
    label = label or given.get(LABEL_VARIABLE) or "lomi python"
    token = token or given.get(TOKEN_VARIABLE) or None
    async with connect(found.discovery_file, found.discovery_key, label=label, token=token) as client:
        await _paired(client, pairing_timeout_s)
        lab = await _bound(client, workspace)
        try:
            yield lab
        finally:
            await lab.close()


async def _paired(client: Client, timeout_s: float) -> None:
    """Wait for the decision.

    Raises:
        PairingRequiredError: there will be none, or it did not come in time.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + timeout_s
    wait_ms = 0
    while True:
        status = (await client.call("lomi_status", StatusInput(wait_ms=wait_ms))).read(Status)
        if status.connection == "connected":
            return
        if status.connection == "host_unqualified":
            code = ErrorCode.HOST_UNQUALIFIED
            raise HostUnqualifiedError(code, MESSAGES[code])
        if wait_ms == 0 and status.connection == "pairing_required":
            await _may_still_be_decided(client)
        left = end - clock()
        if status.connection != "pairing_required" or left <= 0:
            code = ErrorCode.PAIRING_REQUIRED
            said = f"{MESSAGES[code]} Pairing request {status.pairing_request_id}."
            hint = "Ask the person at the broker to approve it, or give the label and token that its policy names."
            raise PairingRequiredError(code, said, reason="waiting_for_approval", hint=hint)
        wait_ms = max(1, min(55_000, int(left * 1000)))


async def _may_still_be_decided(client: Client) -> None:
    """Ask what only a paired client may: where nobody is there to decide, the refusal says so at once.

    Raises:
        PairingRequiredError: waiting is of no use.
    """
    try:
        await client.call("lomi_workspace_list", WorkspaceListInput(limit=1))
    except PairingRequiredError as error:
        if error.reason != "waiting_for_approval":
            raise


async def _bound(client: Client, wanted: str | None) -> Lab:
    listed = (await client.call("lomi_workspace_list", WorkspaceListInput(limit=500))).read(Workspaces)
    workspace = _chosen(listed.items, wanted)
    connected = (await client.call("lomi_connect", ConnectInput(workspace_id=workspace.id))).read(Connected)
    return Lab(Session(client, workspace, connected, listed.domain_revision))


def _chosen(items: tuple[WorkspaceView, ...], wanted: str | None) -> WorkspaceView:
    for item in items:
        if wanted is None or wanted in (item.id, item.name):
            return item
    there = ", ".join(f"{item.id} ({item.name})" for item in items) or "none"
    code = ErrorCode.TARGET_NOT_FOUND
    raise TargetNotFoundError(code, f"No workspace {wanted or ''} is granted; granted are: {there}.")
