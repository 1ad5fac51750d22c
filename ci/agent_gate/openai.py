"""The chat completions API of OpenAI, as many servers offer it."""

import json
from collections.abc import Mapping
from typing import Annotated

import msgspec

from agent_gate.talk import Ask, BadAnswerError, Entry, ToolCall, Turn, sendable


class _Function(msgspec.Struct):
    name: str
    arguments: str = ""


class _Call(msgspec.Struct):
    id: str
    function: _Function
    type: str = "function"


class _Message(msgspec.Struct):
    content: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    completion_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0


class _Answer(msgspec.Struct):
    choices: tuple[_Choice, ...]
    usage: _Usage | None = None


class OpenAI:
    """Chat completions.

    A turn's calls go back word for word, since some servers keep signatures in them; of the rest only the text does,
    since some servers refuse to be told their own reasoning. `output_field` is `max_tokens` for servers that don't
    know the newer name.
    """

    path = "/chat/completions"

    def __init__(self, output_field: str = "max_completion_tokens") -> None:
        self._output_field = output_field

    def headers(self, key: str) -> dict[str, str]:
        """A bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def body(self, ask: Ask) -> dict[str, object]:
        """The request."""
        messages: list[object] = [{"role": "system", "content": ask.system}]
        for entry in ask.conversation:
            messages.extend(_messages(entry, pictures=ask.pictures))
        return {
            "model": ask.model,
            self._output_field: ask.most_output,
            "messages": messages,
            "tools": [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in ask.tools
            ],
        }

    def turn(self, answer: bytes) -> Turn:
        """The first choice."""
        try:
            said = msgspec.json.decode(answer, type=_Answer)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadAnswerError(f"not a chat completion: {error}") from error
        if not said.choices:
            raise BadAnswerError("a chat completion without a choice")
        message, usage = said.choices[0].message, said.usage or _Usage()
        calls = message.tool_calls or ()
        raw: dict[str, object] = {"role": "assistant", "content": message.content}
        if calls:
            raw["tool_calls"] = msgspec.json.decode(answer)["choices"][0]["message"]["tool_calls"]
        if not sendable(raw):
            raise BadAnswerError("a chat completion that can't be sent back: too deeply nested, or no valid Unicode")
        return Turn(
            text=message.content or message.refusal or "",
            calls=tuple(
                ToolCall(call_id=call.id, name=call.function.name, arguments=_object(call.function.arguments))
                for call in calls
            ),
            raw=raw,
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.completion_tokens,
            stopped=said.choices[0].finish_reason or "",
        )


def _object(text: str) -> Mapping[str, object] | None:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and sendable(found) else None


def _messages(entry: Entry, *, pictures: bool) -> list[object]:
    if isinstance(entry, str):
        return [{"role": "user", "content": entry}]
    if isinstance(entry, Turn):
        return [entry.raw]
    said: list[object] = [
        {
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": ("ERROR\n" if result.is_error else "") + result.said(pictures=pictures),
        }
        for result in entry
    ]
    # A tool's message holds text only; its pictures follow as the user's, after the results of all calls.
    shown = [picture for result in entry for picture in result.pictures] if pictures else []
    if shown:
        parts = [
            {"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{picture.base64}"}}
            for picture in shown
        ]
        said.append({"role": "user", "content": [{"type": "text", "text": "The pictures of these results:"}, *parts]})
    return said
