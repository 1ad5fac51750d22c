"""`docs/tools.md` from the generated catalogue.

`python -m lomi.docs --write docs/tools.md` makes the page anew, `--check docs/tools.md` says whether it is fresh.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from lomi.contract.listing import Entry, ReasonEntry, catalogue

_USAGE = "usage: python -m lomi.docs --write FILE | --check FILE"
_RETRY = {
    "none": "asking again is harmless",
    "key": "`requestKey` in its `retryEpoch`",
    "sequence_stored": "`inputSequence` of its lease, stored",
    "sequence_in_memory": "`inputSequence` of its lease, in memory; no receipt",
}
_HEAD = """\
# Tools

Generated from `lomi/contract/catalogue.json` by `python -m lomi.docs --write docs/tools.md`.
Don't edit; a test compares.

There are {count} tools. `lomi status` names those without an adapter in this build: they are listed, and answer
`UNSUPPORTED_CAPABILITY (adapter_absent)`. What each one answers in each bad case, measured, is in
[the guarantees](guarantees.md); how to work with them is in [agents](agents.md).

How to read an entry:

- **Scopes** are what the grant must hold. One behind a colon is needed only in the case before the colon.
- **Lease** means that the call needs a `leaseId` that this session holds.
- **Retry** says how a repeated request is recognised. Where it is a key, the answer is a receipt.
- A field in **bold** is required. One marked *reply only* shapes the answer and is no part of the request's identity.
- Every call may fail with an envelope error whose `code` is one of 25; `reason` says which case it was.

"""


def page() -> str:
    """The whole page."""
    known = catalogue()
    families = list(dict.fromkeys(tool.family for tool in known.tools))
    lines = [_HEAD.format(count=len(known.tools))]
    for family in families:
        lines += [f"## {family}\n"]
        for tool in known.tools:
            if tool.family == family:
                lines += _tool(tool)
        lines += _reasons(f"Reasons of {family}", [reason for reason in known.reasons if reason.family == family])
    lines += ["## Common reasons\n"]
    lines += _reasons(None, [reason for reason in known.reasons if reason.family not in families])
    return "\n".join(lines).rstrip() + "\n"


def section(tool: Entry) -> str:
    """What the page says of one tool, without its heading."""
    return "\n".join(_tool(tool)).partition("\n\n")[2].rstrip()


def _tool(tool: Entry) -> Iterator[str]:
    yield f"### {tool.name}\n\n{tool.purpose}\n"
    scopes = [*(f"`{scope}`" for scope in tool.scopes), *tool.more_scopes]
    yield f"- Scopes: {'; '.join(scopes) or 'none beyond pairing'}"
    if tool.lease:
        yield "- Lease: needed"
    yield f"- Retry: {_RETRY[tool.retry]}"
    decision = f"; a person's decision may take {tool.decision_seconds:g} s" if tool.decision_seconds else ""
    yield f"- Time: {tool.deadline_seconds:g} s{decision}"
    yield f"- Answers with: {', '.join(f'`{kind}`' for kind in tool.kinds)}"
    yield from (f"- {note}" for note in tool.notes)
    yield ""
    rows = list(_fields(msgspec.json.decode(tool.input_schema, type=dict[str, object]), tool.reply_only))
    if rows:
        yield "| Field | Type | |\n|---|---|---|"
        yield from rows
        yield ""


def _object(value: object) -> Mapping[str, object]:
    assert isinstance(value, dict)
    return value


def _list(value: object) -> Sequence[object]:
    assert isinstance(value, list)
    return value


def _fields(schema: Mapping[str, object], reply_only: Iterable[str]) -> Iterator[str]:
    required = _list(schema.get("required", []))
    for name, raw in _object(schema.get("properties", {})).items():
        field = _object(raw)
        shown = f"**`{name}`**" if name in required else f"`{name}`"
        notes = [str(field["description"])] if "description" in field else []
        if "default" in field:
            notes.append(f"default `{msgspec.json.encode(field['default']).decode()}`")
        if name in reply_only:
            notes.append("*reply only*")
        yield f"| {shown} | {_type(field)} | {_cell('; '.join(notes))} |"


def _type(field: Mapping[str, object]) -> str:
    """A type in words, with its bounds; nested objects one level at a time, in braces."""
    if "const" in field:
        return f"`{_plain(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{_plain(value)}`" for value in _list(field["enum"]) if value is not None)
    if "oneOf" in field:
        return "<br>or ".join(_type(_object(form)) for form in _list(field["oneOf"]))
    kinds = field.get("type", "any")
    names = [str(kind) for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    if names == ["object"] and "properties" in field:
        return _braces(field)
    if names == ["array"] and "items" in field:
        return f"list of {_type(_object(field['items']))}{_bounds(field, 'minItems', 'maxItems', ' items')}"
    sizes = _bounds(field, "minLength", "maxLength", " characters") + _bounds(field, "minimum", "maximum", "")
    return " or ".join(names) + sizes


def _braces(schema: Mapping[str, object]) -> str:
    required = _list(schema.get("required", []))
    parts = [
        f"{name}{'' if name in required else '?'}: {_type(_object(raw))}"
        for name, raw in _object(schema["properties"]).items()
    ]
    return "{" + "; ".join(parts) + "}"


def _bounds(field: Mapping[str, object], low: str, high: str, unit: str) -> str:
    least, most = field.get(low), field.get(high)
    if least is None and most is None:
        return ""
    if least is None or most is None:
        return f", at {'most' if least is None else 'least'} {_plain(most if least is None else least)}{unit}"
    return f", {_plain(least)} to {_plain(most)}{unit}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _reasons(title: str | None, reasons: Sequence[ReasonEntry]) -> Iterator[str]:
    if not reasons:
        return
    if title is not None:
        yield f"### {title}\n"
    yield "| Reason | Code | What to do |\n|---|---|---|"
    yield from (f"| `{reason.name}` | `{reason.code}` | {_cell(reason.hint)} |" for reason in reasons)
    yield ""


def main(arguments: Sequence[str]) -> int:
    """Write or check the page; 0 when it is fresh, 1 when it is not, 2 for wrong arguments."""
    match list(arguments):
        case ["--write", file]:
            Path(file).write_text(page(), encoding="utf-8")
            return 0
        case ["--check", file]:
            if Path(file).is_file() and Path(file).read_text(encoding="utf-8") == page():
                return 0
            sys.stderr.write(f"{file} is not fresh: run python -m lomi.docs --write {file}\n")
            return 1
        case _:
            sys.stderr.write(_USAGE + "\n")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
