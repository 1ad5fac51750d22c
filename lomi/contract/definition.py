"""A tool as data. Catalogue, schemas, docs, admission and the guarantee table are all derived from these values."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from lomi.contract.model import Data, Input, KeyedInput, Result, RevisedInput
from lomi.contract.scopes import SCOPES

RetryIdentity = Literal["key", "sequence_stored", "sequence_in_memory", "none"]
ResourceKind = Literal["terminal", "browser", "android"]
QueueBy = Literal["layout", "target", "none"]

GENERATION_FIELDS: dict[str, ResourceKind] = {
    "terminal_session_id": "terminal",
    "browser_generation": "browser",
    "generation": "android",
}


def no_more_scopes(_: Any) -> tuple[str, ...]:
    """The scopes that the arguments add: none."""
    return ()


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. What can be read from the input model is derived from it, never stated twice.

    `scopes` are always needed; `more_scopes(input)` those that these arguments add. `results` are data kinds of a read or
    result kinds of an operation (`Failure` is implied). `secret_fields` enter the fingerprint as an HMAC. `deadline_s` bounds
    the effect; `decision_s` the wait for a person, 0 where nobody decides. `unpaired` tools answer before pairing.
    """

    name: str
    family: str
    purpose: str
    input: type[Input]
    results: tuple[type[Data] | type[Result], ...]
    scopes: tuple[str, ...] = ()
    mutation: bool = False
    more_scopes: Callable[[Any], tuple[str, ...]] = no_more_scopes
    more_scopes_text: tuple[str, ...] = ()
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
        if issubclass(self.input, KeyedInput):
            return "key"
        if "input_sequence" in self.fields:
            return "sequence_stored" if "retry_epoch" in self.fields else "sequence_in_memory"
        return "none"

    @property
    def checks_revision(self) -> bool:
        """Whether `expectedRevision` is compared with the domain revision."""
        return issubclass(self.input, RevisedInput) and not self.own_revision

    @property
    def stored(self) -> bool:
        """Whether a call leaves a receipt."""
        return self.mutation and self.retry_identity in ("key", "sequence_stored")

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
