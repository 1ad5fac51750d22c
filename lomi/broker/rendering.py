"""The one response builder: envelopes as JSON, and the short text that a model reads. Handlers never format output."""

import json
from typing import Any

import msgspec

from lomi.broker.operations import Operation
from lomi.contract.codes import API_VERSION, MESSAGES, Details, ErrorCode
from lomi.contract.model import Data, Receipt
from lomi.contract.tools import REASONS
from lomi.core.backend import ToolReply
from lomi.core.port import Reply
from lomi.core.refusal import Refusal
from lomi.store import StoredReceipt


class OkEnvelope(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A reply that carries data."""

    control_api_version: str = API_VERSION
    status: str = "ok"
    data: Any


class ErrorEnvelope(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A reply that says no: code and fixed message, and which documented case it is."""

    control_api_version: str
    status: str
    code: ErrorCode
    message: str
    reason: str | None = None
    field: str | None = None
    hint: str | None = None
    details: Details | None = None


def _one_line(value: Any) -> str:
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)


def text_of_data(data: Data) -> str:
    """A short rendering of data that brought none of its own: one `name: value` line each, nulls left out."""
    plain = msgspec.to_builtins(data)
    kind = plain.pop("kind", "")
    lines = [kind] if kind else []
    for name, value in plain.items():
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
            lines.append(f"{name}:")
            lines.extend(
                "- " + ", ".join(f"{k} {_one_line(v)}" for k, v in row.items() if v is not None) for row in value
            )
        elif value is not None:
            lines.append(f"{name}: {_one_line(value)}")
    return "\n".join(lines)


def ok(reply: Reply) -> ToolReply:
    """A read's answer."""
    return ToolReply(
        structured=msgspec.json.encode(OkEnvelope(data=reply.data)),
        text=reply.text if reply.text is not None else text_of_data(reply.data),
        pictures=reply.pictures,
        is_error=False,
    )


def refusal(said: Refusal) -> ToolReply:
    """An envelope error."""
    reason = REASONS.get(said.reason) if said.reason else None
    envelope = ErrorEnvelope(
        control_api_version=API_VERSION,
        status="error",
        code=said.code,
        message=MESSAGES[said.code],
        reason=said.reason,
        field=said.field,
        hint=reason.hint if reason else None,
        details=said.details,
    )
    parts = [f"{said.code}: {MESSAGES[said.code]}"]
    if said.reason:
        parts.append(f"reason {said.reason}" + (f" at {said.field}" if said.field else ""))
    elif said.field:
        parts.append(f"at {said.field}")
    if said.details is not None:
        parts.append(_one_line(msgspec.to_builtins(said.details)))
    if reason is not None:
        parts.append(reason.hint)
    return ToolReply(structured=msgspec.json.encode(envelope), text="\n".join(parts), pictures=(), is_error=True)


def receipt(standing: Receipt, *, tool: str) -> ToolReply:
    """A receipt as it stands, with its observation."""
    lines = [f"{tool} {standing.state}, effect {standing.effect_state} (operation {standing.operation_id})"]
    if standing.result is not None:
        result = msgspec.json.decode(standing.result)
        kind = result.pop("kind", "result")
        lines.append(kind + ": " + ", ".join(f"{k} {_one_line(v)}" for k, v in result.items() if v is not None))
    if isinstance(standing.observation, msgspec.Struct):
        seen = standing.observation
        lines.append("settled" if seen.settled else "not settled yet: what follows may still change")
        lines.extend(seen.lines)
        if seen.domain_revision is not None:
            lines.append(f"domainRevision {seen.domain_revision}")
        if seen.truncated:
            lines.append("(more was seen; take a snapshot)")
    return ToolReply(
        structured=msgspec.json.encode(OkEnvelope(data=standing)), text="\n".join(lines), pictures=(), is_error=False
    )


def stored_receipt(found: StoredReceipt) -> Receipt:
    """A receipt that only the store remembers."""
    return Receipt(
        operation_id=found.operation_id,
        state=found.state,
        effect_state=found.effect,
        workspace_id=found.workspace_id,
        result=msgspec.Raw(found.result) if found.result is not None else None,
    )


def hydrated(operation: Operation, lease_id: str | None) -> Receipt:
    """The receipt with the live lease of its session filled in; leases are never stored."""
    standing = operation.receipt()
    if lease_id is None or operation.result is None:
        return standing
    result = msgspec.json.decode(operation.result)
    if result.get("leaseId", "") is not None:
        return standing
    return msgspec.structs.replace(standing, result=msgspec.Raw(msgspec.json.encode({**result, "leaseId": lease_id})))
