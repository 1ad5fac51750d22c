"""The blocking face as `mypy --strict` sees it: the exact types of the asynchronous methods that it shows."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = """
from typing import assert_type

import lomi
from lomi.client.acts import Act, Capture
from lomi.contract.android import AndroidInput, AndroidInstall
from lomi.contract.browser import BrowserInteraction

with lomi.connect() as lab:
    phone = lab.phone("paper-36")
    assert_type(phone.tap("Sign in", timeout_s=3), Act[AndroidInput])
    assert_type(phone.install("app.apk"), Act[AndroidInstall])
    assert_type(phone.capture(), Capture)
    assert_type(lab.page("http://127.0.0.1/").click("Send"), Act[BrowserInteraction])
    phone.tap(3)
    phone.tap("Sign in", timeout=3)
    phone.no_such_call()
"""


@pytest.mark.timeout(240)
def test_types_of_the_blocking_face(tmp_path: Path) -> None:
    """Results have their exact types; a wrong argument, an unknown name and an unknown call are errors."""
    (tmp_path / "snippet.py").write_text(textwrap.dedent(SOURCE), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary"]
    command.append(str(tmp_path / "snippet.py"))
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    errors = [line.partition("error: ")[2] for line in ended.stdout.splitlines() if "error: " in line]
    assert len(errors) == 3, ended.stdout + ended.stderr
    assert "incompatible type" in errors[0]
    assert 'Unexpected keyword argument "timeout"' in errors[1]
    assert 'has no attribute "no_such_call"' in errors[2]
