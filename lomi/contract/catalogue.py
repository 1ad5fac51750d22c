"""The catalogue: every definition and reason as data, in one generated file that docs, lists and tests read.

`python -m lomi.contract.catalogue --write` makes the file anew, `--check` says whether it is fresh.
"""

import sys
from collections.abc import Sequence

import msgspec

from lomi.contract.codes import Reason
from lomi.contract.definition import Definition
from lomi.contract.listing import LOCATION, Annotations, Entry, ReasonEntry
from lomi.contract.model import Receipt, Result
from lomi.contract.schema import input_schema, output_schema
from lomi.contract.tools import ALL, BY_NAME, EVERY_RESULT, FAMILY_REASONS, REASONS

__all__ = ["ALL", "BY_NAME", "EVERY_RESULT", "REASONS", "build", "main"]

_USAGE = "usage: python -m lomi.contract.catalogue --write | --check"


def _kinds(definition: Definition) -> tuple[str, ...]:
    """The kinds of data that a tool answers with; for an operation, those of its results."""
    if Receipt in definition.results:
        return ("operation",)
    own = tuple(str(kind.__struct_config__.tag) for kind in definition.results)
    return (*own, "failure") if issubclass(definition.results[0], Result) else own


def _entry(definition: Definition) -> Entry:
    wire = dict(zip(definition.fields, definition.input.__struct_encode_fields__, strict=True))
    return Entry(
        name=definition.name,
        family=definition.family,
        purpose=definition.purpose,
        scopes=definition.scopes,
        more_scopes=definition.more_scopes_text,
        lease=definition.needs_lease,
        retry=definition.retry_identity,
        deadline_seconds=definition.deadline_s,
        decision_seconds=definition.decision_s,
        annotations=Annotations(
            read_only_hint=not definition.mutation,
            destructive_hint=definition.destructive,
            idempotent_hint=True,
            open_world_hint=definition.open_world,
        ),
        kinds=_kinds(definition),
        reply_only=tuple(wire[name] for name in definition.fields if name in definition.reply_only),
        input_schema=msgspec.Raw(input_schema(definition)),
        output_schema=msgspec.Raw(output_schema(definition)),
        notes=definition.notes,
    )


def _reason(family: str, reason: Reason) -> ReasonEntry:
    return ReasonEntry(name=reason.name, family=family, code=reason.code.value, hint=reason.hint)


def build() -> bytes:
    """The file's content: JSON with one tool and one reason a line, so that a change reads as one."""
    tools = [msgspec.json.encode(_entry(definition)) for definition in ALL]
    reasons = [msgspec.json.encode(_reason(family, r)) for family, table in FAMILY_REASONS.items() for r in table]
    return b'{"tools":[\n%s\n],"reasons":[\n%s\n]}\n' % (b",\n".join(tools), b",\n".join(reasons))


def main(arguments: Sequence[str]) -> int:
    """Write or check the file; 0 when it is fresh, 1 when it is not, 2 for wrong arguments."""
    content = build()
    match list(arguments):
        case ["--write"]:
            LOCATION.write_bytes(content)
            return 0
        case ["--check"]:
            if LOCATION.is_file() and LOCATION.read_bytes() == content:
                return 0
            sys.stderr.write("catalogue.json is not fresh: run python -m lomi.contract.catalogue --write\n")
            return 1
        case _:
            sys.stderr.write(_USAGE + "\n")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
