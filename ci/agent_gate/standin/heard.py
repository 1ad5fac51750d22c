"""What the stand-in hears in a request of either API; it takes nothing that the real API would refuse."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_gate.anthropic import VERSION
from agent_gate.http import Request
from agent_gate.standin.part import Seen
from agent_gate.talk import Picture

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DATA_URL = re.compile(r"data:(image/\w+);base64,(.+)", re.DOTALL)
MOST_TOOLS = 128
Object = Mapping[str, object]


class RefusedError(Exception):
    """Raised for a request that the real API would refuse."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The task's prompt, the tools offered, and turn by turn what the calls brought."""

    prompt: str
    tools: frozenset[str]
    results: tuple[list[Seen], ...]
    picture_bytes: int


def _must(condition: object, text: str, status: int = 400) -> None:
    if not condition:
        raise RefusedError(status, text)


def _object(value: object, where: str) -> Object:
    if not isinstance(value, dict):
        raise RefusedError(400, f"{where} is not an object")
    return value


def _list(value: object, where: str) -> Sequence[object]:
    if not isinstance(value, list) or not value:
        raise RefusedError(400, f"{where} is not a list with something in it")
    return value


def _decoded(request: Request, model: str) -> Object:
    _must(request.method == "POST", "use POST", 405)
    _must("application/json" in request.headers.get("content-type", ""), "send JSON", 415)
    body = _object(json.loads(request.body), "the body")
    _must(body.get("model") == model, f"there is no model {body.get('model')!r}", 404)
    return body


def _tool_names(tools: Sequence[object], inside: str, schema: str) -> frozenset[str]:
    found: list[str] = []
    for tool in tools:
        told = _object(tool, "a tool")
        told = _object(told.get(inside), "a tool") if inside else told
        name = str(told.get("name", ""))
        _must(_NAME.fullmatch(name), f"{name!r} is no tool's name")
        shape = _object(told.get(schema), "a schema")
        _must(shape.get("type") == "object", f"the schema of {name} is no object's")
        _must(not {"oneOf", "anyOf", "allOf"} & set(shape), f"the schema of {name} is not one object's alone")
        found.append(name)
    _must(len(set(found)) == len(found), "two tools have one name")
    _must(len(found) <= MOST_TOOLS, f"more than {MOST_TOOLS} tools")
    return frozenset(found)


def hear_openai(request: Request, key: str, model: str) -> Heard:
    """A chat completion's request.

    Raises:
        RefusedError: the API would not take it.
    """
    _must(request.headers.get("authorization") == f"Bearer {key}", "bad key", 401)
    body = _decoded(request, model)
    messages = [_object(message, "a message") for message in _list(body.get("messages"), "messages")]
    _must([message.get("role") for message in messages[:2]] == ["system", "user"], "first the system, then the user")
    results: list[list[Seen]] = []
    pictures = 0
    place = 2
    while place < len(messages):
        said = messages[place]
        _must(said.get("role") == "assistant", f"message {place} is not the assistant's")
        wanted = [str(_object(call, "a call").get("id")) for call in _list(said.get("tool_calls"), "tool_calls")]
        told = messages[place + 1 : place + 1 + len(wanted)]
        _must([one.get("role") for one in told] == ["tool"] * len(wanted), "each call is followed by its result")
        _must([one.get("tool_call_id") for one in told] == wanted, "each result names its call")
        place += 1 + len(wanted)
        shown: tuple[Picture, ...] = ()
        if place < len(messages) and messages[place].get("role") == "user":
            shown = _openai_pictures(messages[place])
            place += 1
        pictures += sum(len(picture.base64) for picture in shown)
        seen = [Seen(text=str(one.get("content"))) for one in told]
        seen[-1] = Seen(text=seen[-1].text, pictures=shown)
        results.append(seen)
    tools = _tool_names(_list(body.get("tools"), "tools"), "function", "parameters")
    return Heard(prompt=str(messages[1].get("content")), tools=tools, results=tuple(results), picture_bytes=pictures)


def _openai_pictures(message: Object) -> tuple[Picture, ...]:
    found: list[Picture] = []
    for part in _list(message.get("content"), "content"):
        told = _object(part, "a part")
        if told.get("type") == "image_url":
            matched = _DATA_URL.fullmatch(str(_object(told.get("image_url"), "image_url").get("url")))
            if matched is None:
                raise RefusedError(400, "an image is a data URL here")
            found.append(Picture(media_type=matched[1], base64=matched[2]))
    return tuple(found)


def hear_anthropic(request: Request, key: str, model: str) -> Heard:
    """A messages request.

    Raises:
        RefusedError: the API would not take it.
    """
    _must(request.headers.get("x-api-key") == key, "bad key", 401)
    _must(request.headers.get("anthropic-version") == VERSION, "anthropic-version is missing")
    body = _decoded(request, model)
    most = body.get("max_tokens")
    _must(isinstance(most, int) and most > 0, "max_tokens is missing")
    _must(body.get("system"), "no system prompt")
    messages = [_object(message, "a message") for message in _list(body.get("messages"), "messages")]
    roles = [message.get("role") for message in messages]
    _must(roles == [("user", "assistant")[n % 2] for n in range(len(roles))], "user and assistant take turns")
    results: list[list[Seen]] = []
    for said, told in zip(messages[1::2], messages[2::2], strict=True):
        blocks = [_object(block, "a block") for block in _list(said.get("content"), "content")]
        wanted = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        given = [_object(block, "a block") for block in _list(told.get("content"), "content")]
        _must([block.get("type") for block in given] == ["tool_result"] * len(wanted), "each tool_use has its result")
        _must([block.get("tool_use_id") for block in given] == wanted, "each result names its tool_use")
        results.append([_anthropic_seen(block) for block in given])
    tools = _tool_names(_list(body.get("tools"), "tools"), "", "input_schema")
    pictures = sum(len(picture.base64) for turn in results for seen in turn for picture in seen.pictures)
    return Heard(prompt=str(messages[0].get("content")), tools=tools, results=tuple(results), picture_bytes=pictures)


def _anthropic_seen(block: Object) -> Seen:
    texts: list[str] = []
    pictures: list[Picture] = []
    for part in _list(block.get("content"), "content"):
        told = _object(part, "a part")
        if told.get("type") == "text":
            _must(told.get("text"), "text blocks must not be empty")
            texts.append(str(told.get("text")))
        else:
            source = _object(told.get("source"), "source")
            _must(source.get("type") == "base64", "an image is base64 here")
            pictures.append(Picture(media_type=str(source.get("media_type")), base64=str(source.get("data"))))
    return Seen(text="\n".join(texts), pictures=tuple(pictures))
