"""What a scenario file says: clients, phones, and steps one after the other. TOML, closed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

SCENARIOS = Path(__file__).parent.parent / "scenarios"
PARTS = SCENARIOS / "parts"


class ScenarioError(Exception):
    """Raised when a scenario file is not one; the message names file and place."""


class _Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    """One step. `note` is for readers."""

    note: str = ""


class Call(_Step, frozen=True, kw_only=True, tag="call"):
    """A client calls a tool.

    Attributes:
        client: who.
        tool: the tool's name.
        given: arguments; what every call repeats is filled in: workspace, epoch, key, revision, the lease's next
            sequence, and panel, device, generation and lease as last kept by these names. `"$name"` is a kept value,
            `{pick = [...]}` and `{between = [low, high]}` are drawn from the seed.
        keep: names for values of the answer, by dotted path.
        expect: the outcome in short, or several that are all right; empty for none in particular.
        exact: dotted paths of the answer that enter the transcript as they came.
        observed: whether what was seen after the act enters the transcript too.
    """

    client: str = msgspec.field(name="as")
    tool: str
    given: dict[str, object] = msgspec.field(name="with", default_factory=dict)
    keep: dict[str, str] = {}
    expect: str | list[str] = ""
    exact: list[str] = []
    observed: bool = False


class Until(_Step, frozen=True, kw_only=True, tag="until"):
    """A client reads until a value of the answer is `equals`; only the last answer enters the transcript."""

    client: str = msgspec.field(name="as")
    tool: str
    given: dict[str, object] = msgspec.field(name="with", default_factory=dict)
    keep: dict[str, str] = {}
    path: str
    equals: bool | int | str | None


class Together(_Step, frozen=True, kw_only=True, tag="together"):
    """Calls sent at once. Which of them wins is open, so that the transcript has their outcomes sorted."""

    calls: list[Call]
    expect: list[str]


class Owner(_Step, frozen=True, kw_only=True, tag="owner"):
    """The owner's own command; `expect` is how many things it touched, `holds` what the answer says at dotted paths."""

    command: Literal["take", "give_back", "revoke", "revoke_all", "receipts", "ps"]
    given: dict[str, object] = msgspec.field(name="with", default_factory=dict)
    keep: dict[str, str] = {}
    expect: int | None = None
    holds: dict[str, str | int | bool | None] = {}


class Join(_Step, frozen=True, kw_only=True, tag="join"):
    """A client connects (again) and binds to its workspace."""

    client: str = msgspec.field(name="as")


class Leave(_Step, frozen=True, kw_only=True, tag="leave"):
    """A client's connection ends."""

    client: str = msgspec.field(name="as")


class Broker(_Step, frozen=True, kw_only=True, tag="broker"):
    """kill: `kill -9`. died: wait until it is dead by itself. stop: in good order. start: the next one on this home."""

    action: Literal["kill", "died", "stop", "start"]


class Arm(_Step, frozen=True, kw_only=True, tag="arm"):
    """Arm a failpoint of the running broker, as `LOMI_FAILPOINT` has it."""

    failpoint: str


class KillPhone(_Step, frozen=True, kw_only=True, tag="kill_phone"):
    """`kill -9` the emulator's process."""


class Walk(_Step, frozen=True, kw_only=True, tag="walk"):
    """As many moves as `times`, each drawn from `moves` by the seed; names not kept yet are the word `none`."""

    times: int
    moves: list["Move"]


Move = Call | Owner
Step = Call | Until | Together | Owner | Join | Leave | Broker | Arm | KillPhone | Walk


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file.

    Attributes:
        title: what it shows, one sentence.
        clients: how each speaks: `calls` (the private socket) or `mcp` (the real helper on stdio).
        before: parts whose steps come first.
        simulated_only: why a real image can't run it; empty when it can.
        steps: the steps.
    """

    title: str
    clients: dict[str, Literal["calls", "mcp"]]
    before: list[str] = []
    simulated_only: str = ""
    steps: list[Step] = msgspec.field(name="step")


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Steps that several scenarios begin with."""

    steps: list[Step] = msgspec.field(name="step")


def load(path: Path) -> Scenario:
    """Read one file; steps of its parts come first.

    Raises:
        ScenarioError: it is no scenario.
    """
    try:
        read = msgspec.toml.decode(path.read_bytes(), type=Scenario)
        parts = [msgspec.toml.decode((PARTS / f"{name}.toml").read_bytes(), type=_Part) for name in read.before]
    except (OSError, msgspec.DecodeError) as error:
        raise ScenarioError(f"{path.name}: {error}") from error
    return msgspec.structs.replace(read, steps=[*(step for part in parts for step in part.steps), *read.steps])


def find(names: Sequence[str]) -> list[Path]:
    """The files of these names (or paths), or all there are.

    Raises:
        ScenarioError: there is no such file.
    """
    if not names:
        return sorted(SCENARIOS.glob("*.toml"))
    found: list[Path] = []
    for name in names:
        path = Path(name) if name.endswith(".toml") else SCENARIOS / f"{name}.toml"
        if not path.is_file():
            known = ", ".join(sorted(each.stem for each in SCENARIOS.glob("*.toml")))
            raise ScenarioError(f"no scenario {name!r}; there are {known}")
        found.append(path)
    return found
