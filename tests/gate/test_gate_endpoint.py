"""The drivers' way to an endpoint: both APIs, retries, refusals, and where the key may be seen."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
from agent_gate.anthropic import Anthropic
from agent_gate.endpoint import TRIES, Endpoint, EndpointError
from agent_gate.http import Answer, Request, serving
from agent_gate.openai import OpenAI
from agent_gate.standin.server import MODEL, StandIn
from agent_gate.talk import Ask, BadAnswerError, Dialect, Picture, ToolResult, ToolSchema, Turn
from gate_runs import DIALECTS, KEY

PICTURE = Picture(media_type="image/png", base64="aGVsbG8=")
TOOL = ToolSchema(name="look", description="Looks.", schema={"type": "object", "properties": {}})
PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}


def conversation(dialect: Dialect, api: str) -> list[object]:
    """One turn with two calls, answered, one of them with a picture."""
    calls = ["c1", "c2"]
    if api == "openai":
        said = {
            "choices": [
                {
                    "message": {
                        "content": None,
                        "tool_calls": [
                            {"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}}
                            for one in calls
                        ],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }
    else:
        said = {
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                *({"type": "tool_use", "id": one, "name": "look", "input": {}} for one in calls),
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3},
        }
    turn = dialect.turn(json.dumps(said).encode())
    assert [(call.call_id, call.name, call.arguments) for call in turn.calls] == [
        ("c1", "look", {}),
        ("c2", "look", {}),
    ]
    assert (turn.input_tokens, turn.output_tokens) == (7, 3)
    results = (
        ToolResult(call_id="c1", text="a", pictures=(PICTURE,)),
        ToolResult(call_id="c2", text="no", is_error=True),
    )
    return ["Do it.", turn, results]


def ask(conversation: list[object], *, pictures: bool = True) -> Ask:
    return Ask(
        model=MODEL, system="Be good.", tools=(TOOL,), conversation=conversation, most_output=100, pictures=pictures
    )  # type: ignore[arg-type]


def request(dialect: Dialect, api: str, body: object, key: str = KEY) -> Request:
    headers = {name.lower(): value for name, value in dialect.headers(key).items()}
    return Request(
        method="POST",
        path=PATHS[api],
        query="",
        headers={"content-type": "application/json", **headers},
        body=json.dumps(body).encode(),
    )


@pytest.mark.parametrize("api", DIALECTS)
def test_a_conversation_keeps_the_rules_of_its_api(api: str) -> None:
    """Each call has its result, named, in order; the stand-in refuses anything else."""
    dialect = DIALECTS[api]()
    standin = StandIn(KEY, task="none", hiccups=False)
    said = standin.answer(request(dialect, api, dialect.body(ask(conversation(dialect, api)))))
    assert said.status == 200, said.body
    assert "no script" in dialect.turn(said.body).text


@pytest.mark.parametrize("api", DIALECTS)
@pytest.mark.parametrize("spoil", ["result", "key", "model", "name", "order"])
def test_the_stand_in_refuses_what_the_real_api_would(api: str, spoil: str) -> None:
    """A missing result, a wrong key or model, a tool's name that is none, two turns of one side."""
    dialect = DIALECTS[api]()
    body = json.loads(json.dumps(dialect.body(ask(conversation(dialect, api)))))
    key = "another" if spoil == "key" else KEY
    if spoil == "result":
        if api == "openai":
            del body["messages"][3]
        else:
            del body["messages"][-1]["content"][0]
    elif spoil == "model":
        body["model"] = "another"
    elif spoil == "name":
        tool = body["tools"][0]
        (tool["function"] if api == "openai" else tool)["name"] = "no name"
    elif spoil == "order":
        body["messages"].append(body["messages"][1 if api == "openai" else 0])
        body["messages"].append(body["messages"][1 if api == "openai" else 0])
    said = StandIn(KEY, hiccups=False).answer(request(dialect, api, body, key))
    assert said.status in (400, 401, 404), said


@pytest.mark.parametrize("api", DIALECTS)
def test_pictures_go_only_to_models_that_take_them(api: str) -> None:
    """Without pictures a model is told that there was one."""
    dialect = DIALECTS[api]()
    told = conversation(dialect, api)
    assert PICTURE.base64 in json.dumps(dialect.body(ask(told)))
    blind = json.dumps(dialect.body(ask(told, pictures=False)))
    assert PICTURE.base64 not in blind
    assert "not shown" in blind


def test_an_anthropic_turn_goes_back_as_it_came() -> None:
    """Thinking and its signature must not be lost or changed."""
    _, turn, _ = conversation(Anthropic(), "anthropic")
    assert isinstance(turn, Turn)
    assert {"type": "thinking", "thinking": "hm", "signature": "s"} in turn.raw["content"]  # type: ignore[index]


def test_a_call_goes_back_to_openai_as_it_came() -> None:
    """Signatures that a server hangs on its calls are kept; its reasoning is not sent back."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}, "extra_content": {"s": 1}}
    message = {"role": "assistant", "content": "hm", "reasoning": "long", "tool_calls": [call]}
    turn = OpenAI().turn(json.dumps({"choices": [{"message": message}]}).encode())
    assert turn.raw == {"role": "assistant", "content": "hm", "tool_calls": [call]}


def test_arguments_that_are_no_json_are_no_arguments() -> None:
    """The model is told, instead of a call with guessed arguments."""
    function = {"name": "look", "arguments": '{"a":'}
    message = {"tool_calls": [{"id": "c", "type": "function", "function": function}]}
    turn = OpenAI().turn(json.dumps({"choices": [{"message": message}]}).encode())
    assert turn.calls[0].arguments is None


@pytest.mark.parametrize("answer", [b"", b"<html>", b'{"choices": []}', b'{"error": "x"}', b'{"content": "x"}'])
@pytest.mark.parametrize("api", DIALECTS)
def test_an_answer_in_no_form_is_an_error(api: str, answer: bytes) -> None:
    """A proxy's page is not the model's silence."""
    with pytest.raises(BadAnswerError):
        DIALECTS[api]().turn(answer)


class Server:
    """Answers with one status after another, then well."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.answers:
            return self.answers.pop(0)
        return Answer(body=b'{"choices": [{"message": {"content": "hello"}}]}', content_type="application/json")


@asynccontextmanager
async def endpoint(server: Callable[[Request], Answer], pauses: list[float]) -> AsyncIterator[Endpoint]:
    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async with serving(server) as origin, httpx2.AsyncClient() as client:
        yield Endpoint(client, f"{origin}/v1", OpenAI(), KEY, sleep)


async def test_a_busy_endpoint_is_asked_again() -> None:
    """As long as it wishes where it says so, else longer each time."""
    pauses: list[float] = []
    server = Server(
        Answer(status=429, headers={"Retry-After": "7"}), *[Answer(status=code) for code in (500, 529, 503)]
    )
    async with endpoint(server, pauses) as asked:
        turn = await asked.ask(ask(["Do it."]))
    assert turn.text == "hello"
    assert asked.retries == len(pauses) == 4
    assert pauses[0] == 7
    assert all(0.5 * 2**n <= pause <= 2**n for n, pause in enumerate(pauses[1:], 1))


async def test_a_refusal_is_not_repeated_and_does_not_show_the_key() -> None:
    """A wrong key is wrong at every try."""
    pauses: list[float] = []
    server = Server(Answer(status=401, body=f"bad key {KEY}".encode()))
    async with endpoint(server, pauses) as asked:
        with pytest.raises(EndpointError) as refused:
            await asked.ask(ask(["Do it."]))
    assert refused.value.fatal
    assert KEY not in str(refused.value)
    assert len(server.requests) == 1
    assert pauses == []


async def test_an_endpoint_that_stays_busy_is_given_up() -> None:
    """After a bounded number of tries, with its last words."""
    pauses: list[float] = []
    server = Server(*[Answer(status=503, body=b"overloaded")] * TRIES)
    async with endpoint(server, pauses) as asked:
        with pytest.raises(EndpointError, match="overloaded") as silent:
            await asked.ask(ask(["Do it."]))
    assert len(server.requests) == TRIES
    assert (silent.value.silent, silent.value.fatal) == (True, False)
