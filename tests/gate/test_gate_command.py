"""The command: what it refuses, what it writes, how it exits; with Lomi and with another tool server."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from agent_gate import stage
from agent_gate.main import main
from agent_gate.outcome import Outcome, comparison_of
from agent_gate.phone import free_pairs
from gate_runs import TASKS

from lomi.core.processes import name_of
from lomi.demo.broker import Broker
from lomi.demo.record import DemoFailedError

ROOT = Path(__file__).parents[2]
PLAIN = shlex.join([sys.executable, str(Path(__file__).with_name("plain_server.py"))])


def gate(*words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run it as ci/agent-gate does, without its set-up."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "ci"), **variables}
    return subprocess.run(
        [sys.executable, "-m", "agent_gate", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
        env=environment,
    )


def started_gate(*words: str) -> "subprocess.Popen[str]":
    """The same, still running."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "ci")}
    return subprocess.Popen(
        [sys.executable, "-m", "agent_gate", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--model", "some-model"], "needs its --endpoint"),
        (["--endpoint", "http://127.0.0.1:9/v1"], "needs the --model"),
        (["--task", "no-such"], "--list names them"),
        (["--task", "injection", "--saboteur", "twice"], "can be spoiled by twice"),
        (["--no-lomi"], "leaves nothing to try"),
        (["--server", "x", "--can", "fly"], "--can takes one of"),
        (["--server", ""], "--server needs a command"),
        (["--server", "'unclosed"], "--server 'unclosed: No closing quotation"),
        (["--json", "/nowhere/out.json"], "can't be written"),
        (["--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "--saboteur", "twice"], "leave out --endpoint"),
    ],
)
def test_a_wrong_command_line_is_refused_with_a_hint(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, one sentence, nothing started."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert hint in capsys.readouterr().err


def test_a_key_that_no_header_takes_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The library's own error would show it."""
    monkeypatch.setenv("MY_KEY", "very-secret\x07word")
    with pytest.raises(SystemExit) as ended:
        main(["--endpoint", "http://127.0.0.1:9/v1", "--model", "m", "--key-env", "MY_KEY"])
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert "the key in MY_KEY holds what can't be sent" in said.err
    assert "secret" not in said.out + said.err


@pytest.mark.parametrize("words", [[], ["--key-env", "MY_KEY"], ["--key-env=MY_KEY"], ["--key", "MY_KEY"]])
def test_the_set_up_is_given_no_key(tmp_path: Path, words: list[str]) -> None:
    """Only the gate itself has it, not what is fetched and run before it."""
    (tmp_path / "ci").mkdir()
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nenv > {shlex.quote(str(tmp_path / 'gate'))}\n")
    python.chmod(0o755)
    setup = f"root=$PWD python={shlex.quote(str(python))}\nlomi_venv() {{ env > set-up; }}\n"
    setup += "lomi_help() { false; }\nlomi_chromium() { :; }\n"
    (tmp_path / "ci" / "setup.sh").write_text(setup)
    (tmp_path / "ci" / "agent-gate").write_text((ROOT / "ci" / "agent-gate").read_text())
    name = "MY_KEY" if words else "LOMI_GATE_KEY"
    environment = {**os.environ, name: "very-secret-word", "UNSET_PROBE": "1"}
    subprocess.run(["bash", str(tmp_path / "ci" / "agent-gate"), *words], env=environment, check=True, timeout=30)
    assert "UNSET_PROBE=1" in (tmp_path / "set-up").read_text()
    assert "very-secret-word" not in (tmp_path / "set-up").read_text()
    assert f"{name}=very-secret-word" in (tmp_path / "gate").read_text()


def test_servers_are_compared_over_what_all_were_tried_on() -> None:
    """A server that could do less is not cheaper for it."""
    made = [
        Outcome(server=server, task=task, title="", reasons=(), calls=calls, applicable=calls > 0)
        for server, task, calls in [("lomi", "a", 3), ("lomi", "b", 50), ("other", "a", 4), ("other", "b", 0)]
    ]
    head, lomi, other = comparison_of(made, 20)
    assert head == "The 1 tasks that all of them were tried on:"
    assert "lomi, 1 passed" in lomi
    assert lomi.split()[3] == "3"
    assert other.split()[3] == "4"
    assert comparison_of(made[:2], 20) == []


def test_the_list_names_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    """With what it needs of a tool server."""
    assert main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(TASKS)


@pytest.mark.timeout(180)
def test_another_server_is_tried_on_what_it_can(tmp_path: Path) -> None:
    """Pages by address, a phone by adb; what it can't is left out, what it does wrong fails, what it leaves ends."""
    note = tmp_path / "note"
    said = gate(
        *("--no-lomi", "--server", PLAIN, "--can", "page,phone", "--json", str(tmp_path / "out.json")),
        *("--task", "settings-toggle", "--task", "injection", "--task", "lease-lost", "--task", "iframe"),
        *("--transcripts", str(tmp_path / "kept"), "--key-env", "MY_KEY"),
        PLAIN_NOTE=str(note),
        MY_KEY="very-secret-word",
    )
    assert said.returncode == 1, said.stderr
    assert "No model is asked" in said.stdout
    whole = json.loads((tmp_path / "out.json").read_text())
    assert whole["tokensEstimated"] is True
    assert {one["task"]: one["result"] for one in whole["outcomes"]} == {
        "settings-toggle": "pass",
        "injection": "pass",
        "lease-lost": "-",
        "iframe": "FAIL",
    }, said.stdout
    assert "2 of 3 passed" in said.stdout
    kept = json.loads((tmp_path / "kept" / "server-1-injection.json").read_text())
    assert kept["conversation"][0]["user"].startswith("What does the blue mug cost at http://127.0.0.1:")
    started = [json.loads(line) for line in note.read_text().splitlines()]
    assert len(started) == 3
    assert [one["daemon"] for one in started if name_of(one["daemon"]) is not None] == []
    assert all("MY_KEY" not in one["variables"] for one in started)


def test_a_phones_ports_are_given_to_nobody_who_asks_for_any() -> None:
    """They are free, and stay so until the phone boots: Linux hands out those from 32,768 on, unless told otherwise."""
    ports = free_pairs(40)
    assert len(set(ports)) == 40
    assert all(port % 2 == 0 and port + 1 < 32_768 for port in ports)


def test_the_key_is_not_in_the_environment_of_what_lomi_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the broker is given it nor anything that inherits from the gate, as the helper may."""
    environments: list[dict[str, str]] = []

    @asynccontextmanager
    async def noted(policy: Path, project: Path, environment: Mapping[str, str], log: Path) -> AsyncIterator[Broker]:
        environments.extend([dict(environment), dict(os.environ)])
        raise DemoFailedError("enough was seen")
        yield

    monkeypatch.setattr(stage, "opened_broker", noted)
    monkeypatch.setenv("MY_KEY", "very-secret-word")
    assert main(["--task", "injection", "--key-env", "MY_KEY", "--json", str(tmp_path / "out.json")]) == 1
    assert len(environments) == 2
    assert all("very-secret-word" not in environment.values() for environment in environments)
    assert "enough was seen" in (tmp_path / "out.json").read_text()


@pytest.mark.timeout(180)
def test_lomi_alone_exits_well_only_where_all_passed(tmp_path: Path) -> None:
    """One table row with calls, tokens, seconds; exit code 0."""
    said = gate("--task", "injection", "--api", "anthropic", "--json", str(tmp_path / "out.json"))
    assert said.returncode == 0, said.stdout + said.stderr
    (outcome,) = json.loads((tmp_path / "out.json").read_text())["outcomes"]
    assert outcome["server"] == "lomi"
    assert outcome["calls"] > 0 < outcome["input_tokens"]
    assert "1 of 1 passed" in said.stdout


@pytest.mark.timeout(120)
def test_an_endpoint_that_refuses_ends_the_run_at_once(tmp_path: Path) -> None:
    """A wrong key would fail twenty tasks; it is said once, and the key is not shown."""
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    asked: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.headers["Authorization"])
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_error(401, "no")

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}/v1"
            said = gate(
                *("--endpoint", url, "--model", "m", "--key-env", "MY_KEY", "--no-lomi", "--server", PLAIN),
                *("--task", "injection", "--task", "iframe", "--transcripts", str(tmp_path)),
                MY_KEY="very-secret-word",
            )
        finally:
            server.shutdown()
            thread.join()
    assert said.returncode == 1
    assert asked == ["Bearer very-secret-word"]
    assert "401" in said.stderr
    assert "hint: check --endpoint" in said.stderr
    everything = said.stdout + said.stderr + "".join(path.read_text() for path in tmp_path.iterdir())
    assert "very-secret-word" not in everything
