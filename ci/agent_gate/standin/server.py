"""The stand-in as a server of both APIs. It keeps no conversation: each request is played from its beginning again."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent_gate.http import Answer, Request, serving
from agent_gate.standin.heard import Heard, RefusedError, hear_anthropic, hear_openai
from agent_gate.standin.part import Call, LostError, Part
from agent_gate.standin.scripts import script_for
from agent_gate.task import Saboteur

MODEL = "scripted"
HICCUPS = {1: 429, 4: 503}
"""Requests of each conversation that are told to come again, so that retries are exercised wherever it is used."""


@dataclass(slots=True)
class StandIn:
    """Plays the script of `task`, honestly or as a saboteur. `refused` are the requests that broke an API's rules."""

    key: str
    task: str = ""
    saboteur: Saboteur | None = None
    recalled: str = ""
    hiccups: bool = True
    _requests: int = 0

    def begin(self, task: str, saboteur: Saboteur | None, recalled: str = "") -> None:
        """Play another task from now on; `recalled` is what its answer was in another run."""
        self.task, self.saboteur, self.recalled, self._requests = task, saboteur, recalled, 0

    def answer(self, request: Request) -> Answer:
        """One request of either API."""
        self._requests += 1
        if self.hiccups and self._requests in HICCUPS:
            return _error(HICCUPS[self._requests], "busy, come again", {"Retry-After": "0"})
        try:
            if request.path == "/v1/chat/completions":
                return self._openai(hear_openai(request, self.key, MODEL), request)
            if request.path == "/v1/messages":
                return self._anthropic(hear_anthropic(request, self.key, MODEL), request)
        except RefusedError as refused:
            return _error(refused.status, str(refused))
        except ValueError as error:
            return _error(400, str(error))
        return _error(404, f"there is nothing at {request.path}")

    def _next(self, heard: Heard) -> tuple[Sequence[Call], str]:
        """What the script does after all that it has seen: calls, or its last words."""
        part = Part(prompt=heard.prompt, saboteur=self.saboteur, recalled=self.recalled)
        script = script_for(self.task, part, heard.tools)
        try:
            step = next(script)
            for seen in heard.results:
                step = script.send(seen)
        except StopIteration as end:
            return (), str(end.value)
        except LostError as lost:
            return (), f"I am lost: {lost}"
        return step, ""

    def _openai(self, heard: Heard, request: Request) -> Answer:
        calls, words = self._next(heard)
        message: dict[str, object] = {"role": "assistant", "content": words or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": _id(heard, number),
                    "type": "function",
                    "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
                }
                for number, call in enumerate(calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        heavy, light = _estimate(heard, request, message)
        usage = {"prompt_tokens": heavy, "completion_tokens": light, "total_tokens": heavy + light}
        return _json(
            {
                "id": "standin",
                "object": "chat.completion",
                "created": 0,
                "model": MODEL,
                "choices": [choice],
                "usage": usage,
            }
        )

    def _anthropic(self, heard: Heard, request: Request) -> Answer:
        calls, words = self._next(heard)
        content: list[object] = [{"type": "text", "text": words}] if words else []
        content += [
            {"type": "tool_use", "id": _id(heard, number), "name": call.tool, "input": call.arguments}
            for number, call in enumerate(calls)
        ]
        heavy, light = _estimate(heard, request, content)
        return _json(
            {
                "id": "standin",
                "type": "message",
                "role": "assistant",
                "model": MODEL,
                "content": content,
                "stop_reason": "tool_use" if calls else "end_turn",
                "usage": {"input_tokens": heavy, "output_tokens": light},
            }
        )


def _id(heard: Heard, number: int) -> str:
    return f"call_{len(heard.results)}_{number}"


def _estimate(heard: Heard, request: Request, said: object) -> tuple[int, int]:
    """Tokens in and out, as a quarter of the bytes; pictures are left out."""
    return (len(request.body) - heard.picture_bytes) // 4, len(json.dumps(said, ensure_ascii=False).encode()) // 4


def _json(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    content = json.dumps(body, ensure_ascii=False).encode()
    return Answer(status=status, body=content, content_type="application/json", headers=headers or {})


def _error(status: int, text: str, headers: dict[str, str] | None = None) -> Answer:
    return _json({"error": {"type": "error", "message": text}}, status, headers)


@asynccontextmanager
async def opened_standin(standin: StandIn) -> AsyncIterator[str]:
    """Serve it; the base URL that an endpoint of either API would have."""
    async with serving(standin.answer) as origin:
        yield f"{origin}/v1"
