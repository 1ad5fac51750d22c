"""`ci/setup.sh` with a stand-in for Python: what it says, what it leaves when interrupted, that it recovers."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = """#!/usr/bin/env bash
set -euo pipefail
cd "$(dirname "$0")/.."
. ci/setup.sh
lomi_venv
[ -z "${WANT_CHROMIUM:-}" ] || lomi_chromium
echo "ready:$*"
"""
PYTHON = """#!/usr/bin/env bash
echo "$*" >>"$STAND_IN/calls"
meet() {
    [ -e "$STAND_IN/stop-at-$1" ] || return 0
    printf '%s' "$1" >"$STAND_IN/here"
    sleep 60
}
case "$*" in
    --version) echo "Python ${PYTHON_SAYS:-3.12.1}" ;;
    "-m venv "*)
        mkdir -p "$3/bin"
        meet "half a venv"
        cat "$0" >"$3/bin/python"
        chmod +x "$3/bin/python"
        : >"$3/pyvenv.cfg" ;;
    "-m pip install --help") ;;
    "-m pip install "*)
        if [ -e "$STAND_IN/no-index" ]; then
            echo "ERROR: Could not find a version that satisfies the requirement" >&2
            exit 1
        fi
        meet "half of pip"
        : >"$(dirname "$0")/../whole" ;;
    "-m playwright install --dry-run "*) ;;
    "-m playwright "*) exit 1 ;;
    *version_info*) [ -z "${PYTHON_SAYS:-}" ] ;;
    *find_engine*) exit 1 ;;
    *"import click, lomi"*) [ -e "$(dirname "$0")/../whole" ] ;;
esac
"""


@dataclass(frozen=True)
class Checkout:
    """A checkout with nothing but the set-up, and a PATH with a stand-in for Python."""

    root: Path
    place: Path

    def environment(self, **more: str) -> dict[str, str]:
        """A fresh home, and only what the set-up needs on PATH."""
        return {"PATH": str(self.place / "bin"), "HOME": str(self.place), "STAND_IN": str(self.place), **more}

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """The command to its end."""
        return subprocess.run(
            [self.root / "ci" / "command", *arguments],
            env=self.environment(**more),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            start_new_session=True,
        )

    @property
    def venv(self) -> Path:
        """Where it is made."""
        return self.root / ".venv"

    def calls(self) -> list[str]:
        """What the stand-in was asked."""
        return (self.place / "calls").read_text().splitlines()


PROGRAMS = (
    *("bash", "cat", "chmod", "cksum", "dirname", "basename", "id", "grep", "sed", "head", "mkdir", "ls", "env", "cut"),
    *("find", "rm", "du", "flock", "sleep"),
)
"""All that the set-up needs on PATH beside Python."""


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """In a folder with a space and an umlaut in its name."""
    made = Checkout(tmp_path / "a chéckout", tmp_path / "place")
    (made.root / "ci").mkdir(parents=True)
    (made.place / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "ci" / "setup.sh", made.root / "ci")
    shutil.copy(ROOT / "pyproject.toml", made.root)
    _program(made.root / "ci" / "command", COMMAND)
    _program(made.place / "bin" / "python3", PYTHON)
    for name in PROGRAMS:
        if (found := shutil.which(name)) is not None:
            (made.place / "bin" / name).symlink_to(found)
    return made


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def test_it_says_where_how_big_and_does_it_once(checkout: Checkout) -> None:
    """The first run names folder and size, the second says and installs nothing; arguments arrive, `--yes` not."""
    first = checkout.run("a b", "--yes", "c")
    assert first.returncode == 0, first.stderr
    assert first.stdout == "ready:a b c\n"
    assert f"setting up {checkout.venv}" in first.stderr
    assert "about 300 MB, only in this folder" in first.stderr
    before = checkout.calls()
    again = checkout.run()
    assert (again.returncode, again.stderr) == (0, "")
    assert [call for call in checkout.calls()[len(before) :] if "import click, lomi" not in call] == []
    everything = {path.name for path in checkout.place.iterdir()}
    assert everything == {"bin", "calls"}, "nothing in the home"


@pytest.mark.parametrize("moment", ["half a venv", "half of pip"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_set_up_is_made_again(checkout: Checkout, moment: str, end: signal.Signals) -> None:
    """Ended in the middle by Ctrl-C, a kill or the power, nothing that is half there is trusted afterwards."""
    stop, here = checkout.place / f"stop-at-{moment}", checkout.place / "here"
    stop.touch()
    os.mkfifo(here)
    with subprocess.Popen(
        [checkout.root / "ci" / "command"],
        env=checkout.environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert here.read_text() == moment
        os.killpg(process.pid, end)
        _, said = process.communicate(timeout=20)
    assert process.returncode == (130 if end == signal.SIGINT else -end)
    assert ("the same command again goes on from here" in said) is (end == signal.SIGINT)
    stop.unlink()
    here.unlink()
    (checkout.venv / "half").touch()
    again = checkout.run()
    assert again.returncode == 0, again.stderr
    assert "was left unfinished, or was moved: making it again" in again.stderr
    assert not (checkout.venv / "half").exists()
    assert checkout.run().stderr == ""


def test_a_checkout_that_was_moved_gets_a_venv_of_its_new_place(checkout: Checkout) -> None:
    """The scripts of a venv hold its path, so a moved one is made again, and nothing else is."""
    assert checkout.run().returncode == 0
    moved = Checkout(checkout.root.with_name("moved"), checkout.place)
    checkout.root.rename(moved.root)
    ran = moved.run()
    assert ran.returncode == 0, ran.stderr
    assert "making it again" in ran.stderr
    assert (moved.venv / ".lomi-made").read_text() == f"{moved.venv}\n"


def test_an_activated_venv_is_made_again_by_the_python_below_it(checkout: Checkout) -> None:
    """With the venv's own Python first on PATH, one that was left unfinished is made again all the same."""
    assert checkout.run().returncode == 0
    (checkout.venv / ".lomi-busy").touch()
    (checkout.venv / "bin" / "python3").symlink_to("python")
    again = checkout.run(PATH=f"{checkout.venv}/bin:{checkout.place}/bin")
    assert again.returncode == 0, again.stderr
    assert not (checkout.venv / "bin" / "python3").exists()


def test_a_folder_with_other_things_is_left_alone(checkout: Checkout) -> None:
    """LOMI_VENV that names somebody's folder: refused, and what is in it stays."""
    (checkout.place / "mine").mkdir()
    (checkout.place / "mine" / "letter.txt").write_text("keep")
    ran = checkout.run(LOMI_VENV=str(checkout.place / "mine"))
    assert ran.returncode == 1
    assert "holds other things" in ran.stderr
    assert [path.name for path in (checkout.place / "mine").iterdir()] == ["letter.txt"]


def test_an_older_python_is_refused_by_name(checkout: Checkout) -> None:
    """One line says what was found and what is needed, one what to do; nothing is made."""
    ran = checkout.run(PYTHON_SAYS="3.9.18")
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[0] == "lomi: Python 3.11 or newer is needed; found: Python 3.9.18"
    assert ran.stderr.splitlines()[1].startswith("hint: ")
    assert not checkout.venv.exists()


def test_without_an_index_it_says_what_is_missing(checkout: Checkout) -> None:
    """What pip said, then the mirror's variable and how to bring the packages along; the next run starts anew."""
    (checkout.place / "no-index").touch()
    ran = checkout.run(PIP_INDEX_URL="http://mirror.test/simple")
    assert ran.returncode == 1
    assert "Could not find a version" in ran.stderr
    assert "http://mirror.test/simple" in ran.stderr
    assert "PIP_FIND_LINKS" in ran.stderr
    (checkout.place / "no-index").unlink()
    assert checkout.run().returncode == 0


def test_the_commands_of_a_hint_can_be_copied_whatever_the_path(checkout: Checkout) -> None:
    """A shell reads the checkout's path back from the hints as it is, quotes, spaces and dollars included."""
    awkward = replace(checkout, root=checkout.root.rename(checkout.root.with_name("""it's "a" $HOME `chéckout`""")))
    (awkward.place / "no-index").touch()
    wheels = next(line for line in awkward.run().stderr.splitlines() if "pip wheel" in line)
    (awkward.place / "no-index").unlink()
    up = next(
        line for line in awkward.run(WANT_CHROMIUM="1").stderr.splitlines() if "lomi up" in line or "/lomi" in line
    )
    for command, word, wanted in (
        (wheels.strip(), "${!#}", str(awkward.root)),
        (up.partition("without: ")[2], "$1", str(awkward.venv / "bin" / "lomi")),
    ):
        read = subprocess.run(
            ["bash", "-c", f'set -- {command}; printf %s "{word}"'], capture_output=True, text=True, check=True
        )
        assert read.stdout == wanted


def test_without_chromium_it_says_what_works_without(checkout: Checkout) -> None:
    """No engine, no apt, no download: one refusal that names the package, the mirror's variable, and phones."""
    ran = checkout.run(WANT_CHROMIUM="1")
    assert ran.returncode == 1
    assert "no Chromium can be had here, and command needs one" in ran.stderr
    assert "apt install chromium-headless-shell" in ran.stderr
    assert "lomi up . --phone paper-36" in ran.stderr


@pytest.mark.parametrize("yes", [True, False])
def test_apt_is_used_only_when_that_was_agreed(checkout: Checkout, yes: bool) -> None:
    """Another user than root gets apt through sudo and only with --yes, since there is no terminal to ask at."""
    for name, script in (("id", "echo 1000"), ("sudo", '[ "$1" = -n ] && shift; exec "$@"')):
        (checkout.place / "bin" / name).unlink(missing_ok=True)
        _program(checkout.place / "bin" / name, f"#!/usr/bin/env bash\n{script}\n")
    _program(checkout.place / "bin" / "apt-get", f'#!/usr/bin/env bash\necho "apt $*" >>{checkout.place}/calls\n')
    ran = checkout.run(*(["--yes"] if yes else []), WANT_CHROMIUM="1")
    used = [call for call in checkout.calls() if call.startswith("apt ")]
    if yes:
        assert ran.returncode == 0, ran.stderr
        assert used == ["apt install -y -qq --no-install-recommends chromium-headless-shell"]
        assert "installing with sudo -n apt-get, for the whole system: chromium-headless-shell" in ran.stderr
    else:
        assert (ran.returncode, used) == (1, [])


def test_two_set_ups_at_once_wait_for_each_other(checkout: Checkout) -> None:
    """The second says that it waits, and then finds everything done."""
    if shutil.which("flock") is None:
        pytest.skip("this system has no flock")
    stop, here = checkout.place / "stop-at-half of pip", checkout.place / "here"
    stop.touch()
    os.mkfifo(here)
    command = [checkout.root / "ci" / "command"]
    with subprocess.Popen(
        command, env=checkout.environment(), stderr=subprocess.DEVNULL, start_new_session=True
    ) as one:
        assert here.read_text() == "half of pip"
        with subprocess.Popen(command, env=checkout.environment(), stderr=subprocess.PIPE, text=True) as two:
            assert two.stderr is not None
            assert "another command sets up" in two.stderr.readline()
            stop.unlink()
            os.killpg(one.pid, signal.SIGKILL)
            two.communicate(timeout=20)
    assert two.returncode == 0
    assert not (checkout.venv / ".lomi-busy").exists()


@pytest.mark.parametrize("asked", ["-h", "--help"])
@pytest.mark.parametrize("name", ["agent-gate", "bench", "demo", "harness", "qualify"])
def test_help_sets_nothing_up(tmp_path: Path, name: str, asked: str) -> None:
    """Where there is no environment, the command says what it is for, and makes none."""
    environment = {**os.environ, "LOMI_VENV": str(tmp_path / "none")}
    command = [str(ROOT / "ci" / name), asked]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"ci/{name}" in ran.stdout
    assert "#" not in ran.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["agent-gate", "bench", "demo", "harness", "qualify"])
def test_an_environment_that_lacks_something_gives_the_whole_help(tmp_path: Path, name: str) -> None:
    """Also one that was set up for an earlier state of the sources: it is not set up again for that."""
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    _program(python, f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    environment = {**os.environ, "LOMI_VENV": str(tmp_path / "venv")}
    command = [str(ROOT / "ci" / name), "--help"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=50)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.lower().startswith("usage: ")
    assert [path.name for path in (tmp_path / "venv").iterdir()] == ["bin"]
