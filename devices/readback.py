"""What became of a typed text, judged by the fields as they were before and after it.

A hierarchy tells no caret, no selection and no password, so a text counts as held only where nothing else explains
what is there: a field that held the words all along, or that took a part of them, must not pass for one that took them.
"""

import itertools
from typing import Literal

from devices.faults import TargetRefused
from devices.hierarchy import identity
from devices.hierarchy.snapshots import Snapshot, locate
from devices.hierarchy.tree import Node

Verdict = Literal["held", "partly", "other", "unclear", "unreadable"]
"""`held`: the field took exactly the words. `partly`: it took a part of them or altered them, or another field took
them. `other`: it holds something else, and nobody can say what became of the words. `unclear`: what is there can be
read and proves neither. `unreadable`: there is nothing that could be read."""
_MOST_PLACES = 64
"""How many places of a repetitive text are tried for a part of the words."""


def can_be_read(before: Snapshot | None) -> bool:
    """Whether a look after the typing can tell anything: the fields were seen before, and no password has the focus."""
    if before is None:
        return False
    field = before.tree.focused_editable
    return field is None or not field.password


def judged(before: Snapshot, after: Snapshot, words: str) -> Verdict:
    """What the fields of two looks tell of the words that were typed between them."""
    pair = _typed_into(before, after)
    if pair is None:
        return "unreadable"
    old, new = pair
    if old.password or new.password or any(_is_masked(char) for char in words):
        return "unreadable"
    verdict = _compared(old, new, words)
    if old.value_unclear and verdict != "unclear":
        # What it held may have been its hint, which the first character drives out.
        verdict = verdict if verdict == "held" else _explained("", new.value, words)
    if verdict in {"unclear", "other"} and _landed_elsewhere(before, after, old, words):
        return "partly"
    return verdict


def _compared(old: Node, new: Node, words: str) -> Verdict:
    if new.hint_told and new.text == new.hint and new.text in (old.value + words, words):
        return "unclear"  # the same words as the hint: a dump does not tell them apart
    if old.value == new.value:
        return "unclear"  # they were there before, or nothing came
    return _explained(old.value, new.value, words)


def _explained(was: str, now: str, words: str) -> Verdict:
    if any(now[at : at + len(now) - len(was)] == words for at in _places(was, now)):
        return "held"
    cut = _is_cut(was, now, words)
    if _replaced(was, now, words):
        return "unclear" if cut or len(_places(was, now)) > _MOST_PLACES else "held"
    return "partly" if cut or _is_altered(was, now, words) else "other"


def _typed_into(before: Snapshot, after: Snapshot) -> tuple[Node, Node] | None:
    """The field that had the focus, before and after; None where none had it, or it cannot be told apart any more."""
    field = before.tree.focused_editable
    if field is not None:
        try:
            found = locate(before, before.refs[field.index], after)
        except TargetRefused:
            return None
        return field, after.tree.nodes[found]
    late = after.tree.focused_editable
    if late is None:
        return None
    earlier = identity.find(after.sight, late.index, before.sight)
    return None if earlier is None else (before.tree.nodes[earlier], late)


def _landed_elsewhere(before: Snapshot, after: Snapshot, target: Node, words: str) -> bool:
    """Whether another field took the words or a part of them meanwhile."""
    for field in before.tree.nodes:
        if not field.editable or field.password or field.index == target.index:
            continue
        found = identity.find(before.sight, field.index, after.sight)
        if found is None or after.tree.nodes[found].value == field.value:
            continue
        if _compared(field, after.tree.nodes[found], words) in {"held", "partly"}:
            return True
    return False


def _places(was: str, now: str) -> range:
    """Where something may have been put into `was` so that `now` came of it."""
    if len(now) <= len(was):
        return range(0)
    front = _common(was, now)
    back = _common(was[::-1], now[::-1])
    return range(len(was) - back, front + 1)


def _common(one: str, other: str) -> int:
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _replaced(was: str, now: str, words: str) -> bool:
    """Whether the words stand in place of a selection: what is left around them was around it before."""
    rest = len(now) - len(words)
    if not 0 <= rest < len(was):
        return False
    front = _common(was, now)
    back = _common(was[::-1], now[::-1])
    return any(
        rest - at <= back and now[at : at + len(words)] == words
        for at in range(max(0, rest - back), min(front, rest) + 1)
    )


def _is_cut(was: str, now: str, words: str) -> bool:
    """Whether a part of the words was put into what was there."""
    added = (now[at : at + len(now) - len(was)] for at in _places(was, now)[:_MOST_PLACES])
    return any(one != words and _is_part(one, words) for one in added)


def _is_part(part: str, words: str) -> bool:
    """Whether the characters of `part` occur in `words` in that order."""
    left = iter(words)
    return all(char in left for char in part)


def _is_altered(was: str, now: str, words: str) -> bool:
    """Whether the words are there but for case, spaces and punctuation, as fields that format their content do."""
    bare_was, bare_now, bare_words = _bare(was), _bare(now), _bare(words)
    if not bare_words or bare_was == bare_words:
        return False
    return bare_now == bare_words or any(
        bare_now == bare_was[:at] + bare_words + bare_was[at:] for at in _places(bare_was, bare_now)
    )


def _bare(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _is_masked(char: str) -> bool:
    """Whether a dump writes something else for a character, as XML has none for it."""
    return (char < " " and char not in "\t\n\r") or char in "\ufffe\uffff"
