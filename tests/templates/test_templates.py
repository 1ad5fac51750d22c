"""The workflow templates: right for their schema, honest about not having been run, and of commands that there are."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from emulator_images.images import load_images
from lomi.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = {
    "github-device-lab.yml": "vendor.github-workflows",
    "gitlab-device-lab.yml": "vendor.gitlab-ci",
}


def text(name: str) -> str:
    return (ROOT / "ci" / "templates" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "schema"), TEMPLATES.items())
def test_a_template_is_right_for_its_schema(name: str, schema: str) -> None:
    """By the schema that comes with check-jsonschema; a broken copy is told apart."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    path = ROOT / "ci" / "templates" / name
    said = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_linter_sees_a_fault(tmp_path: Path) -> None:
    """Without `runs-on` a job is none."""
    broken = tmp_path / "broken.yml"
    broken.write_text(text("github-device-lab.yml").replace("    runs-on: ubuntu-24.04\n", ""))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(broken)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_says_that_it_was_not_run(name: str) -> None:
    """In its first line, before anything else."""
    assert "NOT RUN" in text(name).splitlines()[0]


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_command_and_option_of_a_template_is_there(name: str) -> None:
    """Each `lomi` command, each option of it, each image, and the arguments of the harness."""
    lines = [line.strip().removeprefix("- ").removeprefix("run: ") for line in text(name).splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if re.match(r"lomi(/ci/harness)? ", line)]
    assert len(commands) >= 5
    for words in commands:
        if words[0] == "lomi/ci/harness":
            parsed = subprocess.run(
                [sys.executable, "-m", "rehearsal", "run", "--help"],
                env={"PYTHONPATH": str(ROOT / "ci")},
                capture_output=True,
                text=True,
                check=True,
            )
            assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--\w+", parsed.stdout))
            continue
        _, *rest = words
        with click.Context(cli) as context:
            command: click.Command | None = cli
            while isinstance(command, click.Group):
                command = command.get_command(context, rest.pop(0))
        assert command is not None, words
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= options, words
        if words[1:3] == ["images", "verify"]:
            assert words[3] in load_images()
