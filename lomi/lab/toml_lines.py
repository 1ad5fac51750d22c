"""Where a field of a TOML file stands: a light scan that gives a fault its line, never its meaning."""

import re

_TABLE = re.compile(r"^\s*\[(\[)?\s*([A-Za-z0-9_.-]+)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_-]+)\s*=")
_INDEX = re.compile(r"\[(\d+|\.\.\.)\]")


def line_of(text: str, path: str) -> int | None:
    """The line, counted from 1, of a field such as `pool.phones` or `quarantine[1].test`.

    A field that is not there has the line of its table; None when that is not there either.
    """
    lines = _lines(text)
    wanted = path
    while wanted:
        if wanted in lines:
            return lines[wanted]
        wanted = wanted[: wanted.rindex("[")] if wanted.endswith("]") else wanted.rpartition(".")[0]
    return None


def _lines(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if opened := _TABLE.match(line):
            table = opened.group(2)
            if opened.group(1):
                index = counts.get(table, 0)
                counts[table] = index + 1
                table = f"{table}[{index}]"
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault(f"{table}.{key.group(1)}" if table else key.group(1), number)
    return found


def clean_path(path: str) -> str:
    """A path as msgspec writes it (`$.pool.phones`, `$[...]`) without its root and open indexes."""
    return (
        _INDEX.sub(lambda found: "" if found.group(1) == "..." else found.group(), path).removeprefix("$").lstrip(".")
    )
