"""The loop: ask the model, do what it calls, until it is done or its budget is spent."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent_gate.endpoint import Endpoint, EndpointError
from agent_gate.talk import Ask, BadAnswerError, Entry, ToolCall, ToolResult, Turn
from agent_gate.task import Budget
from agent_gate.tools import Tools, ToolsError

Called = Callable[[str], Awaitable[None]]
"""Told of each call that was answered, by the tool's name; where the world may change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSetting:
    """How a model is asked."""

    model: str
    most_output: int = 4096
    pictures: bool = True


@dataclass(slots=True, kw_only=True)
class Course:
    """How one task went. `problem` says in one line why it ended before the model said that it is done."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    last_words: str = ""
    problem: str = ""
    fatal: bool = False
    conversation: list[Entry] = field(default_factory=list)


class _Spent(Exception):  # noqa: N818  not a fault: the budget's end
    pass


class Drive:
    """One task's conversation."""

    def __init__(self, endpoint: Endpoint, tools: Tools, setting: ModelSetting, called: Called) -> None:
        self._endpoint = endpoint
        self._tools = tools
        self._setting = setting
        self._called = called
        self.course = Course()

    async def run(self, system: str, prompt: str, budget: Budget) -> Course:
        """Go on until the model calls no more tools, or the budget is spent."""
        course = self.course
        course.conversation.append(prompt)
        try:
            async with asyncio.timeout(budget.seconds):
                while True:
                    turn = await self._turn(system)
                    if not turn.calls:
                        course.last_words = turn.text
                        if turn.stopped in ("length", "max_tokens"):
                            course.problem = "the model's answer was cut at its length limit"
                        return course
                    await self._do(turn, budget)
        except TimeoutError:
            course.problem = f"not done within {budget.seconds} s"
        except _Spent as spent:
            course.problem = str(spent)
        except EndpointError as error:
            # One that fell silent in a conversation may have choked on that; the next task's first request tells.
            met = any(isinstance(entry, Turn) for entry in course.conversation)
            course.problem, course.fatal = f"the endpoint: {error}", error.fatal or (error.silent and not met)
        except BadAnswerError as error:
            course.problem = f"the endpoint: {error}"
        except ToolsError as error:
            course.problem = str(error)
        return course

    async def _turn(self, system: str) -> Turn:
        course, setting = self.course, self._setting
        turn = await self._endpoint.ask(
            Ask(
                model=setting.model,
                system=system,
                tools=self._tools.schemas,
                conversation=course.conversation,
                most_output=setting.most_output,
                pictures=setting.pictures,
            )
        )
        course.input_tokens += turn.input_tokens
        course.output_tokens += turn.output_tokens
        course.conversation.append(turn)
        return turn

    async def _do(self, turn: Turn, budget: Budget) -> None:
        course = self.course
        results: list[ToolResult] = []
        for call in turn.calls:
            if course.calls >= budget.calls:
                raise _Spent(f"not done within {budget.calls} calls")
            results.append(await self._one(call))
        course.conversation.append(tuple(results))
        if course.input_tokens + course.output_tokens > budget.tokens:
            raise _Spent(f"not done within {budget.tokens} tokens")

    async def _one(self, call: ToolCall) -> ToolResult:
        self.course.calls += 1
        result = await self._tools.call(call.call_id, call.name, call.arguments)
        await self._called(call.name)
        return result
