"""The prompt of a foreground `lomi up`, on a real terminal: what it shows, what counts as yes, what it refuses."""

import asyncio
import contextlib
import json
import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Agent, World, agent, opened_world, owner, until
from harness.process import BrokerProcess

from lomi.broker.deciders import DecisionRequest, plan_hash
from lomi.cli.prompt import PromptDecider, StandardTerminal
from lomi.client.find import own_broker
from lomi.core.grant import Grant
from lomi.core.port import Plan

LOMI = Path(sys.executable).with_name("lomi")


class Foreground(BrokerProcess):
    """`lomi up` as a person runs it; `shown` is everything on its terminal so far."""

    def __init__(self, world: World, *arguments: str, **environment: str) -> None:
        self._master, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._process = subprocess.Popen(
            [LOMI, "up", str(world.project), *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=world.environment(**environment),
            start_new_session=True,
        )
        os.close(slave)
        os.set_blocking(self._master, False)
        self.pid = self._process.pid
        self.shown = ""
        self._world = world

    def look(self) -> str:
        """Take in what is on the terminal."""
        with contextlib.suppress(BlockingIOError, OSError):
            while content := os.read(self._master, 65536):
                self.shown += content.decode(errors="replace").replace("\r\n", "\n")
        return self.shown

    async def until_shown(self, text: str, count: int = 1) -> str:
        """Wait until a text is there so many times."""
        await until(lambda: self.look().count(text) >= count or not self.alive, 40)
        assert self.look().count(text) >= count, f"it ended instead: {self.shown}"
        return self.shown

    def type(self, text: str) -> None:
        """Type at the terminal."""
        os.write(self._master, text.encode())

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    async def ready(self) -> None:
        """Wait until it is up, and learn where it listens."""
        await self.until_shown("Lomi is up")
        found = own_broker(self._world.environment())
        self.discovery_file, self.discovery_key = found.discovery_file, found.discovery_key
        self._world.broker = self

    def wait(self, seconds: float = 20.0) -> int:
        return self._process.wait(seconds)

    def stop(self) -> int:
        self._process.terminate()
        return self.wait()

    def stderr(self) -> str:
        return self.look()

    def close(self) -> None:
        """End it, whatever happened."""
        if self.alive:
            self._process.kill()
        self._process.wait(10)
        os.close(self._master)


@pytest.fixture
def world() -> Iterator[World]:
    """A home without a broker."""
    with opened_world("", start=False) as made:
        yield made


@contextlib.asynccontextmanager
async def pairing(world: World, label: str) -> "contextlib.AsyncIterator[Agent]":  # type: ignore[name-defined]
    """A client that waits for a person."""
    async with agent(world, label, bind=False) as client:
        yield client


async def phase(client: Agent, wait_ms: int = 0) -> str:
    """The client's connection phase."""
    return str((await client.ask("lomi_status", waitMs=wait_ms)).data["connection"])


async def test_the_prompt_shows_everything_and_means_no_by_default(world: World) -> None:
    """Label, request id, certificate hash, exact scopes; Enter, `n`, other words, typing ahead are no; `y` is yes."""
    up = Foreground(world)
    try:
        await up.ready()
        async with agent(world, "host\x7e one", bind=False) as client:
            status = (await client.ask("lomi_status")).data
            assert status["connection"] == "pairing_required"
            text = await up.until_shown("Approve?")
            assert "host~ one" in text
            assert status["pairingRequestId"] in text
            assert re.search(r"certificate +sha256 [0-9a-f]{64}\n", text)
            scopes = re.search(r"scopes +(.+)\n", text).group(1).split()  # type: ignore[union-attr]
            assert "android.interact" in scopes
            reaching = {"terminal.execute", "files.mutate", "artifact.export", "chat.send"}
            assert not {"git.push", "settings.write", "android.setup", "android.manage", *reaching} & set(scopes)
            apart = text.partition("if you answer all, these too")[2]
            assert "terminal.execute: runs any command with your rights" in apart
            assert "ATTENTION" not in text
            assert not [scope for scope in scopes if scope.startswith("browser.")]
            assert str(os.getpid()) in text
            assert "[y/N/all]" in text
            up.type("\n")
            await up.until_shown("declined")
            assert await phase(client) == "disconnected"
            assert (await client.call("lomi_workspace_list", {})).code == "CONTROL_REVOKED"
        for number, words in enumerate(("n\ny\n", "yes please\n", "Y e s\n", "1\n"), 2):
            async with agent(world, f"host {number}", bind=False) as client:
                await up.until_shown("Approve?", number)
                up.type(words)
                await up.until_shown("declined", number)
                assert await phase(client) == "disconnected"
        async with agent(world, "last", bind=False) as client:
            await up.until_shown("Approve?", 6)
            up.type("YES\n")
            await until(lambda: "approved" in up.look())
            assert await phase(client, 20000) == "connected"
            await client.bind()
            granted = {
                row["name"] for row in (await client.ask("lomi_status")).data["capabilities"] if row["authorized"]
            }
            assert granted == set(scopes)
        assert up.stop() == 0
        assert up.look().count("approved") == 1
    finally:
        up.close()


async def granted(client: Agent) -> set[str]:
    """The scopes of a client that waits to be connected."""
    assert await phase(client, 20000) == "connected"
    return {row["name"] for row in (await client.ask("lomi_status")).data["capabilities"] if row["authorized"]}


async def test_all_gives_what_reaches_further(world: World) -> None:
    """`y` gives no shell, `all` does; --scope offers only what it names, and what it names exactly comes with `y`."""
    up = Foreground(world)
    try:
        await up.ready()
        for number, (answer, shell) in enumerate((("y", False), ("ALL", True)), 1):
            async with agent(world, f"host {number}", bind=False) as client:
                await up.until_shown("Approve?", number)
                up.type(f"{answer}\n")
                assert ("terminal.execute" in await granted(client)) is shell
        assert up.stop() == 0
    finally:
        up.close()
    up = Foreground(world, "--scope", "terminal.execute", "--scope", "android.launch")
    try:
        await up.ready()
        async with agent(world, "named", bind=False) as client:
            text = await up.until_shown("Approve? [y/N] ")
            assert "ATTENTION: terminal.execute: runs any command with your rights" in text
            up.type("y\n")
            assert await granted(client) == {
                *("workspace.read", "terminal.execute", "android.launch", "android.control", "android.read")
            }
        assert up.stop() == 0
    finally:
        up.close()


async def test_a_call_from_the_shell_waits_for_the_person(world: World) -> None:
    """`lomi call` waits, goes on once approved, ends with 1 when declined; of a client that goes the terminal tells."""
    up = Foreground(world)
    try:
        await up.ready()
        async with agent(world, "gone", bind=False):
            await up.until_shown("Approve?")
        await up.until_shown("no answer is needed any more")
        for number, (answer, code) in enumerate((("y", 0), ("n", 1)), 2):
            calling = await asyncio.create_subprocess_exec(
                *(LOMI, "call", "lomi_workspace_list"),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=world.environment(),
            )
            assert calling.stderr is not None
            async with asyncio.timeout(30):
                said = await calling.stderr.readline()
            assert said.startswith(b"waiting for the person at the broker to approve request ")
            await up.until_shown("Approve?", number)
            up.type(f"{answer}\n")
            out, err = await calling.communicate()
            assert calling.returncode == code, err
            assert (b"w1" in out) is (code == 0)
            assert (b"declined" in err) is (code == 1)
        assert up.stop() == 0
    finally:
        up.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scope", "android"), "no scope is named 'android'"),
        (("--scope", "browser.read"), "browser scopes need an --origin"),
        (("--origin", "127.0.0.1:8000"), "is no origin; write scheme://host[:port]"),
    ],
)
def test_an_offer_that_means_nothing_is_refused(world: World, arguments: tuple[str, ...], said: str) -> None:
    """One line and a hint, exit code 1, and no broker was started."""
    ran = world.command("up", str(world.project), *arguments)
    assert (ran.code, said in ran.err, ran.err.count("\n")) == (1, True, 2), ran.err
    assert not (world.home / "agent-control").exists()


async def test_a_decision_shows_the_whole_plan_and_is_used_once(world: World) -> None:
    """Opening a folder asks again, with path and plan hash; no is cancelled/none declined, yes is done and recorded."""
    up = Foreground(world)
    try:
        await up.ready()
        folder = world.root / "folder"
        folder.mkdir()
        async with agent(world, "host", bind=False) as client:
            await up.until_shown("Approve?")
            up.type("y\n")
            assert await phase(client, 20000) == "connected"
            await client.bind()
            for number, (answer, outcome) in enumerate(
                (("n\n", "receipt cancelled/none SCOPE_DENIED (declined)"), ("y\n", "receipt succeeded/complete")), 1
            ):
                opening = await client.revised(projectPath=str(folder), name="asked")
                task = asyncio.ensure_future(client.call("lomi_project_open", {**opening, "waitMs": 15000}))
                text = await up.until_shown("Allow this once?", number)
                assert f"folder {folder}" in text
                assert len(re.findall(r"plan [0-9a-f]{64}\n", text)) == number
                waiting = await client.call("lomi_project_open", {**opening, "waitMs": 0})
                assert waiting.state == "awaiting_user/none"
                up.type(answer)
                assert (await task).short == outcome
            third = await client.revised(projectPath=str(world.project / ".."), name="again")
            task = asyncio.ensure_future(client.call("lomi_project_open", {**third, "waitMs": 15000}))
            await up.until_shown("Allow this once?", 3)
            await owner(world, "revoke_all")
            with contextlib.suppress(Exception):
                await task
        assert up.stop() == 0
    finally:
        up.close()


async def test_the_prompt_refuses_in_a_terminal_of_ours(world: World) -> None:
    """`lomi up` where an agent may type, by its mark: one line, exit 1, no broker."""
    up = Foreground(world, LOMI_TERMINAL="1")
    try:
        assert await asyncio.to_thread(up.wait, 30) == 1
        assert "this terminal belongs to a broker" in up.look()
        assert not (world.home / "agent-control").exists()
    finally:
        up.close()


async def test_the_prompt_refuses_in_a_terminal_of_another_broker(world: World) -> None:
    """Typed by an agent into its own terminal, with the mark removed: refused all the same."""
    up = Foreground(world)
    try:
        await up.ready()
        async with agent(world, "host", bind=False) as client:
            await up.until_shown("Approve?")
            up.type("all\n")
            assert await phase(client, 20000) == "connected"
            await client.bind()
            created = await client.do("lomi_terminal_create", await client.revised(cwdRelative="", title="inside"))
            place = {name: created.result[name] for name in ("panelId", "terminalSessionId", "leaseId")}
            other = f"LOMI_HOME={world.root}/h2"
            command = f"env -u LOMI_TERMINAL {other} {LOMI} up . ; echo code $?"
            done = await client.do("lomi_terminal_run", {**await client.keyed(), **place, "command": command})
            lines = json.dumps(done.data["observation"]["lines"])
            assert "this terminal belongs to a broker" in lines
            assert "code 1" in lines
            assert not (world.root / "h2" / "agent-control").exists()
        assert up.stop() == 0
    finally:
        up.close()


async def test_a_question_that_nobody_answers_expires_and_a_late_answer_is_for_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a real terminal with a short time: expired is no, and what is typed after it does not answer the next one."""
    master, slave = pty.openpty()
    plan = Plan(title="Do it\x1b[2J", lines=("one",), binding=())
    request = DecisionRequest(
        operation_id="0" * 40,
        tool="lomi_project_open",
        session_label="host",
        grant=Grant(scopes=frozenset(), workspaces=frozenset()),
        plan=plan,
        plan_hash=plan_hash("lomi_project_open", plan),
        expires_s=0.2,
    )
    try:
        with os.fdopen(slave, "r") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            decider = PromptDecider(StandardTerminal(asyncio.get_running_loop()), lambda: request.grant)
            assert (await decider.decide(request)).verdict == "expired"
            os.write(master, b"y\n")
            assert (await decider.decide(request)).verdict == "expired"
    finally:
        os.close(master)
    shown = capsys.readouterr().err
    assert shown.count("expired") == 2
    assert "\x1b" not in shown
