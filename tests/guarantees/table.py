"""The whole table: measured cell by cell, held to the rules, written down."""

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness import opened_world, owner
from harness.site import serving

from guarantees import (  # noqa: F401  they register their examples
    examples_android,
    examples_broker,
    examples_browser,
    examples_terminal,
)
from guarantees.crashes import crash_after_dispatch, crash_before_start, groups
from guarantees.examples import EXAMPLES
from guarantees.hazards import HAZARDS, Hazard, allowed, not_applicable
from guarantees.probes import Probe
from guarantees.stage import Stage, repository, staged, table_policy
from lomi.contract.definition import Definition
from lomi.contract.tools import BY_NAME

MOST_PAGES = 8
"""Pages of ended sessions stay open for a person to see; an engine holds 16."""


@dataclass
class Table:
    """The cells, and everything that is wrong with them."""

    cells: dict[tuple[str, Hazard], str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def put(self, definition: Definition, hazard: Hazard, said: str) -> None:
        """Note a measured cell, and hold it to the rule."""
        self.cells[definition.name, hazard] = said
        if not said.startswith(allowed(definition, hazard)):
            self.faults.append(f"{definition.name} x {hazard}: {said}; the rule allows {allowed(definition, hazard)}")


async def measured(stage: Stage, *, only: Sequence[str] = (), hazards: Sequence[Hazard] = HAZARDS) -> Table:
    """Measure every tool that has a handler."""
    table = Table()
    working = (await owner(stage.world, "status"))["tools_working"]
    names = [name for name in working if not only or name in only]  # type: ignore[union-attr]
    table.faults += [f"{name} has a handler and no example" for name in names if name not in EXAMPLES]
    definitions = [BY_NAME[name] for name in names if name in EXAMPLES]
    for definition in definitions:
        await _without_crash(stage, definition, table, hazards)
    stored = [definition for definition in definitions if definition.stored]
    if "crash before start" in hazards:
        await _before_start(stage, stored, table)
    if "crash after dispatch" in hazards:
        for definition in stored:
            await _one(stage, definition, table, "crash after dispatch")
    return table


async def _without_crash(stage: Stage, definition: Definition, table: Table, hazards: Sequence[Hazard]) -> None:
    try:
        given = await EXAMPLES[definition.name].make(stage, await stage.actor("mine"))
    except (Exception, TimeoutError) as error:  # noqa: BLE001  one tool's fault must not hide the others
        table.faults.append(f"{definition.name} has no working example: {_told(error)}")
        await _recover(stage)
        return
    for hazard in hazards:
        why = not_applicable(definition, hazard, given)
        if why is not None:
            table.cells[definition.name, hazard] = f"not applicable: {why}"
        elif not hazard.startswith("crash"):
            await _one(stage, definition, table, hazard)


async def _one(stage: Stage, definition: Definition, table: Table, hazard: Hazard) -> None:
    if stage.pages_opened > MOST_PAGES:
        await _recover(stage)
    try:
        if hazard == "crash after dispatch":
            said = await crash_after_dispatch(stage, definition)
        else:
            said = await Probe(stage, definition).measure(hazard)
    except (Exception, TimeoutError) as error:  # noqa: BLE001  one cell's fault must not hide the others
        table.faults.append(f"{definition.name} x {hazard}: {_told(error)}")
        await _recover(stage)
        return
    table.put(definition, hazard, said)


async def _before_start(stage: Stage, stored: Sequence[Definition], table: Table) -> None:
    for group in groups(stored):
        try:
            cells = await crash_before_start(stage, group)
        except (Exception, TimeoutError) as error:  # noqa: BLE001  one group's fault must not hide the others
            table.faults.append(f"{', '.join(d.name for d in group)} x crash before start: {_told(error)}")
            await _recover(stage)
        else:
            for name, said in cells.items():
                table.put(BY_NAME[name], "crash before start", said)


def _told(error: BaseException) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} {error} ({last.name}:{last.lineno})"


async def _recover(stage: Stage) -> None:
    """Begin a new life, so that a broken cell leaves nothing to the next."""
    await stage.close()
    stage.world.restart()


async def whole_table(*, only: Sequence[str] = (), hazards: Sequence[Hazard] = HAZARDS) -> Table:
    """Measure on a world of its own."""
    with serving() as site, opened_world(table_policy(site), always=repository(site)) as world:
        async with staged(world, site) as stage:
            return await measured(stage, only=only, hazards=hazards)


_INTRO = """# Guarantees

Generated by `python tests/guarantees --write docs/guarantees.md` from a real broker process: every tool that has a
handler, under every hazard. Don't edit; a test measures the table again and compares.

A refusal before anything is stored is an **envelope error**, written `CODE (reason)`. What happens after the receipt
was stored is a **receipt**, written `receipt state/effect CODE (reason)`. A hazard does not apply to a tool only by a
rule over the tool's definition, which is named.

How each was brought about: a *foreign id* is one of another live session, and its answer is byte for byte that for an
unknown id. *Cancelled before* and *revoked* come while the storage is locked from outside, so that nothing has started
(`lomi_panel_control` is measured on a terminal. A phone's lease changes with the commit of its receipt, which is
succeeded/complete whatever comes meanwhile: a cancellation is too late, and a revoked session's lease ends at once).
*Cancelled during* comes while the broker is stopped inside the effect. *Crash before start* kills -9 right before the
commit that would store the receipt, and once more when receipts are stored and wait for their turn. *Crash after
dispatch* kills -9 at the instant from which the outcome can be unknown; the receipt is read from the store that the
next broker has recovered. Phones are `paper`, simulated, through real adb; pages are in a real Chromium.
"""


def rendered(table: Table) -> str:
    """The table as Markdown: for each hazard the outcomes, and the tools that show each."""
    parts = [_INTRO]
    for hazard in HAZARDS:
        parts.append(f"\n## {hazard[0].upper()}{hazard[1:]}\n\n")
        by_outcome: dict[str, list[str]] = {}
        for (name, which), said in table.cells.items():
            if which == hazard:
                by_outcome.setdefault(said, []).append(name)
        ordered = sorted(by_outcome, key=lambda said: (said.startswith("not applicable"), said))
        parts += [f"- **{said}**: {', '.join(f'`{name}`' for name in by_outcome[said])}\n" for said in ordered]
    return "".join(parts)


def written(text: str) -> dict[tuple[str, Hazard], str]:
    """The cells of a document that `rendered` wrote."""
    by_title = {f"{hazard[0].upper()}{hazard[1:]}": hazard for hazard in HAZARDS}
    cells: dict[tuple[str, Hazard], str] = {}
    for part in text.split("\n## ")[1:]:
        title, _, lines = part.partition("\n")
        for said, names in re.findall(r"^- \*\*(.+?)\*\*: (.+)$", lines, re.MULTILINE):
            cells |= dict.fromkeys(((name, by_title[title]) for name in re.findall(r"`(\w+)`", names)), said)
    return cells
