"""Arguments of a step made whole: kept names, draws from the seed, and what every call of a session repeats."""

import random
from collections.abc import Mapping

import msgspec

from lomi.contract.tools import BY_NAME

MISSING = "none"
"""What stands for a name that was not kept yet, in a walk."""

REPEATED = ("workspaceId", "retryEpoch", "requestKey", "waitMs", "expectedRevision")
TARGET = {"panelId": "panel", "deviceId": "device", "generation": "generation", "leaseId": "lease"}
"""Arguments that are taken from the name beside them, where it was kept and the step gives none."""


class UnknownNameError(Exception):
    """Raised when a step uses a name that no step before it kept, or a path that the answer has not."""


def filled(value: object, kept: Mapping[str, object], dice: random.Random, *, lenient: bool) -> object:
    """A value with its names and draws replaced.

    Raises:
        UnknownNameError: a name was not kept.
    """
    if isinstance(value, dict):
        if value.keys() == {"pick"}:
            return dice.choice(value["pick"])
        if value.keys() == {"between"}:
            return dice.randint(*value["between"])
        return {name: filled(item, kept, dice, lenient=lenient) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, kept, dice, lenient=lenient) for item in value]
    if isinstance(value, str) and value.startswith("$"):
        if value[1:] not in kept:
            if lenient:
                return MISSING
            raise UnknownNameError(f"no step kept {value[1:]!r}")
        return kept[value[1:]]
    return value


def repeated(tool: str) -> set[str]:
    """The arguments of a tool that every call of a session repeats; none for an unknown tool."""
    found = BY_NAME.get(tool)
    if found is None:
        return set()
    names = {field.encode_name for field in msgspec.structs.fields(found.input)}
    return names & {*TARGET, "inputSequence", *(REPEATED if found.mutation else ("workspaceId",))}


def at(answer: object, path: str) -> object:
    """What a dotted path leads to.

    Raises:
        UnknownNameError: nothing.
    """
    found = answer
    for word in path.split("."):
        if isinstance(found, list) and word.isdigit() and int(word) < len(found):
            found = found[int(word)]
        elif isinstance(found, dict) and word in found:
            found = found[word]
        else:
            raise UnknownNameError(f"the answer has no {path!r}")
    return found


def outcome(envelope: Mapping[str, object]) -> str:
    """An answer in short: `lost`, `CODE (reason)`, `succeeded/complete`, `failed/none CODE (reason)`, or `answered`."""
    data = envelope.get("data")
    if envelope.get("status") == "error":
        return _coded(envelope)
    if not isinstance(data, dict):
        return str(envelope.get("status", "nothing"))
    if data.get("kind") != "operation":
        return "answered"
    result = data.get("result")
    said = _coded(result) if isinstance(result, dict) and result.get("kind") == "failure" else ""
    return f"{data['state']}/{data['effectState']} {said}".rstrip()


def _coded(said: Mapping[str, object]) -> str:
    return str(said["code"]) + (f" ({said['reason']})" if said.get("reason") else "")
