"""The pytest plugin: what its fixtures add to an empty test, beside pytest-playwright's `page` on the same Chromium.

The phone is SIMULATED. Rounds are short, so that the machine's other load falls on all fixtures alike.
pytest-playwright is put into the folder of the peers and seen by its own runs alone.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from benches.folders import short_parent
from benches.peers import PeersMissingError
from benches.rows import Report, row
from benches.stdio import BenchFailedError
from browser.process import find_engine

PACKAGES = ("pytest-playwright==0.10.0", "pytest-base-url", "python-slugify", "text-unidecode", "requests")
_TESTS = "import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_empty({fixture}, n): pass\n"
_THEIRS = """
import pytest
@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return {{**browser_type_launch_args, "executable_path": {chromium!r}, "args": {arguments!r}}}
"""


def add_options(parser: argparse._ActionsContainer) -> None:
    """How much."""
    parser.add_argument("--tests", type=int, default=25, help="empty tests of each fixture in a round")
    parser.add_argument("--plugin-rounds", type=int, default=5, help="rounds; each runs every fixture once")


def run(options: argparse.Namespace) -> Report:
    """All rows."""
    report = Report("plugin")
    report.notes.append("phone: paper-36, SIMULATED")
    peer = _installed(options.peers)
    names = {"phone": "", "lomi_page": "", "page": str(peer)}
    found: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(prefix="lp-", dir=short_parent(), ignore_cleanup_errors=True) as folder:
        for _ in range(options.plugin_rounds):
            for name, path in names.items():
                found[name] += _times(Path(folder) / name, name, options.tests, path)
    beside = ("pytest-playwright's page", found["page"])
    note = "ours has an egress proxy of its own and two durable receipts"
    report.rows.append(row("empty test with a page", found["lomi_page"], beside, target=1.0, note=note))
    report.rows.append(row("empty test with a phone", found["phone"], beside, target=1.0))
    return report


def _times(folder: Path, fixture: str, count: int, peer: str) -> list[float]:
    """Milliseconds of each test but the first, which starts the broker, the phone or the browser."""
    folder.mkdir(exist_ok=True)
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "test_bench.py").write_text(_TESTS.format(count=count, fixture=fixture), encoding="utf-8")
    if peer:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        text = _THEIRS.format(chromium=str(find_engine(headed=False)), arguments=arguments)
        (folder / "conftest.py").write_text(text, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOMI_", "PYTEST_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    environment = {**kept, "LOMI_HOME": str(folder / "none"), **({"PYTHONPATH": peer} if peer else {})}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-W", "ignore"]
    command += ["--lomi-origin", "http://127.0.0.1:9", "--junitxml", "junit.xml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise BenchFailedError(f"pytest with {fixture}: exit {done.returncode}: {done.stdout.decode()[-600:]}")
    cases = list(ElementTree.parse(folder / "junit.xml").iter("testcase"))
    return [float(case.get("time", "0")) * 1e3 for case in cases[1:]]


def _installed(folder: Path) -> Path:
    target = folder / "pytest-playwright"
    if not (target / "pytest_playwright").exists():
        print(f"installing {PACKAGES[0]} with pip into {target}", file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
        more = ("urllib3", "idna", "charset-normalizer", "certifi")
        if subprocess.run([*pip, *PACKAGES, *more], check=False).returncode:
            raise PeersMissingError(f"pip could not install {PACKAGES[0]}")
    return target
