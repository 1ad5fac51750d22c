"""Stand-ins for the gates that `ci/qualify` runs, and a checkout for it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PASSES = "echo '==== 7 passed, 1 skipped in 0.42s ===='; echo 'SKIPPED [1] tests/real/x.py:9: no SDK here'"


@dataclass(frozen=True)
class Bench:
    """A folder of stand-ins for the gates, and where the page goes."""

    place: Path

    def gate(self, name: str, script: str) -> None:
        """Have a gate that runs this."""
        path = self.place / "ci" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/usr/bin/env bash\n{script}\n")
        path.chmod(0o755)

    def command(self, *arguments: str) -> list[str]:
        """The command line: the program of `ci/qualify`, in this environment."""
        return [
            *(
                sys.executable,
                "-m",
                "qualifying",
                "--no-wheel",
                "--sources",
                str(self.place / "checkout"),
                "--gates",
                str(self.place / "ci"),
            ),
            *("--into", str(self.place / "docs"), "--work", str(self.place / "work"), *arguments),
        ]

    @property
    def environment(self) -> dict[str, str]:
        """As the wrapper gives it."""
        return {**os.environ, "PYTHONPATH": str(ROOT / "ci"), "LOMI_HOME": str(self.place / "home")}

    def qualify(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.command(*arguments), env=self.environment, capture_output=True, text=True, timeout=50, check=False
        )

    @property
    def page(self) -> str:
        """What it wrote for people."""
        return (self.place / "docs" / "qualification.md").read_text()

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What it wrote for programs."""
        kept = json.loads((self.place / "docs" / "qualification.json").read_text())
        runs: list[dict[str, Any]] = kept["runs"]
        return runs

    def row(self, name: str) -> str:
        """A gate's line of the table."""
        return next(line for line in self.page.splitlines() if line.startswith(f"| `ci/{name}`"))


def checkout(place: Path, files: dict[str, str]) -> Path:
    """A Git checkout of these files."""
    (place / "docs").mkdir(parents=True)
    for name, text in files.items():
        (place / name).write_text(text)
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", *words], cwd=place, check=True)
    return place
