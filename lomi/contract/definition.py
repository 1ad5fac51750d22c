"""A tool as data. Catalogue, schemas, docs, admission and the guarantee table are all derived from these values."""

from collections.abc import Callable, Collection, Iterable
from functools import cache
from typing import Any, Literal

import msgspec

from lomi.contract.model import Data, Input, KeyedInput, Result
from lomi.contract.scopes import SCOPES

RetryIdentity = Literal["key", "sequence_stored", "sequence_in_memory", "none"]
ResourceKind = Literal["terminal", "browser", "android"]
QueueBy = Literal["layout", "target", "none"]

GENERATION_FIELDS: dict[str, ResourceKind] = {
    "terminal_session_id": "terminal",
    "browser_generation": "browser",
    "generation": "android",
}


OBSERVATION_SCOPES = {"terminal": "terminal.read", "browser": "browser.read", "android": "android.observe"}
"""What a session needs, by family, to be told what was seen after its act: the scope of reading the same."""


def no_more_scopes(_: Any) -> tuple[str, ...]:
    """The scopes that the arguments add: none."""
    return ()


def no_rule(_: Any) -> None:
    """No rule between the fields."""


def given_wait(given: Any) -> int:
    """`waitMs` as it was given or defaulted; 0 for a tool that never waits."""
    return getattr(given, "wait_ms", 0)


@cache
def _retry_identity(kind: type[Input]) -> RetryIdentity:
    if issubclass(kind, KeyedInput):
        return "key"
    if "input_sequence" in kind.__struct_fields__:
        return "sequence_stored" if "retry_epoch" in kind.__struct_fields__ else "sequence_in_memory"
    return "none"


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. What can be read from the input model is derived from it, never stated twice.

    `scopes` are always needed; `more_scopes(input)` those that these arguments add; of `either_scopes(input)` one is
    enough. `rule(input)` raises OutOfBounds where fields don't go together. `wait_of(input)` is how long the call
    waits, in milliseconds. `results` are data kinds of a read or result kinds of an operation (`Failure` is implied).
    `secret_fields` are wire names, at any depth, of typed text that enters the fingerprint as an HMAC; `reply_only`
    fields only shape the reply and stay out of it. `deadline_s` bounds the effect; `decision_s` the wait for a person,
    0 where nobody decides. `unpaired` tools answer before pairing. `notes` are for the documentation.
    """

    name: str
    family: str
    purpose: str
    input: type[Input]
    results: tuple[type[Data] | type[Result], ...]
    scopes: tuple[str, ...] = ()
    mutation: bool = False
    more_scopes: Callable[[Any], tuple[str, ...]] = no_more_scopes
    either_scopes: Callable[[Any], tuple[str, ...]] = no_more_scopes
    more_scopes_text: tuple[str, ...] = ()
    rule: Callable[[Any], None] = no_rule
    wait_of: Callable[[Any], int] = given_wait
    needs_lease: bool = False
    destructive: bool = False
    open_world: bool = False
    own_revision: bool = False
    scope_before_sight: bool = False
    unpaired: bool = False
    queue: QueueBy = "target"
    deadline_s: float = 30.0
    decision_s: float = 0.0
    secret_fields: frozenset[str] = frozenset()
    reply_only: frozenset[str] = frozenset({"wait_ms", "form"})
    notes: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the input's fields in Python, in order."""
        return self.input.__struct_fields__

    @property
    def retry_identity(self) -> RetryIdentity:
        """How a repeated request is recognised."""
        return _retry_identity(self.input)

    @property
    def checks_revision(self) -> bool:
        """Whether `expectedRevision`, where it is given, is compared with the domain revision."""
        return self.mutation and "expected_revision" in self.fields and not self.own_revision

    @property
    def stored(self) -> bool:
        """Whether a call leaves a receipt."""
        return self.mutation and self.retry_identity in ("key", "sequence_stored")

    def lacking_scopes(self, given: Input, granted: Collection[str]) -> tuple[str, ...]:
        """The scopes that this call needs and `granted` does not hold; empty when the call is in scope."""
        lacking = tuple(scope for scope in (*self.scopes, *self.more_scopes(given)) if scope not in granted)
        either = self.either_scopes(given)
        return lacking if not either or any(scope in granted for scope in either) else (*lacking, either[0])

    def may_observe(self, granted: Collection[str]) -> bool:
        """Whether the reply to an act may carry what was seen after it."""
        needed = OBSERVATION_SCOPES.get(self.family)
        return needed is None or needed in granted

    @property
    def generation_field(self) -> str | None:
        """The field that names the target's generation."""
        return next((name for name in GENERATION_FIELDS if name in self.fields), None)


def define(**fields: Any) -> Definition:
    """Make a definition and hold it to the closed scope list.

    Raises:
        ValueError: when a scope is not one of the 54.
    """
    definition = Definition(**fields)
    unknown = [scope for scope in definition.scopes if scope not in SCOPES]
    if unknown:
        raise ValueError(f"{definition.name}: unknown scopes {unknown}")
    return definition


def by_name(definitions: Iterable[Definition]) -> dict[str, Definition]:
    """The definitions keyed by tool name.

    Raises:
        ValueError: when two share a name.
    """
    found: dict[str, Definition] = {}
    for definition in definitions:
        if definition.name in found:
            raise ValueError(f"two definitions of {definition.name}")
        found[definition.name] = definition
    return found
