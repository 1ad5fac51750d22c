"""`lomi mcp-config`, `images`, `uninstall`, `completion` and help: what a newcomer and a leaver use."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from cli_runs import LOMI, at_terminal, lomi, lomi_in
from harness import ClientEntry, World, opened_world, policy_text
from harness.process import processes_that_name
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from lomi.cli.main import COMMANDS
from lomi.cli.mcp_config import HOSTS
from lomi.demo.main import MARK

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker where any host of this user may pair by its own name."""
    with opened_world(policy_text(*(ClientEntry(label=name) for name in HOSTS))) as opened:
        yield opened


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment with a home where nothing is yet."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "LOMI_HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": str(tmp_path)}


def _server(client: str, snippet: str) -> dict[str, Any]:
    whole = tomllib.loads(snippet) if client == "codex" else json.loads(snippet)
    (servers,) = whole.values()
    return dict(servers["lomi"])


async def test_every_host_is_given_what_starts_the_helper(world: World) -> None:
    """Each snippet parses in its host's format and names by absolute path a helper; that helper pairs."""
    with ThreadPoolExecutor(2) as pool:
        printed = pool.map(lambda name: lomi(world, "mcp-config", name, "--json").json, HOSTS)
        said = dict(zip(HOSTS, printed, strict=True))
    servers = {name: _server(name, one["snippet"]) for name, one in said.items()}
    for name, server in servers.items():
        assert Path(server["command"]).is_absolute()
        assert server["env"] == {"LOMI_CLIENT_LABEL": name, "LOMI_HOME": str(world.home)}
    vs_code = json.loads(shlex.split(said["vscode"]["command"])[-1])
    assert (vs_code.pop("name"), vs_code) == ("lomi", servers["vscode"])
    claude = shlex.split(said["claude-code"]["command"])
    assert claude[claude.index("--") + 1 :] == [servers["json"]["command"]]
    started = StdioServerParameters(
        command=servers["codex"]["command"], args=servers["codex"]["args"], env=servers["codex"]["env"]
    )
    async with Client(stdio_client(started)) as client:
        answer = await client.call_tool("lomi_status", {})
        assert answer.structured_content is not None
        assert answer.structured_content["data"]["connection"] == "connected"


def test_mcp_config_prints_the_snippet_alone(world: World) -> None:
    """Standard output is exactly the snippet, advice goes to standard error, and nothing is written."""
    ran = lomi(world, "mcp-config", "zed", "--name", "lab", "--profile", "qa", HOME=str(world.root / "home"))
    assert json.loads(ran.out)["context_servers"]["lab"]["args"] == ["--profile", "qa"]
    assert "~/.config/zed/settings.json" in ran.err
    assert not (world.root / "home").exists()
    assert lomi(world, "mcp-config", "emacs").code == 2


AWKWARD = {
    "beyond the first plane": "/tmp/📱 李/𝕷",
    "quotes and backslashes": """/tmp/a"b'c\\d $HOME `x`""",
    "control characters": "/tmp/a\tb\nc\x01\x7f\x85\u2028\u202e",
}


@pytest.mark.parametrize("locale", ["C.UTF-8", "ISO-8859-1"])
@pytest.mark.parametrize("case", AWKWARD)
def test_every_snippet_holds_the_home_as_it_is(bare: dict[str, str], tmp_path: Path, case: str, locale: str) -> None:
    """Whatever the path of the home and the encoding, the printed bytes are UTF-8 that its host's format reads back."""
    more = {"PYTHONUTF8": "0", "PYTHONIOENCODING": locale} if locale != "C.UTF-8" else {"LC_ALL": locale}
    environment = {**bare, **more, "LOMI_HOME": AWKWARD[case]}

    def snippet(name: str) -> bytes:
        ran = subprocess.run(
            [LOMI, "mcp-config", name], env=environment, cwd=tmp_path, capture_output=True, timeout=40, check=True
        )
        return ran.stdout

    with ThreadPoolExecutor(2) as pool:
        for name, printed in zip(HOSTS, pool.map(snippet, HOSTS), strict=True):
            assert _server(name, printed.decode())["env"]["LOMI_HOME"] == AWKWARD[case]
            assert all(c == "\n" or c.isprintable() for c in printed.decode())


def test_a_home_that_no_configuration_can_hold_is_refused(bare: dict[str, str], tmp_path: Path) -> None:
    """A path that is no UTF-8 is said on one line; so is a label that the broker would not take."""
    ran = lomi_in({**bare, "LOMI_HOME": "/tmp/\udcff"}, "mcp-config", "codex", cwd=tmp_path)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "Error: /tmp/\\udcff is no UTF-8, and no host's configuration can hold it",
        "hint: choose another LOMI_HOME",
    ]
    assert lomi_in(bare, "mcp-config", "codex", "--label", "a\nb", cwd=tmp_path).code == 2


def test_images_are_locked_verified_and_created(bare: dict[str, str], tmp_path: Path) -> None:
    """A paper image is listed as simulated, locked, verified against its lock, made into an AVD; drift is refused."""

    def run(*arguments: str) -> Any:
        return lomi_in(bare, "images", *arguments, cwd=tmp_path)

    listed = {image["name"]: image for image in json.loads(run("list", "--json").out)}
    assert listed["paper-36"]["simulated"] is True
    assert listed["atd-36-x86_64"]["checksum"] is None
    assert "SIMULATED" in next(line for line in run("list").out.splitlines() if line.startswith("paper-36"))
    assert run("lock", "paper-36").code == 0
    checksum = json.loads(run("show", "paper-36", "--json").out)["checksum"]
    verdict = json.loads(run("verify", "paper-36", "--json").out)
    assert (verdict["reproducible"], verdict["content"]) == (True, True)
    lock = tmp_path / "emulator-images.lock"
    lock.write_text(lock.read_text().replace(checksum, "sha256:" + "0" * 64))
    drift = run("lock", "paper-36")
    assert drift.code == 1
    assert drift.err.splitlines()[-1] == "hint: --renew takes the new content on purpose"
    assert run("lock", "paper-36", "--renew").code == 0
    made = Path(run("create", "paper-36", "phone").out.strip())
    assert (made / "config.ini").is_file()
    assert made.parent == tmp_path / "home" / "devices" / "avd"
    assert run("create", "paper-36", "phone").code == 1
    unknown = run("show", "paper-99")
    assert unknown.err.startswith("Error: no image is named 'paper-99'")
    lock.write_text("{")
    assert run("list").code == 1


def test_uninstall_removes_what_is_ours_and_keeps_the_rest() -> None:
    """It refuses while a broker runs, asks before it removes, keeps strange files, and leaves no process or socket."""
    with opened_world(policy_text(ClientEntry(label="qa"))) as world:
        refused = lomi(world, "uninstall", "--yes")
        assert refused.code == 1
        assert refused.err.splitlines()[-1] == "hint: stop it with `lomi down`"
        assert lomi(world, "down").code == 0
        assert world.live.wait() == 0
        (world.home / "mine.txt").write_text("keep")
        before = sorted(path.name for path in world.home.iterdir())
        assert "mine.txt (not Lomi's)" in lomi(world, "uninstall", "--dry-run").out
        assert lomi(world, "uninstall").code == 1, "asked without a terminal"
        assert at_terminal(world, "uninstall", answers=(("Remove it?", "n"),)).code == 1
        assert sorted(path.name for path in world.home.iterdir()) == before
        assert at_terminal(world, "uninstall", answers=(("Remove it?", "y"),)).code == 0
        assert [path.name for path in world.home.iterdir()] == ["mine.txt"]
        again = lomi(world, "uninstall", "--yes")
        assert (again.code, "holds nothing of Lomi" in again.err) == (1, True)


def test_uninstall_names_the_environment_and_the_reports_that_stay(bare: dict[str, str], tmp_path: Path) -> None:
    """The demo's report, and an environment that the checkout made; the commands shown remove just them."""
    (tmp_path / "home" / "agent-control").mkdir(parents=True)
    report = tmp_path / "it's here" / "demo-report"
    report.mkdir(parents=True)
    said = lomi_in(bare, "uninstall", "--dry-run", cwd=report.parent).out
    assert str(report) not in said, "nobody marked it as a report"
    (report / MARK).touch()
    environment = tmp_path / "an environment"
    (environment / "bin").mkdir(parents=True)
    (environment / ".lomi-made").touch()
    (environment / "bin" / "python").symlink_to(sys.executable)
    (environment / "pyvenv.cfg").write_text(f"home = {Path(sys.base_prefix) / 'bin'}\n")
    program = "import sys; from lomi.cli.main import main; main()"
    ran = subprocess.run(
        [environment / "bin" / "python", "-c", program, "uninstall", "--dry-run"],
        env={**bare, "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=report.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    removals = re.findall(r"(\S.*) \(.*: (rm -r .*)\)$", ran.stdout, flags=re.MULTILINE)
    assert {str(report), str(environment)} <= {path for path, _ in removals}
    for path, command in removals:
        if path in (str(report), str(environment)):
            subprocess.run(["sh", "-c", command], check=True)
            assert not Path(path).exists()


def test_uninstall_after_a_kill_waits_for_orphans_and_takes_the_dead_socket_along() -> None:
    """After kill -9 it refuses while the adb server still runs; then home and dead socket directory go."""
    with opened_world(policy_text(ClientEntry(label="qa")), check=False) as world:
        world.kill()
        orphans = [pid for pid, _ in processes_that_name(world.home / "devices")]
        assert orphans != []
        refused = lomi(world, "uninstall", "--yes")
        assert refused.code == 1
        for pid in orphans:
            assert str(pid) in refused.err
            os.kill(pid, signal.SIGKILL)
        assert world.left_processes() == []
        assert list(world.runtime.iterdir()) != []
        assert lomi(world, "uninstall", "--yes").code == 0
        assert not world.home.exists()
        assert list(world.runtime.iterdir()) == []


def test_the_version_is_the_installed_one_and_costs_no_library(bare: dict[str, str], tmp_path: Path) -> None:
    """`lomi --version` says what the package says of itself, and imports neither its reader nor asyncio."""
    ran = lomi_in({**bare, "PYTHONPROFILEIMPORTTIME": "1"}, "--version", cwd=tmp_path)
    assert ran.out == f"lomi, version {version('lomi-lab')}\n"
    imported = {line.rpartition("|")[2].strip() for line in ran.err.splitlines()}
    assert imported.isdisjoint({"importlib.metadata", "email.message", "asyncio", "msgspec"})


def test_a_look_at_the_broker_imports_no_more_than_it_needs(world: World) -> None:
    """`lomi status` reaches a real broker without the adapters' port, the broker's rooms, and readers of any key."""
    ran = lomi(world, "status", "--json", PYTHONPROFILEIMPORTTIME="1")
    assert ran.code == 0
    imported = {line.rpartition("|")[2].strip() for line in ran.err.splitlines() if line.startswith("import time:")}
    slow = {"lomi.core.port", "lomi.broker.world", "cryptography.hazmat.primitives.serialization", "importlib.metadata"}
    assert imported.isdisjoint(slow)
    assert "lomi.client.client" in imported


def test_help_names_every_command_and_each_explains_itself(bare: dict[str, str], tmp_path: Path) -> None:
    """`lomi --help` lists all commands, every command has a help of its own, and docs/cli.md has a line on each."""
    listed = lomi_in(bare, "--help", cwd=tmp_path).out
    document = DOCUMENT.read_text(encoding="utf-8")
    with ThreadPoolExecutor(2) as pool:
        helped = dict(
            zip(COMMANDS, pool.map(lambda name: lomi_in(bare, name, "--help", cwd=tmp_path), COMMANDS), strict=True)
        )
    for name, ran in helped.items():
        assert f"\n  {name} " in listed
        assert ran.code == 0, ran.err
        assert f"`lomi {name}" in document
    unknown = lomi_in(bare, "pss", cwd=tmp_path)
    assert unknown.code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(bare: dict[str, str], tmp_path: Path, shell: str) -> None:
    """The printed script asks `lomi` itself, which answers with the commands that begin so."""
    script = lomi_in(bare, "completion", shell, cwd=tmp_path).out
    assert f"_LOMI_COMPLETE={shell}_complete" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)
    words = {"COMP_WORDS": "lomi re", "COMP_CWORD": "re" if shell == "fish" else "1"}
    answer = lomi_in({**bare, **words, "_LOMI_COMPLETE": f"{shell}_complete"}, cwd=tmp_path).out
    assert "receipts" in answer
    assert "revoke" in answer
    assert "status" not in answer


def test_bash_completes_in_a_real_shell(bare: dict[str, str], tmp_path: Path) -> None:
    """Loaded as its comment says, the script completes `lomi rec` in bash to `receipts`."""
    program = """
eval "$("$LOMI" completion bash)"
COMP_WORDS=("$LOMI" rec); COMP_CWORD=1
_lomi_completion "$LOMI"
printf '%s' "${COMPREPLY[*]}"
"""
    ran = subprocess.run(
        ["bash", "-c", program], env={**bare, "LOMI": LOMI}, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "receipts"
