"""A report that its own files vouch for, and a ledger that knows better."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from lomi.cli import lab as command
from lomi.lab.report.model import RunReport
from lomi.lab.report.saving import ANCHOR, Anchor, prepared, put, save
from lomi.lab.shelf import FolderShelf
from lomi.lab.verify import verify

OPERATION = "0" * 32


@dataclass(frozen=True)
class Row:
    """A receipt of the ledger that anchors a report."""

    sha256: str
    operation_id: str = OPERATION
    tool: str = "lomi_artifact_import"
    state: str = "succeeded"
    effect: str = "none"
    generation: str | None = None


def saved(folder: Path, operation: str | None, why: str | None = None) -> Row:
    """A report without tests, and the row that a broker would hold for it."""
    run = RunReport(
        name="lab",
        plan_sha256="0" * 64,
        engine="local",
        outcome="passed",
        exit_code=0,
        began=1.0,
        ended=2.0,
        listed_s=0.0,
        retries=0,
    )
    manifest = save(run, FolderShelf(folder.parent / "shelf"), prepared(folder))
    sha256 = hashlib.sha256(manifest).hexdigest()
    put(folder / ANCHOR, msgspec.json.encode(Anchor(manifest_sha256=sha256, operation_id=operation, why=why)))
    return Row(sha256)


def test_an_anchor_taken_out_is_found_out_by_any_ledger(tmp_path: Path) -> None:
    """The same report: with its receipt no difference, without one a difference, whatever reason it gives."""
    folder = tmp_path / "r"
    row = saved(folder, OPERATION)
    assert verify(folder, [row]).differences == ()
    assert verify(folder, []).differences == (f"the receipt {OPERATION} that anchors this report is not in the ledger",)
    saved(folder, None, "no broker took the hash of this report")
    (told,) = verify(folder, [row]).differences
    assert told == "no receipt anchors this report (no broker took the hash of this report); see --files-only"
    saved(folder, None)
    assert len(verify(folder, []).differences) == 1


def test_without_a_ledger_a_report_is_checked_against_itself(tmp_path: Path) -> None:
    """Nobody could tell then, and it is said that nothing was compared."""
    folder = tmp_path / "r"
    saved(folder, None)
    checked = verify(folder, None, "not asked")
    assert (checked.differences, checked.anchored, checked.ledger) == ((), False, "not asked")


@pytest.mark.parametrize(("options", "code"), [((), 1), (("--files-only",), 0)])
def test_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], code: int
) -> None:
    """`lomi lab verify` on a home with a ledger: 1, and 0 where the ledger is left out."""
    folder = tmp_path / "r"
    saved(folder, None)
    monkeypatch.setattr(command, "_ledger", lambda: ([], ""))
    ended = CliRunner().invoke(command.lab_verify, [str(folder), *options])
    assert ended.exit_code == code, ended.output
    assert ("no receipt anchors this report" in ended.output) == bool(code)
