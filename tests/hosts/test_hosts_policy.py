"""A host's own policy: made once, and never again over what its owner wrote."""

import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from lomi.cli.lab_hosts import lab_host
from lomi.disk.refusal import DiskRefusedError
from lomi.lab.host_place import Cluster, ClusterPlace
from lomi.lab.host_policy import TokenMissingError, own_access


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A cluster's folder of this user alone."""
    made = tmp_path / "cluster"
    made.mkdir(mode=0o700)
    return made


def test_a_policy_is_made_once_and_stays_as_its_owner_left_it(folder: Path) -> None:
    """The second call reads both files; an edit is still there after it."""
    made = own_access(folder, "paper-36", 2)
    assert [device["name"] for device in tomllib.loads(made.policy.read_text())["device"]] == ["phone-1", "phone-2"]
    made.policy.write_text("# narrowed\n")
    assert own_access(folder, "paper-30", 1) == made
    assert made.policy.read_text() == "# narrowed\n"


def test_a_policy_without_its_token_is_refused_and_kept(folder: Path) -> None:
    """Whatever became of the token, the owner's words are not written over; with the policy away both are made."""
    made = own_access(folder, "paper-36", 1)
    made.policy.write_text("# narrowed\n")
    (folder / "lab.token").unlink()
    with pytest.raises(TokenMissingError, match=r"policy\.toml is there, and lab\.token"):
        own_access(folder, "paper-36", 1)
    assert made.policy.read_text() == "# narrowed\n"
    assert not (folder / "lab.token").exists()
    made.policy.rename(folder / "policy.mine")
    assert own_access(folder, "paper-36", 1).token != made.token


def test_a_token_that_others_can_read_is_refused(folder: Path) -> None:
    """And nothing is made in its place."""
    made = own_access(folder, "paper-36", 1)
    (folder / "lab.token").chmod(0o644)
    with pytest.raises(DiskRefusedError):
        own_access(folder, "paper-36", 1)
    assert (folder / "lab.token").read_text() == made.token


def test_the_command_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`lomi lab host` ends with the two ways out, and touches nothing."""
    place = ClusterPlace(tmp_path)
    place.keep(Cluster(scheduler="tls://192.0.2.1:8786", name="host-1"), key=b"", certificate=b"", authority=b"")
    (place.folder / "policy.toml").write_text("# mine\n")
    monkeypatch.setenv("LOMI_HOME", str(tmp_path))
    ended = CliRunner().invoke(lab_host, [])
    assert ended.exit_code != 0
    assert (place.folder / "policy.toml").read_text() == "# mine\n"
    assert "move the policy away" in str(ended.exception) + ended.output
