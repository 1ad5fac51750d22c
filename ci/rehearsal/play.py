"""Plays one scenario: a broker of its own, its clients, step after step, into a transcript."""

import asyncio
import os
import random
import signal
from collections.abc import Mapping, Sequence

from rehearsal.clients import Envelope, Member, owner_ask
from rehearsal.normal import Symbols
from rehearsal.place import PHONE, BrokerTroubleError, Place, opened_place
from rehearsal.scenario import (
    Arm,
    Broker,
    Call,
    Join,
    KillPhone,
    Leave,
    Move,
    Owner,
    Scenario,
    Step,
    Together,
    Until,
    Walk,
)
from rehearsal.transcript import Entry, Transcript
from rehearsal.values import TARGET, UnknownNameError, at, filled, outcome, repeated

UNTIL_S = 60.0
_AGAIN_S = 0.05


class ExpectationError(Exception):
    """Raised when an answer is not what the scenario says; the message shows step, expectation and answer."""


async def play(name: str, scenario: Scenario, *, image: str, simulated: bool, seed: int) -> Transcript:
    """Play it once, from an empty home to a stopped broker.

    Raises:
        ExpectationError: an answer was not the expected one.
        UnknownNameError: a step uses what no step kept.
        BrokerTroubleError: the broker did not start, or not end.
    """
    with opened_place(image, seed, list(scenario.clients)) as place:
        failure: Exception | None = None
        transcript = Transcript()
        async with asyncio.TaskGroup() as tasks:
            player = Player(name, scenario, place, tasks, Symbols(str(place.root), simulated=simulated), seed)
            transcript = player.transcript
            try:
                await place.start()
                await player.run()
            except (ExpectationError, UnknownNameError, BrokerTroubleError) as error:
                failure = error
            finally:
                await player.leave_all()
                await place.end()
        if failure is not None:
            raise failure
        left = await place.left()
        if left:
            raise ExpectationError(f"{name}: processes are left behind: {left}")
        return transcript


class Player:
    """The state of one run."""

    def __init__(
        self, name: str, scenario: Scenario, place: Place, tasks: asyncio.TaskGroup, symbols: Symbols, seed: int
    ) -> None:
        self.transcript = Transcript()
        self._name = name
        self._steps = scenario.steps
        self._place = place
        self._tasks = tasks
        self._symbols = symbols
        self._dice = random.Random(f"{seed}/{name}")
        self._members = {who: Member(who, kind, place) for who, kind in scenario.clients.items()}
        self._kept: dict[str, object] = {"phone": PHONE}
        self._inputs: dict[str, int] = {}
        self._step = 0
        self._key = 0

    async def run(self) -> None:
        """Every client joins, then every step."""
        for member in self._members.values():
            await self._join(member)
        for number, step in enumerate(self._steps, 1):
            self._step = number
            await self._perform(step)

    async def leave_all(self) -> None:
        """End every connection."""
        for member in self._members.values():
            await member.leave()

    async def _perform(self, step: Step) -> None:
        match step:
            case Call():
                await self._call(step)
            case Until():
                await self._until(step)
            case Together():
                await self._together(step)
            case Owner():
                await self._owner(step)
            case Join(client=who):
                await self._join(self._members[who])
            case Leave(client=who):
                await self._members[who].leave()
                self._note({"leave": who}, "left")
            case Broker(action=action):
                await self._broker(action)
            case Arm(failpoint=failpoint):
                self._place.arm(failpoint)
                self._note({"arm": failpoint}, "armed")
            case KillPhone():
                for pid in self._place.processes("-avd"):
                    os.kill(pid, signal.SIGKILL)
                self._note({"kill": "phone"}, "killed")
            case Walk():
                for _ in range(step.times):
                    await self._move(self._dice.choice(step.moves))

    async def _move(self, move: Move) -> None:
        if isinstance(move, Call):
            await self._call(move, lenient=True)
        else:
            await self._owner(move, lenient=True)

    async def _broker(self, action: str) -> None:
        if action == "start":
            await self._place.start()
            self._note({"broker": action}, "ready")
            return
        number = signal.SIGKILL if action == "kill" else signal.SIGTERM
        code = await self._place.end(number, send=action != "died")
        self._note({"broker": action}, f"exit {code}")

    async def _join(self, member: Member) -> None:
        await member.join(self._tasks)
        listed = await self._ask(member, "lomi_workspace_list", {})
        member.workspace = str(at(listed, "data.items.0.id"))
        bound = await self._ask(member, "lomi_connect", {"workspaceId": member.workspace})
        member.epoch = str(at(bound, "data.retryEpoch"))
        self._kept[f"{member.name}.epoch"] = member.epoch

    async def _ask(
        self,
        member: Member,
        tool: str,
        arguments: Mapping[str, object],
        exact: Sequence[str] = (),
        *,
        observed: bool = False,
    ) -> Envelope:
        """Call and write it down."""
        answer = await member.ask(tool, arguments)
        self._write(member.name, {"tool": tool, **arguments}, answer, exact, observed=observed)
        return answer

    def _write(
        self,
        who: str,
        asked: Mapping[str, object],
        answer: Envelope,
        exact: Sequence[str] = (),
        *,
        observed: bool = True,
    ) -> None:
        said: object = answer
        data = answer.get("data")
        if not observed and isinstance(data, dict) and "observation" in data:
            # What was seen in time is no part of the outcome: it depends on how fast this machine was.
            said = {**answer, "data": {key: item for key, item in data.items() if key != "observation"}}
        normal_asked = self._symbols.normal(dict(asked))
        normal = self._symbols.normal(said, exact=lambda path: path in exact)
        entry = Entry(scenario=self._name, step=self._step, who=who, asked=normal_asked, answered=normal)
        self.transcript.add(entry)

    def _note(self, asked: Mapping[str, object], answered: str) -> None:
        entry = Entry(scenario=self._name, step=self._step, who="harness", asked=dict(asked), answered=answered)
        self.transcript.add(entry)

    async def _whole(self, call: Call | Until, *, lenient: bool = False) -> dict[str, object]:
        """A step's arguments with what every call of a session repeats."""
        member, known = self._members[call.client], repeated(call.tool)
        given = filled(call.given, self._kept, self._dice, lenient=lenient)
        assert isinstance(given, dict)
        made = {name: self._kept[word] for name, word in TARGET.items() if name in known and word in self._kept}
        if "inputSequence" in known:
            made["inputSequence"] = str(self._inputs.get(str({**made, **given}.get("leaseId")), 0) + 1)
        if "workspaceId" in known:
            made["workspaceId"] = member.workspace
        if "retryEpoch" in known:
            made["retryEpoch"] = member.epoch
        if "requestKey" in known:
            self._key += 1
            made["requestKey"] = f"{self._name}-{self._key}"
        if "waitMs" in known:
            made["waitMs"] = 15_000
        if "expectedRevision" in known and "expectedRevision" not in given:
            listed = await self._ask(member, "lomi_workspace_list", {})
            data = listed.get("data")
            made["expectedRevision"] = str(data["domainRevision"]) if isinstance(data, dict) else "0"
        return {**made, **given}

    async def _call(self, call: Call, *, lenient: bool = False) -> None:
        arguments = await self._whole(call, lenient=lenient)
        member = self._members[call.client]
        answer = await self._ask(member, call.tool, arguments, call.exact, observed=call.observed)
        wanted = [call.expect] if isinstance(call.expect, str) else call.expect
        if call.expect and outcome(answer) not in wanted:
            self._fail(call.client, call.tool, arguments, " or ".join(wanted), answer)
        if "inputSequence" in arguments and _reads(answer, "data.kind") == "operation":
            self._inputs[str(arguments["leaseId"])] = int(str(arguments["inputSequence"]))
        for name, path in call.keep.items():
            try:
                self._kept[name] = at(answer, path)
            except UnknownNameError:
                if not lenient:
                    raise

    def _fail(self, who: str, tool: str, arguments: object, wanted: str, answer: Envelope) -> None:
        raise ExpectationError(
            f"{self._name}, step {self._step}: {who} called {tool}\n"
            f"  with      {arguments}\n  expected  {wanted}\n  got       {outcome(answer)}\n  in full   {answer}"
        )

    async def _until(self, step: Until) -> None:
        arguments = await self._whole(step)
        member = self._members[step.client]
        answer: Envelope = {}
        try:
            async with asyncio.timeout(UNTIL_S):
                while True:
                    answer = await member.ask(step.tool, arguments)
                    if _reads(answer, step.path) == step.equals:
                        break
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            self._fail(step.client, step.tool, arguments, f"{step.path} = {step.equals!r}", answer)
        self._write(step.client, {"tool": step.tool, **arguments}, answer)
        for name, path in step.keep.items():
            self._kept[name] = at(answer, path)

    async def _together(self, step: Together) -> None:
        whole = [await self._whole(call) for call in step.calls]
        pairs = list(zip(step.calls, whole, strict=True))
        answers = await asyncio.gather(
            *(self._members[call.client].ask(call.tool, arguments) for call, arguments in pairs)
        )
        # Whether the loser was refused at the door or in the queue depends on the machine.
        short = sorted(outcome(answer).removeprefix("failed/none ") for answer in answers)
        for call, answer in zip(step.calls, answers, strict=True):
            for name, path in call.keep.items():
                if (found := _reads(answer, path)) is not None:
                    self._kept[name] = found
        self._note({"together": sorted(call.tool for call in step.calls)}, " + ".join(short))
        if short != sorted(step.expect):
            wanted = sorted(step.expect)
            raise ExpectationError(
                f"{self._name}, step {self._step}: calls at once\n  expected  {wanted}\n  got       {short}"
            )

    async def _owner(self, step: Owner, *, lenient: bool = False) -> None:
        given = filled(step.given, self._kept, self._dice, lenient=lenient)
        assert isinstance(given, dict)
        answer = await owner_ask(self._place, step.command, given)
        self._write("owner", {"command": step.command, **given}, answer)
        if step.expect is not None and _reads(answer, "data.count") != step.expect:
            self._fail("owner", step.command, given, f"{step.expect} touched", answer)
        for path, wanted in step.holds.items():
            if _reads(answer, path) != wanted:
                self._fail("owner", step.command, given, f"{path} = {wanted!r}", answer)
        for name, path in step.keep.items():
            self._kept[name] = at(answer, path)


def _reads(answer: Envelope, path: str) -> object:
    try:
        return at(answer, path)
    except UnknownNameError:
        return None
