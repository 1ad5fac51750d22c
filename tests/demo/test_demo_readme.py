"""What the README shows exists, and what it tells a newcomer to type works."""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from lomi.broker.policy import explain, parse_policy
from lomi.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The code blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_links_and_the_picture_lead_somewhere() -> None:
    """Every relative link has its file, and the picture is small."""
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
    assert (ROOT / "docs" / "demo.png").stat().st_size < 150_000


def test_every_command_and_option_exists() -> None:
    """Each `lomi` line names commands and options of this build."""
    lines = re.findall(r"^(?:.*<\()?lomi ([^\n#)]+)", "\n".join(blocks("sh")), re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        words = line.split()
        assert words[0] in COMMANDS, line
        command: click.Command | None = cli.get_command(click.Context(cli), words[0])
        if isinstance(command, click.Group):
            command = command.get_command(click.Context(command), words[1])
        assert command is not None, line
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


@pytest.mark.timeout(120)
def test_the_ci_quick_start_runs_as_it_stands(tmp_path: Path) -> None:
    """The policy and the commands of the README, typed as they are, list the phone and end the broker."""
    token = "t" * 43
    policy = blocks("toml")[0].replace("<from lomi policy token>", hashlib.sha256(token.encode()).hexdigest())
    assert "client 'ci': proves a token" in explain(parse_policy(policy))
    (tmp_path / "lomi.toml").write_text(policy)
    script = next(block for block in blocks("sh") if "--headless" in block)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LOMI_HOME": str(tmp_path / "h"),
        "LOMI_CLIENT_LABEL": "ci",
        "LOMI_CLIENT_TOKEN": token,
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "stopped, SIMULATED" in done.stdout
    deadline = time.monotonic() + 30
    while at_home(tmp_path / "h") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert at_home(tmp_path / "h") == []


def at_home(home: Path) -> list[str]:
    """Processes of a home; `down` returns while its broker still ends them."""
    mark = f"LOMI_HOME={home}".encode()
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (place / "environ").read_bytes().split(b"\0"):
                found.append(place.name)
        except OSError:
            continue
    return found
