"""One bad answer, server or moment costs its task alone: the gate goes on and keeps the rest."""

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from agent_gate import endpoint as endpoints
from agent_gate.drive import Drive, ModelSetting
from agent_gate.endpoint import Endpoint, EndpointError, without_key
from agent_gate.http import Answer, serving
from agent_gate.main import main
from agent_gate.openai import OpenAI
from agent_gate.outcome import Outcome, line_of
from agent_gate.talk import Ask, BadAnswerError, ToolCall, Turn
from agent_gate.task import Budget
from gate_runs import DIALECTS, KEY
from harness.moments import signalled_import
from test_gate_command import PLAIN, gate, started_gate

ODD = str(Path(__file__).with_name("odd_server.py"))
DEEP = '{"a":' * 700 + "1" + "}" * 700
DONE = {"choices": [{"message": {"content": "ANSWER: done"}}]}


@contextmanager
def answering(answers: Sequence[tuple[int, bytes]], before: Callable[[], object] = lambda: None) -> Iterator[str]:
    """An endpoint that gives these answers, one a request, the last of them for ever; its URL.

    `before` is called before each answer.
    """
    waiting = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            before()
            status, body = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()


def asked(url: str, tmp_path: Path, *words: str, **variables: str) -> "tuple[int, str, dict[str, Any]]":
    """Two tasks of the plain server with the model there: exit code, standard error, what `--json` holds."""
    said = gate(
        *("--endpoint", url, "--model", "m", "--no-lomi", "--server", PLAIN, "--task", "injection", "--task", "iframe"),
        *("--json", str(tmp_path / "out.json"), "--transcripts", str(tmp_path / "kept"), *words),
        **variables,
    )
    assert "Traceback" not in said.stderr, said.stderr
    return said.returncode, said.stderr, json.loads((tmp_path / "out.json").read_text())


@pytest.mark.timeout(120)
def test_arguments_that_no_tool_can_be_sent_are_told_to_the_model(tmp_path: Path) -> None:
    """Half a letter, no end, no bottom: an error to read, and the gate goes on to the next task."""
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "browser_snapshot", "arguments": text}}
        for number, text in enumerate(['{"url": "\\ud800"}', "[" * 100_000, DEEP])
    ]
    turn = {"choices": [{"message": {"content": None, "tool_calls": calls}}]}
    with answering([(200, json.dumps(turn).encode()), (200, json.dumps(DONE).encode())]) as url:
        code, _, whole = asked(url, tmp_path)
    assert code == 1
    assert [(one["task"], one["calls"], one["result"]) for one in whole["outcomes"]] == [
        ("iframe", 3, "FAIL"),
        ("injection", 0, "FAIL"),
    ]
    assert whole["complete"] is True
    kept = json.loads((tmp_path / "kept" / "server-1-iframe.json").read_text())
    results = next(entry["results"] for entry in kept["conversation"] if "results" in entry)
    assert [one["isError"] for one in results] == [True] * 3
    assert all("not a JSON object of valid Unicode" in one["text"] for one in results)


@pytest.mark.parametrize("answer", [b"[" * 100_000, b'{"x":' * 700 + b"1" + b"}" * 700])
@pytest.mark.parametrize("api", DIALECTS)
def test_an_answer_without_a_bottom_is_in_no_form(api: str, answer: bytes) -> None:
    """It fails the task, not the gate."""
    with pytest.raises(BadAnswerError):
        DIALECTS[api]().turn(answer)


@pytest.mark.parametrize("value", [json.loads(DEEP), "\ud800"])
@pytest.mark.parametrize("api", DIALECTS)
def test_a_turn_that_can_not_be_sent_back_is_in_no_form(api: str, value: object) -> None:
    """What a server hangs on its calls must go back with them."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}, "extra": value}
    block = {"type": "tool_use", "id": "c", "name": "look", "input": {"x": value}}
    message = {"choices": [{"message": {"tool_calls": [call]}}], "content": [block]}
    with pytest.raises(BadAnswerError):
        DIALECTS[api]().turn(json.dumps(message).encode())


@pytest.mark.parametrize(
    ("api", "usage", "named"),
    [
        ("openai", {"prompt_tokens": -1}, "prompt_tokens"),
        ("openai", {"completion_tokens": -(10**9)}, "completion_tokens"),
        ("anthropic", {"input_tokens": -1}, "input_tokens"),
        ("anthropic", {"output_tokens": -1}, "output_tokens"),
        ("anthropic", {"cache_read_input_tokens": -1}, "cache_read_input_tokens"),
        ("anthropic", {"cache_creation_input_tokens": -1}, "cache_creation_input_tokens"),
    ],
)
def test_a_negative_usage_is_refused_by_name(api: str, usage: dict[str, int], named: str) -> None:
    """It would make a budget endless."""
    body = {"choices": [{"message": {"content": "x"}}], "content": [{"type": "text", "text": "x"}], "usage": usage}
    with pytest.raises(BadAnswerError, match=named):
        DIALECTS[api]().turn(json.dumps(body).encode())


async def test_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is longer than any turn is not read to its end."""
    assert endpoints.MOST_ANSWER == 32 << 20
    monkeypatch.setattr(endpoints, "MOST_ANSWER", 1000)
    body = json.dumps({"choices": [{"message": {"content": "x" * 1000}}]}).encode()
    ask = Ask(model="m", system="", tools=(), conversation=["Do it."], most_output=1)
    async with serving(lambda _: Answer(body=body)) as origin, httpx2.AsyncClient() as client:
        with pytest.raises(BadAnswerError, match="more than 1000 bytes"):
            await Endpoint(client, origin, OpenAI(), KEY).ask(ask)


@pytest.mark.timeout(120)
def test_a_refusal_in_between_loses_no_result_and_rules_no_terminal(tmp_path: Path) -> None:
    """The first task's outcome is kept, the second's says what happened, and its text is shown harmless."""
    refusal = "go \x1b[2Jaway \u202e".encode()
    with answering([(200, json.dumps(DONE).encode()), (401, refusal)]) as url:
        code, errors, whole = asked(url, tmp_path)
    assert code == 1
    assert [one["task"] for one in whole["outcomes"]] == ["iframe", "injection"]
    assert any("status 401" in reason for reason in whole["outcomes"][1]["reasons"])
    assert whole["complete"] is False
    assert "\x1b" not in errors
    assert "\u202e" not in errors
    assert "go \\x1b[2Jaway" in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "out.json"]


def test_a_reason_rules_no_terminal() -> None:
    """One line of text, whoever wrote it."""
    outcome = Outcome(server="s", task="t", title="", reasons=("the endpoint: \x1b[2J\nall passed",))
    assert line_of(outcome, 5).splitlines()[1:] == ["    the endpoint: \\x1b[2J\\nall passed"]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("word", "seconds", "problem"),
    [
        ("hangs", 2, "did not tell of its tools within 2 s"),
        ("garbage", 2, "did not tell of its tools within 2 s"),
        ("repeats", 45, "lists its tools without an end"),
        ("endless", 2, "did not tell of its tools within 2 s"),
        ("no-list", 45, "did not tell of its tools: the server's answer is not in MCP's form."),
        ("dies", 45, "ended"),
    ],
)
def test_a_server_that_never_tells_of_its_tools_costs_its_tasks_alone(
    tmp_path: Path, word: str, seconds: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each task ends within its seconds with one line, and the next one is tried."""
    server = shlex.join([sys.executable, ODD, word])
    words = ["--no-lomi", "--server", server, "--seconds", str(seconds), "--task", "injection", "--task", "iframe"]
    assert main([*words, "--json", str(tmp_path / "out.json")]) == 1
    outcomes = json.loads((tmp_path / "out.json").read_text())["outcomes"]
    assert [one["reasons"] for one in outcomes] == [[f"the world of the task: the tool server {problem}"]] * 2
    assert "0 of 2 passed" in capsys.readouterr().out


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("word", "seconds", "reason"),
    [
        ("hangs-in-call", 10, "not done within 10 s"),
        ("garbage-in-call", 10, "not done within 10 s"),
        ("dies-in-call", 90, "the tool server ended while it was called"),
        ("bad-result", 90, ""),
    ],
)
def test_a_server_that_fails_in_a_call_costs_its_task_alone(
    tmp_path: Path, word: str, seconds: int, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is said in one line, the model is told where it can be, and nothing that the server wrote is shown."""
    server = shlex.join([sys.executable, ODD, word])
    words = ["--no-lomi", "--server", server, "--seconds", str(seconds), "--task", "injection", "--saboteur", "nothing"]
    assert main([*words, "--json", str(tmp_path / "out.json"), "--transcripts", str(tmp_path)]) == 1
    (outcome,) = json.loads((tmp_path / "out.json").read_text())["outcomes"]
    assert outcome["reasons"][: len(outcome["reasons"]) - 2] == ([reason] if reason else [])
    assert outcome["calls"] == 1
    kept = (tmp_path / "server-1-injection.json").read_text()
    assert ("The call failed: the server's answer is not in MCP's form." in kept) == (not reason)
    shown = capfd.readouterr()
    assert "0 of 1 passed" in shown.out
    assert shown.err == ""
    assert "\x1b" not in shown.out


SECRET = "sk-very/\"secret\"-'word'"
AS_JSON = json.dumps(SECRET)[1:-1]


@pytest.mark.parametrize("written", [SECRET, AS_JSON, AS_JSON.replace("/", "\\/"), repr(SECRET)[1:-1]])
def test_a_key_is_known_however_it_is_written(written: str) -> None:
    """Bare, or as JSON or Python write it; and no key is in no text."""
    assert without_key(f"bad key {written}!", SECRET) == "bad key [key]!"
    assert without_key("bad", "") == "bad"


@pytest.mark.timeout(120)
def test_an_endpoint_that_echoes_the_key_shows_it_nowhere(tmp_path: Path) -> None:
    """As an answer, a tool's name, a refusal in JSON: not on the terminal, in the results or in what is kept."""
    answer = {"choices": [{"message": {"content": f"ANSWER: {SECRET}"}}]}
    function = {"name": SECRET, "arguments": json.dumps({SECRET: [SECRET]})}
    call = {"choices": [{"message": {"tool_calls": [{"id": SECRET, "type": "function", "function": function}]}}]}
    refusal = json.dumps({"error": SECRET}).replace("/", "\\/").encode()
    bodies = [(200, json.dumps(call).encode()), (200, json.dumps(answer).encode()), (401, refusal)]
    with answering(bodies) as url:
        said = gate(
            *("--endpoint", url, "--model", "m", "--no-lomi", "--server", PLAIN, "--key-env", "MY_KEY"),
            *("--task", "injection", "--task", "iframe", "--task", "console-error", "--transcripts", str(tmp_path)),
            *("--json", str(tmp_path / "out.json")),
            MY_KEY=f" {SECRET}\n",
        )
    assert said.returncode == 1
    everything = said.stdout + said.stderr + "".join(path.read_text() for path in tmp_path.iterdir())
    assert "[key]" in said.stderr
    assert "[key]" in (tmp_path / "server-1-iframe.json").read_text()
    assert "secret" not in everything


async def test_a_redirect_is_not_followed_with_the_key() -> None:
    """The key goes where it was sent and nowhere else."""
    met: list[object] = []

    def elsewhere(request: object) -> Answer:
        met.append(request)
        return Answer()

    ask = Ask(model="m", system="", tools=(), conversation=["Do it."], most_output=1)
    async with serving(elsewhere) as other, httpx2.AsyncClient() as client:
        moved = Answer(status=307, headers={"Location": f"{other}/v1"})
        async with serving(lambda _: moved) as origin:
            with pytest.raises(EndpointError, match="status 307"):
                await Endpoint(client, origin, OpenAI(), KEY).ask(ask)
    assert met == []


class Silent:
    """An endpoint that answers some times with a call, then never again; and a server without tools."""

    schemas = ()
    instructions = ""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    async def ask(self, _: Ask) -> Turn:
        """A call, or nothing."""
        self.turns -= 1
        if self.turns < 0:
            raise EndpointError("no answer in 6 tries", silent=True)
        calls = (ToolCall(call_id="c", name="x", arguments={}),)
        return Turn(text="", calls=calls, raw={}, input_tokens=0, output_tokens=0, stopped="")

    async def call(self, *_: object) -> object:
        """Whatever."""
        return object()


@pytest.mark.parametrize("turns", [0, 1])
async def test_an_endpoint_that_falls_silent_in_a_task_costs_that_task(turns: int) -> None:
    """One request may be too much for it; only where a task's first one is never answered the whole run ends."""

    async def called(_: str) -> None:
        """Nothing happens."""

    silent = Silent(turns)
    drive = Drive(cast("Any", silent), cast("Any", silent), ModelSetting(model="m"), called)
    course = await drive.run("", "Do it.", Budget())
    assert course.problem == "the endpoint: no answer in 6 tries"
    assert course.fatal == (turns == 0)


def test_an_interrupt_before_it_has_begun_ends_it_without_a_word(tmp_path: Path) -> None:
    """While it still reads its own modules nothing has been started, and there is nothing to say."""
    environment = signalled_import(os.environ, tmp_path / "site", "msgspec")
    environment["PYTHONPATH"] += f":{Path(__file__).parents[2] / 'ci'}"
    ran = subprocess.run(
        [sys.executable, "-m", "agent_gate", "--list"], env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_every_task_that_was_finished(tmp_path: Path, sent: signal.Signals) -> None:
    """In the second of three tasks: the first one's result is in the file, which says that it is not complete."""
    reached, over = threading.Event(), threading.Event()
    requests: list[int] = []

    def second(number: int) -> None:
        if number == 2:
            reached.set()
            over.wait(60)

    out = tmp_path / "out.json"
    with answering([(200, json.dumps(DONE).encode())], lambda: (requests.append(1), second(len(requests)))) as url:
        process = started_gate(
            *("--endpoint", url, "--model", "m", "--no-lomi", "--server", PLAIN, "--json", str(out)),
            *("--task", "injection", "--task", "iframe", "--task", "console-error"),
        )
        try:
            assert reached.wait(60)
            process.send_signal(sent)
            _, errors = process.communicate(timeout=60)
        finally:
            over.set()
            process.kill()
            process.wait()
    assert process.returncode == 130
    assert errors == "lomi: interrupted; what the gate had started has been ended\n"
    whole = json.loads(out.read_text())
    assert whole["complete"] is False
    assert [one["task"] for one in whole["outcomes"]] == ["iframe"]
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
