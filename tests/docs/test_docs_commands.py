"""Every command of the README and of docs/ is run, every policy checked, every example of a call parsed."""

import asyncio
import contextlib
import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harness import World, agent, opened_world, owner
from pages import LANGUAGES, ROOT, Fence, fences, written_pages
from places import Places, named

from lomi.broker.policy import parse_policy
from lomi.contract.parse import parse
from lomi.contract.tools import BY_NAME

TOKEN = "the-token-of-these-tests"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()
POLICY = f"""\
version = 1

[[client]]
label = "ci"
token_sha256 = "{DIGEST}"
scopes = ["*"]
origins = ["http://127.0.0.1:8000"]
terminal_profile = "bash"
"""
GATE = f"""\
#!/usr/bin/env bash
export PYTHONPATH={shlex.quote(str(ROOT / "ci"))}${{PYTHONPATH:+:$PYTHONPATH}}
exec {shlex.quote(sys.executable)} -m agent_gate "$@"
"""
"""`ci/agent-gate` without its set-up, which has tests of its own."""
RUN_S = 90.0
PAGES = {path.name: path for path in written_pages()}


def with_digest(text: str) -> str:
    """A page's policy with a hash where the page has a reader put one."""
    return text.replace("<from lomi policy token>", DIGEST)


class Sandbox:
    """A home, a project and a broker when one is wanted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.places = Places(world)
        (world.project / "lomi.toml").write_text(POLICY, encoding="utf-8")
        plan = 'version = 1\n[tests]\npaths = ["check_small.py"]\n'
        (world.project / "lab.toml").write_text(plan, encoding="utf-8")
        (world.project / "check_small.py").write_text("def test_small():\n    pass\n", encoding="utf-8")
        gate = world.project / "ci" / "agent-gate"
        gate.parent.mkdir()
        gate.write_text(GATE, encoding="utf-8")
        gate.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """What a reader's shell would have."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return self.world.environment(PATH=path, LOMI_CLIENT_LABEL="ci", LOMI_CLIENT_TOKEN=TOKEN)

    def prepare(self, *, broker: bool) -> None:
        """Have a broker run, or none and the history of one."""
        running = self.world.broker is not None and self.world.broker.alive
        if running and not broker:
            self.world.stop()
        elif not running and (broker or not (self.world.home / "agent-control").is_dir()):
            self.world.start()
            if not broker:
                self.world.stop()

    def run(self, command: list[str], fence: Fence, names: dict[str, str]) -> None:
        """Run a fence's text to its end and hold its exit code against the fence."""
        text = named(fence.text, {**self.places.names, **names})
        ended = subprocess.run(
            [*command, text],
            cwd=self.world.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=float(fence.word("within") or RUN_S),
            check=False,
        )
        wanted = {int(code) for code in (fence.word("exit") or "0").split(",")}
        said = (ended.stdout + ended.stderr).decode(errors="replace")
        assert ended.returncode in wanted, f"{fence.place} ended with {ended.returncode}:\n{text}\n{said}"
        assert "Traceback" not in said, f"{fence.place}:\n{said}"

    def see_it_end(self) -> None:
        """After `lomi down`: the broker ends in good order, and so does all that it started."""
        if self.world.broker is not None:
            assert self.world.broker.wait() == 0, self.world.broker.stderr()
            self.world._orderly = True
        assert self.world.left_processes() == []

    def run_up(self, fence: Fence) -> None:
        """A foreground `lomi up`: wait until it says that it is up, then end it as Ctrl-C does."""
        command = ["bash", "-euo", "pipefail", "-c", "exec " + fence.text.strip()]
        with subprocess.Popen(
            command,
            cwd=self.world.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline().decode()
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read().decode()
        assert "is up for" in first, f"{fence.place}:\n{first}{rest}"
        assert process.returncode == 0, f"{fence.place}:\n{first}{rest}"

    @contextlib.asynccontextmanager
    async def names(self, fence: Fence) -> AsyncIterator[dict[str, str]]:
        """Real ids for the words PANEL and SESSION, of a client that is connected meanwhile."""
        if "PANEL" not in fence.text and "SESSION" not in fence.text:
            yield {}
            return
        async with agent(self.world, "ci", token=TOKEN) as qa:
            made = await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="shell"))
            held = await owner(self.world, "ps")
            yield {"PANEL": made.result["panelId"], "SESSION": held["sessions"][0]["id"]}


async def run_fence(sandbox: Sandbox, fence: Fence) -> None:
    """Do with one fence what its info string says."""
    if fence.language == "toml" and "policy" in fence.words:
        text = with_digest(fence.text)
        parse_policy(text)
        (sandbox.world.project / "lomi.toml").write_text(text, encoding="utf-8")
        await asyncio.to_thread(sandbox.run, ["lomi", "policy", "check"], check_of(fence), {})
    elif fence.language in ("sh", "python") and fence.word("skip") is None:
        await asyncio.to_thread(sandbox.prepare, broker="broker" in fence.words)
        if "up" in fence.words:
            await asyncio.to_thread(sandbox.run_up, fence)
            return
        if fence.word("stays") is not None or fence.word("typed") is not None:
            beside = sandbox.places.stay if fence.word("stays") is not None else sandbox.places.type
            await asyncio.to_thread(beside, fence, sandbox.environment())
            return
        shell = ["bash", "-euo", "pipefail", "-c"]
        command = shell if fence.language == "sh" else [sys.executable, "-c"]
        async with sandbox.names(fence) as names:
            await asyncio.to_thread(sandbox.run, command, fence, names)
        if "lomi down" in fence.text:
            await asyncio.to_thread(sandbox.see_it_end)


def check_of(fence: Fence) -> Fence:
    """The command that checks a policy fence, once it is written."""
    return Fence(fence.page, fence.line, "sh", (), "lomi.toml")


@pytest.mark.timeout(400)  # some fifteen processes one after another, beside whatever else the machine does
@pytest.mark.parametrize("page", PAGES)
async def test_the_commands_of_a_page_run(page: str) -> None:
    """Each command does what it is shown for, in order, and leaves nothing running."""
    runnable = [f for f in fences(PAGES[page]) if f.language in ("sh", "python") or "policy" in f.words]
    if not runnable:
        return
    with opened_world(POLICY, start=False) as world:
        sandbox = Sandbox(world)
        try:
            for fence in runnable:
                await run_fence(sandbox, fence)
        finally:
            await asyncio.to_thread(sandbox.places.end)
        await asyncio.to_thread(sandbox.prepare, broker=False)


def test_only_the_readme_shows_a_command_that_is_run_elsewhere() -> None:
    """No page of docs/ shows a command as one that works without a test that runs it."""
    skipped = [f.place for page in PAGES.values() for f in fences(page) if f.word("skip") and page.name != "README.md"]
    assert skipped == []


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_are_well_formed(page: str) -> None:
    """JSON and TOML parse; the arguments shown for a tool are arguments of that tool; no fence has an unknown word."""
    for fence in fences(PAGES[page]):
        assert fence.language in LANGUAGES, f"{fence.place}: {fence.language}"
        if fence.language == "json":
            json.loads(fence.text)
            if fence.words:
                parse(BY_NAME[fence.words[0]], json.dumps(json.loads(fence.text)).encode())
        elif fence.language == "toml":
            tomllib.loads(fence.text)
