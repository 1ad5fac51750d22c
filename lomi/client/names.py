"""How people name what they see, and how a name becomes one place on a screen: exactly one, or a precise error."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from lomi.contract.android import AndroidNode, AndroidSnapshot
from lomi.contract.browser import BrowserSnapshot, PageElement

_MOST_TOLD = 20
ROLES = {
    "button": ("Button", "ImageButton"),
    "textbox": ("EditText", "AutoCompleteTextView"),
    "checkbox": ("CheckBox",),
    "radio": ("RadioButton",),
    "switch": ("Switch", "ToggleButton", "SwitchCompat"),
    "image": ("ImageView",),
    "text": ("TextView",),
}
"""Roles of a phone's nodes: the last part of their class."""


@dataclass(frozen=True, slots=True)
class Text:
    """What shows exactly this text, or contains it when not `exact`. A plain string means the same, exact."""

    text: str
    exact: bool = True

    def __str__(self) -> str:
        return repr(self.text) if self.exact else f"something with {self.text!r}"


@dataclass(frozen=True, slots=True)
class Role:
    """What has this role (`button`, `textbox`, `checkbox`, `link` ...) and, when given, exactly this name."""

    role: str
    name: str | None = None

    def __str__(self) -> str:
        return self.role if self.name is None else f"{self.role} {self.name!r}"


@dataclass(frozen=True, slots=True)
class ResourceId:
    """A node of a phone by its resource id: whole, or the part after `:id/`."""

    name: str

    def __str__(self) -> str:
        return f"the id {self.name!r}"


@dataclass(frozen=True, slots=True)
class Ref:
    """A ref of one exact snapshot, as an outline or an element shows it."""

    snapshot_id: str
    ref: str

    def __str__(self) -> str:
        return f"ref {self.ref} of {self.snapshot_id}"


@dataclass(frozen=True, slots=True)
class Point:
    """A place on a phone in unrotated hardware pixels."""

    x: int
    y: int

    def __str__(self) -> str:
        return f"({self.x}, {self.y})"


Name = str | Text | Role | ResourceId
"""What is looked for in a snapshot."""
Target = Name | Ref
"""What can be acted on, on a page or a phone."""
PhoneTarget = Target | Point
"""What can be touched on a phone."""


class UnresolvedNameError(LookupError):
    """Base of the ways in which a name does not lead where it should.

    Attributes:
        wanted: what was asked for.
        candidates: what is there instead, or what it could all mean; at most 20 lines.
    """

    def __init__(self, wanted: str, place: str, said: str, candidates: Sequence[str], more: int) -> None:
        listed = "".join(f"\n  {line}" for line in candidates)
        rest = f"\n  and {more} more" if more else ""
        super().__init__(f"{place} {said}{listed}{rest}")
        self.wanted = wanted
        self.candidates = tuple(candidates)


class NameAbsentError(UnresolvedNameError):
    """Raised when nothing in sight has that name."""


class NameAmbiguousError(UnresolvedNameError):
    """Raised when several things have it."""


class StillThereError(UnresolvedNameError):
    """Raised when something that should go away has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One thing of a snapshot as names see it.

    Attributes:
        ref: how to act on it.
        role: its role.
        texts: what it shows or is called.
        resource: its resource id, empty for pages.
        parent: place in the list of what contains it, None where that is not known.
        acts: whether it takes clicks or text itself.
        types: whether it takes text, or is a list to choose from.
        line: one line for people.
    """

    ref: str
    role: str
    texts: tuple[str, ...]
    resource: str
    parent: int | None
    acts: bool
    types: bool
    line: str


ItemT = TypeVar("ItemT", AndroidNode, PageElement)


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Generic[ItemT]):
    """A snapshot made ready for names. `place` is what errors call it; `items` are the contract's own values."""

    place: str
    snapshot_id: str
    seen: tuple[Seen, ...]
    items: tuple[ItemT, ...]
    truncated: bool

    def one(self, wanted: Name, *, typing: bool = False) -> tuple[Ref, ItemT]:
        """The one thing that a name means; before mere text that shows the same, what takes input (text, if `typing`).

        Raises:
            NameAbsentError: nothing has it.
            NameAmbiguousError: several have it.
        """
        found = self.matches(wanted)
        found = [place for place in found if _takes(self.seen[place], typing=typing)] or found
        found = _innermost(self.seen, found)
        if len(found) == 1:
            return Ref(self.snapshot_id, self.seen[found[0]].ref), self.items[found[0]]
        if found:
            lines, more = _told(self.seen[place] for place in found)
            said = f"shows {len(found)} things that {_spell(wanted)} could mean; say which by role, id or ref:"
            raise NameAmbiguousError(_spell(wanted), self.place, said, lines, more)
        lines, more = _told(one for one in self.seen if one.acts or any(one.texts))
        said = f"does not show {_spell(wanted)}" + (" (the snapshot was cut)" if self.truncated else "")
        raise NameAbsentError(_spell(wanted), self.place, said + ("; it shows:" if lines else ""), lines, more)

    def none(self, wanted: Name) -> None:
        """Accept that nothing has a name.

        Raises:
            StillThereError: something has it.
        """
        if found := self.matches(wanted):
            lines, more = _told(self.seen[place] for place in found)
            raise StillThereError(_spell(wanted), self.place, f"still shows {_spell(wanted)}:", lines, more)

    def matches(self, wanted: Name) -> list[int]:
        """Places of all that a name means. A string: exact text, else a resource id, else either in any case."""
        if not isinstance(wanted, str):
            return [place for place, one in enumerate(self.seen) if _means(one, wanted)]
        tiers: tuple[Callable[[Seen], bool], ...] = (
            lambda one: wanted in one.texts,
            lambda one: _has_id(one, wanted),
            lambda one: _folded(wanted) in (*map(_folded, one.texts), _spoken(one.resource)),
        )
        for fits in tiers:
            found = [place for place, one in enumerate(self.seen) if fits(one)]
            if found:
                return found
        return []


def _spell(wanted: Name) -> str:
    return repr(wanted) if isinstance(wanted, str) else str(wanted)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _spoken(resource: str) -> str:
    """A resource id as the outline of a screen says it: `app:id/first_name` is `first name`."""
    return _folded(resource.rpartition("/")[2].replace("_", " "))


def _has_id(one: Seen, name: str) -> bool:
    return bool(one.resource) and name in (one.resource, one.resource.rpartition("/")[2])


def _takes(one: Seen, *, typing: bool) -> bool:
    return one.types if typing else one.acts


def _means(one: Seen, wanted: Text | Role | ResourceId) -> bool:
    match wanted:
        case Text(text=text, exact=True):
            return text in one.texts
        case Text(text=text):
            return any(_folded(text) in _folded(shown) for shown in one.texts)
        case Role(role=role, name=name):
            return one.role == role and (name is None or name in one.texts)
        case ResourceId(name=name):
            return _has_id(one, name)


def _innermost(seen: Sequence[Seen], found: list[int]) -> list[int]:
    """Of things that lie inside one another, the one that takes input, else the innermost; others are kept."""
    chosen = set(found)
    for place in found:
        above = seen[place].parent
        while above is not None:
            if above in chosen and place in chosen:
                chosen.discard(place if seen[above].acts and not seen[place].acts else above)
            above = seen[above].parent
    return sorted(chosen)


def _told(shown: Iterable[Seen]) -> tuple[list[str], int]:
    lines = [one.line for one in shown]
    return lines[:_MOST_TOLD], max(0, len(lines) - _MOST_TOLD)


def phone_view(name: str, snapshot: AndroidSnapshot) -> View[AndroidNode]:
    """A phone's hierarchy for names."""
    places = {node.id: place for place, node in enumerate(snapshot.nodes)}
    seen = tuple(_phone_seen(node, places) for node in snapshot.nodes)
    return View(
        place=f"phone {name}",
        snapshot_id=snapshot.snapshot_id,
        seen=seen,
        items=snapshot.nodes,
        truncated=snapshot.truncated,
    )


def _phone_seen(node: AndroidNode, places: dict[int, int]) -> Seen:
    short = node.class_.rpartition(".")[2]
    role = next((role for role, classes in ROLES.items() if short in classes), short)
    texts = tuple(text for text in (node.text, node.description) if text)
    resource = f" id={node.resource_id.rpartition('/')[2]!r}" if node.resource_id else ""
    return Seen(
        ref=str(node.id),
        role=role,
        texts=texts,
        resource=node.resource_id,
        parent=places.get(node.parent) if node.parent is not None else None,
        acts=node.clickable or role == "textbox",
        types=role == "textbox",
        line=f"{role}{''.join(f' {text!r}' for text in texts)}{resource}",
    )


def page_view(url: str, snapshot: BrowserSnapshot) -> View[PageElement]:
    """A page's elements for names."""
    seen = tuple(
        Seen(
            ref=element.element_ref,
            role=element.role,
            texts=(element.name,) if element.name else (),
            resource="",
            parent=None,
            acts=element.role not in ("text", "heading", "label"),
            types=element.editable or element.role == "combobox",
            line=f"{element.role} {element.name!r}",
        )
        for element in snapshot.elements
    )
    return View(
        place=f"the page {url}",
        snapshot_id=snapshot.snapshot_id,
        seen=seen,
        items=snapshot.elements,
        truncated=snapshot.truncated,
    )
