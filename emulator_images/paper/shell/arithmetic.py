"""Integer arithmetic of `$(( ))` and `[ a -lt b ]`."""

import operator
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(r"\s*(0[xX][0-9a-fA-F]+|\d+|[A-Za-z_]\w*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%()<>&|^!~])")
_LEVELS: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"||": lambda a, b: int(bool(a) or bool(b))},
    {"&&": lambda a, b: int(bool(a) and bool(b))},
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"==": lambda a, b: int(a == b), "!=": lambda a, b: int(a != b)},
    {
        "<": lambda a, b: int(a < b),
        ">": lambda a, b: int(a > b),
        "<=": lambda a, b: int(a <= b),
        ">=": lambda a, b: int(a >= b),
    },
    {"<<": operator.lshift, ">>": operator.rshift},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: int(a / b) if b else 0, "%": lambda a, b: a - b * int(a / b) if b else 0},
)


def evaluate(expression: str, variables: Mapping[str, str]) -> int:
    """The value of an expression; what cannot be read counts as 0."""
    tokens = _TOKEN.findall(expression)
    value, rest = _level(tokens, 0, variables)
    return value if not rest else 0


def _level(tokens: list[str], depth: int, variables: Mapping[str, str]) -> tuple[int, list[str]]:
    if depth == len(_LEVELS):
        return _atom(tokens, variables)
    value, rest = _level(tokens, depth + 1, variables)
    while rest and rest[0] in _LEVELS[depth]:
        apply = _LEVELS[depth][rest[0]]
        other, rest = _level(rest[1:], depth + 1, variables)
        value = apply(value, other)
    return value, rest


def _atom(tokens: list[str], variables: Mapping[str, str]) -> tuple[int, list[str]]:
    if not tokens:
        return 0, []
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        value, rest = _level(rest, 0, variables)
        return value, rest[1:]
    if first in "-+!~":
        value, rest = _atom(rest, variables)
        return {"-": -value, "+": value, "!": int(not value), "~": ~value}[first], rest
    if first[0].isdigit():
        return int(first, 0) if first.lower().startswith("0x") else int(first), rest
    text = variables.get(first, "0").strip()
    return (int(text) if re.fullmatch(r"-?\d+", text) else 0), rest
