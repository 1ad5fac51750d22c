"""PLAN.toml: what a run consists of. Closed: an unknown field is a fault, and every fault has its line and field."""

from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lomi.core.toml_text import MalformedTomlError, read_toml
from lomi.lab.toml_lines import clean_path, line_of

LARGEST_PLAN = 256 * 1024
Recycle = Literal["reuse", "wipe", "fresh"]
Per = Literal["test", "module", "run"]
_Seconds = Annotated[float, Meta(gt=0, le=86_400)]
_Words = Annotated[str, Meta(min_length=1, max_length=500)]


class PlanFault(msgspec.Struct, frozen=True):
    """One thing that is wrong. `line` counts from 1, None for the file as a whole; `field` is "" there."""

    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        where = "".join((f"line {self.line}: " if self.line else "", f"{self.field}: " if self.field else ""))
        return where + self.message


class PlanError(Exception):
    """Raised when a plan can't be run; nothing was started.

    Attributes:
        faults: all that were found.
    """

    def __init__(self, *faults: PlanFault) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Tests(_Table, frozen=True, kw_only=True):
    """What pytest lists: `paths` below `folder` (which is relative to the plan), with `arguments` of its own."""

    folder: str = "."
    paths: Annotated[tuple[_Words, ...], Meta(min_length=1)] = ("tests",)
    arguments: tuple[str, ...] = ()


class Pool(_Table, frozen=True, kw_only=True):
    """The phones. `recycle` is done between tests, modules, or not before the end, as `per` says.

    `boot_s` bounds one boot; `boots` is how many a phone gets before it is given up. With `ahead` all boot at once at
    the start, else each with its first shard.
    """

    image: _Words = "paper-36"
    phones: Annotated[int, Meta(ge=0, le=64)] = 1
    recycle: Recycle = "reuse"
    per: Per = "run"
    boot_s: _Seconds = 180
    boots: Annotated[int, Meta(ge=1, le=10)] = 2
    ahead: bool = True


class Shards(_Table, frozen=True, kw_only=True):
    """How tests are dealt: `count` shards (default: one a worker), even by number, or by the times of a report."""

    by: Literal["count", "timing"] = "count"
    count: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    timing: str | None = None


class Retries(_Table, frozen=True, kw_only=True):
    """Attempts beyond the first: after a failure of the test, after one of the lab, and over the whole run.

    `isolated`: a test is tried again in a shard of its own.
    """

    failed: Annotated[int, Meta(ge=0, le=20)] = 0
    infra: Annotated[int, Meta(ge=0, le=20)] = 2
    most: Annotated[int, Meta(ge=0, le=100_000)] = 100
    isolated: bool = True


class Quarantine(_Table, frozen=True, kw_only=True):
    """Tests (by a pattern of their ids) that run and are reported, but don't decide the outcome, until a day."""

    test: _Words
    reason: _Words
    until: date | None = None


class NeedsRule(_Table, frozen=True, kw_only=True):
    """How many phones at once the tests of a pattern need; without a rule, one if there is a pool."""

    test: _Words
    phones: Annotated[int, Meta(ge=0, le=64)] = 1


class Deadlines(_Table, frozen=True, kw_only=True):
    """Seconds: of one test with its set-up and teardown, of a worker's start and end, and of the whole run."""

    test_s: _Seconds = 300
    worker_s: _Seconds = 60
    run_s: _Seconds = 3_600


class BrokerTable(_Table, frozen=True, kw_only=True):
    """A headless broker of this run's own; without this table the run is a client of one that runs already."""

    packages: tuple[str, ...] = ("*",)
    origins: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    terminals: bool = False


class ReportTable(_Table, frozen=True, kw_only=True):
    """Where the report goes, relative to the plan."""

    into: _Words = "lab-report"


class Plan(_Table, frozen=True, kw_only=True):
    """A whole plan. `workers` run shards at the same time; by default one a phone, or one without phones."""

    version: Literal[1]
    name: Annotated[str, Meta(min_length=1, max_length=100)] = "lab"
    workers: Annotated[int, Meta(ge=1, le=256)] | None = None
    tests: Tests = Tests()
    pool: Pool | None = None
    shards: Shards = Shards()
    retries: Retries = Retries()
    quarantine: tuple[Quarantine, ...] = ()
    needs: tuple[NeedsRule, ...] = ()
    deadlines: Deadlines = Deadlines()
    broker: BrokerTable | None = None
    report: ReportTable = ReportTable()

    @property
    def phones(self) -> int:
        """How many phones the pool has."""
        return 0 if self.pool is None else self.pool.phones

    @property
    def worker_count(self) -> int:
        """How many shards run at the same time."""
        return self.workers if self.workers is not None else max(1, self.phones)


def read_plan(path: Path) -> Plan:
    """Read and check a plan; blocks for one small read.

    Raises:
        PlanError: it can't be read, or something in it is wrong.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise PlanError(PlanFault(None, "", f"can't be read: {error.strerror}")) from error
    if len(content) > LARGEST_PLAN:
        raise PlanError(PlanFault(None, "", f"a plan is at most {LARGEST_PLAN} bytes"))
    try:
        return parse_plan(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise PlanError(PlanFault(None, "", "a plan is UTF-8 text")) from error


def parse_plan(text: str) -> Plan:
    """Check a plan's text.

    Raises:
        PlanError: with one fault for each wrong table.
    """
    try:
        table = read_toml(text)
    except MalformedTomlError as error:
        raise PlanError(_toml_fault(str(error))) from error
    fields = {field.name: field for field in msgspec.structs.fields(Plan)}
    faults: list[PlanFault] = []
    for name, value in table.items():
        if name not in fields:
            faults.append(PlanFault(line_of(text, name), name, "there is no such field"))
            continue
        try:
            msgspec.convert(value, type=fields[name].type)
        except msgspec.ValidationError as error:
            faults.append(_fault(text, name, str(error)))
    if "version" not in table:
        faults.insert(0, PlanFault(None, "version", "is missing; write `version = 1` first"))
    if not faults:
        plan = msgspec.convert(table, type=Plan)
        faults = _contradictions(plan, text)
        if not faults:
            return plan
    raise PlanError(*faults)


def _toml_fault(message: str) -> PlanFault:
    said, _, where = message.partition(" (at line ")
    return PlanFault(int(where.partition(",")[0]) if where[:1].isdigit() else None, "", said)


def _fault(text: str, name: str, message: str) -> PlanFault:
    said, _, where = message.partition(" - at `")
    path = clean_path(where.rstrip("`"))
    field = f"{name}{path}" if path.startswith("[") else ".".join(part for part in (name, path) if part)
    if said.startswith("Object contains unknown field `"):
        field = f"{field}.{said.split('`')[1]}"
        said = "there is no such field"
    return PlanFault(line_of(text, field), field, said)


def _contradictions(plan: Plan, text: str) -> list[PlanFault]:
    """What is wrong between fields that are right each for itself."""
    faults: list[tuple[str, str]] = []
    if plan.shards.by == "timing" and plan.shards.timing is None:
        faults.append(("shards.timing", '`by = "timing"` needs the path of an earlier report'))
    if plan.shards.by == "count" and plan.shards.timing is not None:
        faults.append(("shards.timing", 'goes with `by = "timing"`'))
    for index, rule in enumerate(plan.needs):
        if rule.phones > plan.phones:
            said = f"no pool could ever give {rule.phones} phones: this plan has {plan.phones}"
            faults.append((f"needs[{index}].phones", said))
    if plan.pool is not None and plan.workers is not None and plan.workers > plan.phones > 0 and not plan.needs:
        faults.append(("workers", f"{plan.workers} workers would wait for {plan.phones} phones"))
    for name, folder in (("tests.folder", plan.tests.folder), ("report.into", plan.report.into)):
        if "\0" in folder:
            faults.append((name, "holds a NUL"))
    return [PlanFault(line_of(text, field), field, said) for field, said in faults]
