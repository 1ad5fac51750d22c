"""The broker's log: structured, private, rotated, and free of typed text, tokens, labels and project paths."""

import asyncio
import hashlib
import json
import logging
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import Following, lomi
from harness import Agent, ClientEntry, World, agent, opened_world, policy_text, until

from lomi.broker.log_file import DIRECTORY, KEPT, NAME, opened_log
from lomi.core.log_fields import WITHHELD, bound, fields

TOKEN, LABEL, TYPED = "tok-5f2c-secret", "the-secret-label", "hunter2-typed-into-a-name"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker and one client that proves a token."""
    entry = ClientEntry(label=LABEL, token_sha256=hashlib.sha256(TOKEN.encode()).hexdigest())
    with opened_world(policy_text(entry)) as opened:
        yield opened


def _lines(home: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (home / DIRECTORY / NAME).read_text().splitlines()]


async def _type_into_a_terminal(qa: Agent) -> None:
    made = (await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title=TYPED))).result
    where = {"workspaceId": qa.workspace, **{name: made[name] for name in ("panelId", "terminalSessionId")}}

    async def ready() -> bool:
        return bool((await qa.ask("lomi_terminal_read", **where)).data["prompt"] == "ready")

    await until(ready)
    await qa.do("lomi_terminal_run", await qa.keyed(**where, leaseId=made["leaseId"], command=f"echo {TYPED}"))


async def test_the_log_tells_what_happened_and_nothing_secret(world: World) -> None:
    """Session, pairing and each settled operation are told with ids; no secret that went through is in the file."""
    async with agent(world, LABEL, token=TOKEN) as qa:
        done = await qa.do("lomi_workspace_update", await qa.revised(name=TYPED))
        await qa.call("lomi_workspace_update", await qa.keyed(expectedRevision="1", name=TYPED))
        await _type_into_a_terminal(qa)
        (session,) = lomi(world, "ps", "--json").json["sessions"]
    mine = lomi(world, "logs", "--session", session["id"], "--json").out.splitlines()
    events = [json.loads(line) for line in mine]
    assert [line["event"] for line in events[:2]] == ["session began", "session paired"]
    settled = [line for line in events if line["event"] == "operation settled"]
    assert (
        settled[0].items()
        >= {
            "operation": done.data["operationId"],
            "tool": "lomi_workspace_update",
            "state": "succeeded",
            "effect": "complete",
        }.items()
    )
    assert (settled[1]["code"], settled[1]["reason"]) == ("REVISION_CONFLICT", "revision_stale")
    whole = (world.home / DIRECTORY / NAME).read_text()
    for secret in (TOKEN, LABEL, TYPED, str(world.project), qa.epoch):
        assert secret not in whole
    assert stat.S_IMODE((world.home / DIRECTORY / NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE((world.home / DIRECTORY).stat().st_mode) == 0o700


def test_logs_choose_lines_and_fit_a_terminal(world: World) -> None:
    """Level, time and number choose lines; the text form is one line each; without a log the command says so."""
    assert "the broker begins" in lomi(world, "logs").out
    assert lomi(world, "logs", "--level", "critical").out == ""
    assert lomi(world, "logs", "--since", "2199-01-01").out == ""
    assert len(lomi(world, "logs", "-n", "1").out.splitlines()) == 1
    ran = lomi(world, "logs", LOMI_HOME=str(world.root / "nothing"))
    assert (ran.code, ran.err.splitlines()[0]) == (1, "Error: there is no log in this home yet")


async def test_following_shows_lines_as_they_come(world: World) -> None:
    """`--follow` shows a session that begins while it runs, and Ctrl-C ends it quietly with code 0."""
    following = Following(world, "logs", "--follow", "--json", "-n", "1")
    assert json.loads(following.line())["event"]
    async with agent(world, LABEL, token=TOKEN):
        while json.loads(following.line())["event"] != "session began":
            pass
    ended = following.interrupt()
    assert (ended.code, ended.err) == (0, "")


def test_following_misses_no_line_that_comes_while_the_kept_ones_are_shown(world: World, tmp_path: Path) -> None:
    """While a full pipe holds it up amid the kept lines another line comes, then the file is rotated: all are shown."""
    present = tmp_path / DIRECTORY / NAME
    present.parent.mkdir()
    present.write_text("".join(f'{{"event": "kept", "count": {number}}}\n' for number in range(20_000)))
    following = Following(world, "logs", "--follow", "--json", "-n", "20000", LOMI_HOME=str(tmp_path))
    following.begin()
    with present.open("a") as file:
        file.write('{"event": "meanwhile"}\n')
    present.rename(present.with_name(f"{NAME}.1"))
    present.write_text('{"event": "after"}\n')
    events = [json.loads(following.line())["event"] for _ in range(20_002)]
    assert events == ["kept"] * 20_000 + ["meanwhile", "after"]
    ended = following.interrupt()
    assert (ended.code, ended.err) == (0, "")


def test_a_locale_without_a_character_costs_only_the_character(world: World) -> None:
    """Where standard output is Latin-1, an ellipsis is written as its number and the command goes on."""
    (world.home / DIRECTORY / f"{NAME}.1").write_text('{"time": "t", "level": "info", "event": "seen of …"}\n')
    ran = lomi(world, "logs", PYTHONIOENCODING="latin-1")
    assert (ran.code, ran.err) == (0, "")
    assert "seen of \\u2026" in ran.out


def test_a_line_keeps_ids_and_drops_everything_else(tmp_path: Path) -> None:
    """Arguments, messages of exceptions and what is no id never reach the file; bound fields and places do."""
    log = logging.getLogger("lomi.test")
    with opened_log(tmp_path), bound(session="c7", tool="lomi_status"):
        log.warning("a client asked for %s", TYPED, extra=fields(lease="l1", resource="/home/me/project", code=None))
        try:
            int(TYPED)
        except ValueError:
            log.exception("it failed")
        logging.getLogger("asyncio").warning(TYPED)
        logging.getLogger("asyncio").info(TYPED)
    told, failed, strange = _lines(tmp_path)
    assert told["event"] == "a client asked for …"
    assert (told["session"], told["tool"], told["lease"], told["resource"]) == ("c7", "lomi_status", "l1", WITHHELD)
    assert failed["exception"]["type"] == "ValueError"
    assert failed["exception"]["places"][-1].endswith("test_a_line_keeps_ids_and_drops_everything_else")
    assert (strange["event"], strange["logger"]) == ("a library logged", "asyncio")
    assert TYPED not in (tmp_path / DIRECTORY / NAME).read_text()


async def test_a_task_carries_the_fields_of_where_it_began(tmp_path: Path) -> None:
    """A task begun inside a binding logs with it, also after the binding has ended."""
    go = asyncio.Event()

    async def late() -> None:
        await go.wait()
        logging.getLogger("lomi.test").info("later")

    with opened_log(tmp_path):
        async with asyncio.TaskGroup() as tasks:
            with bound(operation="abc"):
                tasks.create_task(late())
            go.set()
    assert [line["operation"] for line in _lines(tmp_path)] == ["abc"]


def test_the_log_is_rotated_at_its_bound(tmp_path: Path) -> None:
    """No file grows past the bound, two old ones stay, and the newest lines are in the present one."""
    with opened_log(tmp_path, most_bytes=4096):
        for number in range(400):
            logging.getLogger("lomi.test").info("a line", extra=fields(count=number))
    names = sorted(path.name for path in (tmp_path / DIRECTORY).iterdir())
    assert names == [NAME, *(f"{NAME}.{number}" for number in range(1, KEPT + 1))]
    assert all(path.stat().st_size <= 4096 for path in (tmp_path / DIRECTORY).iterdir())
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in (tmp_path / DIRECTORY).iterdir())
    assert _lines(tmp_path)[-1]["count"] == 399


@pytest.mark.parametrize("put", [Path.symlink_to, Path.hardlink_to])
def test_a_log_that_cannot_be_opened_stops_nobody(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], put: Callable[[Path, Path], None]
) -> None:
    """A link in the file's place is not followed: that is said once on standard error, and work goes on."""
    target = tmp_path / "target"
    target.write_text("mine")
    (tmp_path / DIRECTORY).mkdir(mode=0o700)
    put(tmp_path / DIRECTORY / NAME, target)
    with opened_log(tmp_path):
        logging.getLogger("lomi.test").info("unheard")
        logging.getLogger("lomi.test").warning("heard of %s", TYPED)
    assert target.read_text() == "mine"
    said, heard = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert said["event"] == "the log file can't be written"
    assert heard["event"] == "heard of …"


def test_whole_lines_are_for_standard_error_only(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Asked for, standard error shows a warning with its arguments; the file stays redacted."""
    with opened_log(tmp_path, whole=True):
        logging.getLogger("lomi.test").warning("heard of %s", TYPED)
    assert capfd.readouterr().err == f"heard of {TYPED}\n"
    assert TYPED not in (tmp_path / DIRECTORY / NAME).read_text()


def test_a_disk_that_is_too_slow_costs_lines_and_nothing_else(tmp_path: Path) -> None:
    """Lines that find the queue full are dropped, and every one of them is counted in the file."""
    written = 3000
    with opened_log(tmp_path, most_queued=10):
        for number in range(written):
            logging.getLogger("lomi.test").info("a line", extra=fields(count=number))
    lines = _lines(tmp_path)
    lost = sum(line["count"] for line in lines if line["event"].startswith("lines were lost"))
    there = [line["count"] for line in lines if line["event"] == "a line"]
    assert lost > 0
    assert there == sorted(set(there))
    assert len(there) + lost == written
