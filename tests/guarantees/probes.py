"""Measures one cell: brings a hazard over a call of a real broker; says what the caller, or the store, then holds."""

import asyncio
import signal

from harness import Answered, StoredRow, owner, rows_of, until

from guarantees.examples import EXAMPLES, Arguments, Example
from guarantees.hazards import Hazard, generation_field, id_fields
from guarantees.stage import Actor, Stage
from lomi.client.errors import ConnectionLostError
from lomi.contract.codes import TERMINAL_STATES
from lomi.contract.definition import Definition

UNKNOWN = {
    "workspaceId": "w999999",
    "projectId": "j999999",
    "panelId": "p999999",
    "deviceId": "00000000-0000-4000-8000-000000000000",
    "operationId": "f" * 40,
    "artifactId": "f" * 32,
    "terminalSessionId": "s999999",
    "browserGeneration": "b999999",
    "generation": "00000000-0000-8000-8000-0000000f423f",
}
_KEPT_BY_FAMILY = {"terminal": "terminal", "panel": "terminal", "browser": "page", "android": "lease"}


class Probe:
    """One tool on one stage."""

    def __init__(self, stage: Stage, definition: Definition) -> None:
        self.stage = stage
        self.definition = definition
        self.example: Example = EXAMPLES[definition.name]

    async def mine(self, *, lasting: bool = False) -> tuple[Actor, Arguments]:
        """The actor, and arguments of a call that would succeed."""
        actor = await self.stage.actor("mine")
        make = self.example.lasting if lasting and self.example.lasting is not None else self.example.make
        return actor, await make(self.stage, actor)

    async def call(self, actor: Actor, arguments: Arguments) -> Answered:
        """The call itself."""
        return await actor.agent.call(self.definition.name, arguments)

    async def patient(self, actor: Actor, arguments: Arguments) -> Answered:
        """The call, waiting until its receipt has settled."""
        if self.definition.mutation and "wait_ms" in self.definition.fields:
            return await actor.agent.settled(self.definition.name, arguments)
        return await self.call(actor, arguments)

    async def effects(self, actor: Actor, arguments: Arguments) -> int | None:
        """How often the effect is there, None where nothing counts it."""
        return None if self.example.effects is None else await self.example.effects(self.stage, actor, arguments)

    async def measure(self, hazard: Hazard) -> str:
        """The cell of a hazard that needs no crash."""
        return str(await getattr(self, "_" + hazard.replace(" ", "_"))())

    async def _unknown_id(self) -> str:
        actor, given = await self.mine()
        said = []
        for name in id_fields(self.definition, given):
            fresh = {"requestKey": self.stage.fresh("probe-key")} if "requestKey" in given else {}
            said.append(await self.patient(actor, {**given, **fresh, name: UNKNOWN[name]}))
        return " / ".join(sorted({answer.short for answer in said}))

    async def _foreign_id(self) -> str:
        actor, given = await self.mine()
        foreign = await self.example.make(self.stage, await self.stage.actor("other"))
        outcomes = set()
        for name in id_fields(self.definition, given):
            assert foreign[name] != given[name], f"{name} of another session is the same"
            fresh = {"requestKey": self.stage.fresh("probe-key")} if "requestKey" in given else {}
            hers = await self.patient(actor, {**given, name: foreign[name]})
            nobodys = await self.patient(actor, {**given, **fresh, name: UNKNOWN[name]})
            assert shape(hers) == shape(nobodys), f"{name}: {hers.raw!r} is told from {nobodys.raw!r}"
            outcomes.add(hers.short)
        return " / ".join(sorted(outcomes))

    async def _scope_missing(self) -> str:
        _, given = await self.mine()
        bare = await self.stage.actor("bare")
        own = {"retryEpoch": bare.agent.epoch} if "retryEpoch" in given else {}
        return (await self.patient(bare, {**given, **own})).short

    async def _stale_generation(self) -> str:
        actor, given = await self.mine()
        field = generation_field(self.definition, given)
        assert field is not None
        return (await self.patient(actor, {**given, field: UNKNOWN[field]})).short

    async def _stale_revision(self) -> str:
        actor, given = await self.mine()
        before = await self.effects(actor, given)
        said = await self.patient(actor, {**given, "expectedRevision": str(int(given["expectedRevision"]) - 1)})
        assert await self.effects(actor, given) == before
        return said.short

    async def _lease_lost(self) -> str:
        actor, given = await self.mine()
        await owner(self.stage.world, "take", name=given["panelId"])
        said = await self.patient(actor, given)
        await owner(self.stage.world, "give_back", name=given["panelId"])
        actor.kept.pop(_KEPT_BY_FAMILY[self.definition.family], None)
        return said.short

    async def _duplicate(self) -> str:
        actor, given = await self.mine()
        first, second = await asyncio.gather(self.patient(actor, given), self.patient(actor, given))
        third = await self.patient(actor, given)
        assert first.code is None, first.raw
        count = await self.effects(actor, given)
        assert count in (None, 1), f"{count} effects"
        if not self.definition.stored:
            assert first.data == second.data == third.data
            return "one effect, the same answer"
        assert first.data["state"] == "succeeded", first.raw
        assert first.data["operationId"] == second.data["operationId"] == third.data["operationId"]
        assert first.state == third.state
        return "one effect, one receipt"

    async def _conflict(self) -> str:
        actor, given = await self.mine()
        assert (await self.patient(actor, given)).code is None
        return (await self.patient(actor, self.example.vary(given))).short

    async def _begin(self, actor: Actor, given: Arguments) -> "asyncio.Task[Answered]":
        """Send the call; returns once the broker has admitted it."""
        task = asyncio.ensure_future(self.call(actor, given))
        await asyncio.sleep(0)
        await actor.agent.ask("lomi_status")
        return task

    async def _cancelled_before(self) -> str:
        actor, given = await self.mine()
        before = await self.effects(actor, given)
        ahead = self.example.ahead
        first = await ahead[1](self.stage, actor) if ahead else {}
        with self.stage.world.held_commit():
            holding = asyncio.ensure_future(actor.agent.call(ahead[0], first)) if ahead else None
            task = await self._begin(actor, given)
            await cancelled(task)
            await actor.agent.ask("lomi_status")
        if holding is not None:
            await holding
        said = (await self.patient(actor, given)).short if self.definition.stored else "no effect"
        assert await self.effects(actor, given) == before
        return said

    async def _cancelled_during(self) -> str:
        actor, given = await self.mine(lasting=True)
        broker = self.stage.world.live
        self.stage.world.arm("effect_begun:1:stop")
        task = asyncio.ensure_future(self.patient(actor, given))
        await asyncio.to_thread(broker.wait_stopped)
        self.stage.world.disarm()
        await cancelled(task)
        broker.signal(signal.SIGCONT)
        said = await self.patient(actor, given)
        return said.short if self.definition.stored else "the effect stands"

    async def _revoked(self) -> str:
        actor, given = await self.mine()
        session = await self.stage.session_of("mine")
        if not self.definition.stored:
            await owner(self.stage.world, "revoke", name=session)
            said = await lost(asyncio.ensure_future(self.call(actor, given)))
            await self.stage.drop("mine")
            return said
        with self.stage.world.held_commit():
            task = await self._begin(actor, given)
            await owner(self.stage.world, "revoke", name=session)
            said = await lost(task)
        key = stored_key(self.definition, given)
        row = await until(lambda: settled_row(self.stage, self.definition.name, session, key))
        await self.stage.drop("mine")
        assert await self.effects(await self.stage.actor("mine"), given) in (None, 0)
        return f"{said}; {row.short}"


async def cancelled(task: "asyncio.Task[Answered]") -> None:
    """Cancel a call as a client does, and see it end."""
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled(), task.result()


async def lost(task: "asyncio.Task[Answered]") -> str:
    """How a call ended whose connection was cut."""
    try:
        said = await task
    except ConnectionLostError as error:
        return f"{error.code} ({error.reason})"
    return said.short


def shape(said: Answered) -> bytes:
    """A reply without the name of its own operation."""
    own = str(said.data.get("operationId", "-"))
    return said.raw.replace(own.encode(), b"")


def stored_key(definition: Definition, given: Arguments) -> str:
    """The durable key of a call."""
    if definition.retry_identity == "key":
        return str(given["requestKey"])
    return f"android-input:{given['leaseId']}:{given['inputSequence']}"


async def settled_row(stage: Stage, tool: str, session: str, key: str) -> StoredRow | None:
    """The receipt of a retry identity once it has settled."""
    row = row_of(stage, tool, session, key)
    return row if row is not None and row.state in TERMINAL_STATES else None


def row_of(stage: Stage, tool: str, session: str, key: str) -> StoredRow | None:
    """The receipt of a retry identity."""
    for row in rows_of(stage.world.home):
        if (row.tool, row.session_id, row.request_key) == (tool, session, key):
            return row
    return None
