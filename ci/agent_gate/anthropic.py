"""The messages API of Anthropic, as many servers offer it."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from agent_gate.talk import Ask, BadAnswerError, Entry, ToolCall, ToolResult, Turn, sendable

VERSION = "2023-06-01"
_CACHE = {"type": "ephemeral"}


_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Usage(msgspec.Struct):
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    cache_creation_input_tokens: _Count | None = 0
    cache_read_input_tokens: _Count | None = 0


class _Answer(msgspec.Struct):
    content: tuple[dict[str, object], ...]
    stop_reason: str | None = None
    usage: _Usage | None = None


class Anthropic:
    """Messages. What stays the same from turn to turn is marked, so that it can be cached."""

    path = "/messages"

    def headers(self, key: str) -> dict[str, str]:
        """The key in a header of its own, and the version of the API."""
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def body(self, ask: Ask) -> dict[str, object]:
        """The request."""
        return {
            "model": ask.model,
            "max_tokens": ask.most_output,
            "system": [{"type": "text", "text": ask.system, "cache_control": _CACHE}],
            "messages": _messages(ask),
            "tools": [
                {"name": tool.name, "description": tool.description, "input_schema": tool.schema} for tool in ask.tools
            ],
        }

    def turn(self, answer: bytes) -> Turn:
        """The blocks of the answer: text is joined, what else there is (thinking) goes back as it came."""
        try:
            said = msgspec.json.decode(answer, type=_Answer)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadAnswerError(f"not a message: {error}") from error
        if not sendable(said.content):
            raise BadAnswerError("a message that can't be sent back: too deeply nested, or no valid Unicode")
        usage = said.usage or _Usage()
        cached = (usage.cache_creation_input_tokens or 0) + (usage.cache_read_input_tokens or 0)
        return Turn(
            text="\n".join(str(block.get("text", "")) for block in said.content if block.get("type") == "text"),
            calls=tuple(_call(block) for block in said.content if block.get("type") == "tool_use"),
            raw={"role": "assistant", "content": list(said.content)},
            input_tokens=usage.input_tokens + cached,
            output_tokens=usage.output_tokens,
            stopped=said.stop_reason or "",
        )


def _call(block: Mapping[str, object]) -> ToolCall:
    given = block.get("input")
    return ToolCall(
        call_id=str(block.get("id", "")),
        name=str(block.get("name", "")),
        arguments=given if isinstance(given, dict) else None,
    )


def _messages(ask: Ask) -> list[object]:
    """The conversation; its last result is the mark up to which the next request will be the same."""
    last = len(ask.conversation) - 1
    return [_message(entry, pictures=ask.pictures, marked=at == last) for at, entry in enumerate(ask.conversation)]


def _message(entry: Entry, *, pictures: bool, marked: bool) -> object:
    if isinstance(entry, str):
        return {"role": "user", "content": entry}
    if isinstance(entry, Turn):
        return entry.raw
    blocks = [_result(result, pictures=pictures) for result in entry]
    if marked and blocks:
        blocks[-1]["cache_control"] = _CACHE
    return {"role": "user", "content": blocks}


def _result(result: ToolResult, *, pictures: bool) -> dict[str, object]:
    content: list[object] = [{"type": "text", "text": result.said(pictures=pictures)}]
    if pictures:
        content += [
            {"type": "image", "source": {"type": "base64", "media_type": one.media_type, "data": one.base64}}
            for one in result.pictures
        ]
    return {"type": "tool_result", "tool_use_id": result.call_id, "content": content, "is_error": result.is_error}
