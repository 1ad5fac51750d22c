"""How commands fail: one line, a hint, the documented exit code; and that `lomi down` means down."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import LOMI, lomi
from harness import ClientEntry, World, opened_world, policy_text

POLICY = policy_text(ClientEntry(label="qa"))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker whose policy knows one client."""
    with opened_world(POLICY) as opened:
        yield opened


WRONG: dict[str, tuple[tuple[str, ...], int, str, str]] = {
    "a command that there is not": (("pss",), 2, "No such command 'pss'", "`lomi --help`"),
    "an option that there is not": (("down", "--force"), 2, "No such option", "`lomi down --help`"),
    "an argument too few": (("revoke",), 2, "give a session id, or --all", "`lomi revoke --help`"),
    "a client that nobody knows": (("mcp-config", "emacs"), 2, "'emacs' is not one of", "`lomi mcp-config --help`"),
    "a group's option": (("policy", "check"), 2, "Missing argument 'FILE'", "`lomi policy check --help`"),
    "no pair": (("call", "lomi_status", "y"), 2, "'y' is not key=value", "`lomi call --help`"),
    "a tool that there is not": (("call", "lomi_statu"), 1, "unknown tool", "did you mean lomi_status?"),
    "a field that there is not": (
        ("call", "lomi_workspace_list", "x=1"),
        1,
        "unknown field `x`",
        "`lomi tools lomi_workspace_list` shows its fields",
    ),
    "a client that the policy does not name": (
        ("call", "lomi_workspace_list"),
        1,
        "PAIRING_REQUIRED",
        "check LOMI_CLIENT_LABEL and LOMI_CLIENT_TOKEN",
    ),
    "a session that there is not": (("revoke", "c99"), 1, "no session 'c99'", "`lomi ps` lists them"),
    "a report that there is not": (
        ("lab", "verify", "/nope"),
        1,
        "/nope/manifest.json is not there",
        "name the folder of a report",
    ),
    "a policy that there is not": (("policy", "check", "/nope"), 1, "/nope: No such file", "docs/ci.md explains"),
    "a panel that there is not": (("take", "p99"), 1, "no panel 'p99'", "`lomi ps` lists them"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_on_one_line_with_a_hint(world: World, case: str) -> None:
    """Standard error holds the error and its hint alone, standard output nothing; the exit code is as documented."""
    arguments, code, said, hint = WRONG[case]
    ran = lomi(world, *arguments)
    assert ran.code == code, ran.err
    assert ran.out == ""
    error, advice = ran.err.splitlines()
    assert error.startswith("Error: ")
    assert said in error
    assert advice.startswith("hint: ")
    assert hint in advice


def test_a_plan_that_there_is_not_is_said_once_with_a_hint(world: World) -> None:
    """A run says its own name first, as all of its lines do; what cannot be run ends with 2."""
    ran = lomi(world, "lab", "run", "/nope")
    assert (ran.code, ran.out) == (2, "")
    said, hint = ran.err.splitlines()
    assert said == "lomi: /nope: can't be read: No such file or directory"
    assert hint == "hint: docs/ci.md shows a plan, and what each field means"
    engine = lomi(world, "lab", "run", "/nope", "--engine", "foo")
    assert engine.err.splitlines()[-1].startswith("hint: ")


@pytest.mark.parametrize(
    ("absent", "arguments"), [("pytest", ("lab", "run", "/nope")), ("distributed", ("lab", "token"))]
)
def test_what_is_not_installed_is_named_with_a_command_that_needs_no_registry_of_ours(
    absent: str, arguments: tuple[str, ...]
) -> None:
    """Without pytest or Dask the hint installs just those, with this interpreter: Lomi is in no registry."""
    code = f"import sys; sys.modules[{absent!r}] = None; from lomi.cli.main import main; main()"
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert f"{sys.executable} -m pip install " in ran.stderr.splitlines()[-1]
    assert f"'{absent}>=" in ran.stderr.splitlines()[-1]
    assert "lomi-lab" not in ran.stderr


def test_what_waits_for_lomi_up_is_not_taken_for_a_broker(world: World) -> None:
    """`timeout 20 lomi up` comes as far as its arguments: a name in a parent's line makes no terminal of ours."""
    command = ["timeout", "20", LOMI, "up", ".", "--phone", "nosuch"]
    ran = subprocess.run(command, env=world.environment(), cwd=world.root, capture_output=True, text=True, check=False)
    assert ran.stderr.startswith("Error: no image is named 'nosuch'")


def test_receipts_of_nobody_name_where_to_look(world: World) -> None:
    """An empty answer is no error, and says on standard error how the sessions that have receipts are found."""
    ran = lomi(world, "receipts", "--session", "nope")
    assert (ran.code, ran.out) == (0, "no receipts\n")
    assert ran.err == "hint: `lomi receipts --all` names the sessions that have some\n"


def test_a_command_in_a_hint_can_be_copied_whatever_the_path(world: World, tmp_path: Path) -> None:
    """The path of a home that others may enter is quoted for a shell: running the hint's command cures it."""
    home = tmp_path / """it's "my" $HOME"""
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    refused = lomi(world, "up", str(world.project), LOMI_HOME=str(home))
    command = refused.err.splitlines()[-1].partition("run: ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    assert home.stat().st_mode & 0o777 == 0o700
    policy = home / "policy.toml"
    policy.write_text("version = 1\n")
    policy.chmod(0o666)
    checked = lomi(world, "policy", "check", str(policy))
    subprocess.run(["sh", "-c", checked.err.splitlines()[0].partition("run: ")[2]], check=True)
    assert lomi(world, "policy", "check", str(policy)).code == 0


def test_a_tool_is_explained_by_its_name(world: World) -> None:
    """`lomi tools TOOL` shows its scopes and fields, and with --json the entry of the catalogue."""
    shown = lomi(world, "tools", "lomi_android_install_apk").out
    assert "`android.install`" in shown
    assert "**`artifactId`**" in shown
    assert lomi(world, "tools", "lomi_android_install_apk", "--json").json["name"] == "lomi_android_install_apk"


def test_a_reader_that_goes_early_is_no_error(world: World) -> None:
    """`lomi tools --json | head -c 1` leaves no traceback."""
    with subprocess.Popen(
        [LOMI, "tools", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=world.environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""


def test_after_down_the_home_is_free() -> None:
    """`lomi down` returns when the broker has ended, so that the next `lomi up` starts; without one it ends with 3."""
    with opened_world(POLICY) as world:
        assert lomi(world, "down").out == "the broker has stopped\n"
        assert world.live.wait() == 0
        assert not Path(world.live.discovery_file).exists() or lomi(world, "status").code == 3
        assert lomi(world, "down").code == 3
        world.start()
        assert lomi(world, "status").code == 0
        world.stop()
