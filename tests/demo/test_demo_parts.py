"""The parts that the demo brings along: its web server, its policy, its app, its progress."""

import asyncio
import io
import json
import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from demo import demo_runs

from devices.apk import read_apk
from emulator_images.paper.apk import read_apk as read_on_paper
from lomi.broker.policy import explain, read_policy
from lomi.demo.apk import find_app
from lomi.demo.apk_made import PACKAGE, made_apk
from lomi.demo.place import opened_place, write_policy
from lomi.demo.progress import show_for
from lomi.demo.site import opened_site
from lomi.store.apk import check_apk


async def asked(origin: str, request: bytes) -> bytes:
    """The whole answer to raw bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(origin.rpartition(":")[2]))
    writer.write(request)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_the_server_logs_what_reached_it_and_shows_it_as_text(tmp_path: Path) -> None:
    """A form with markup in it comes back as characters, and stands in the log as it was sent."""
    body = b"name=%3Cscript%3E%E6%BC%A2&email="
    head = b"POST /sign-up?x=1 HTTP/1.1\r\nUser-Agent: Test/1\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with opened_site(tmp_path / "web.jsonl") as site:
        answer = await asked(site.origin, head + body)
        missing = await asked(site.origin, b"GET /nowhere HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert "Thanks, &lt;script&gt;漢".encode() in answer
    assert missing.startswith(b"HTTP/1.1 404")
    logged = [json.loads(line) for line in (tmp_path / "web.jsonl").read_text().splitlines()]
    assert logged[0] == {"method": "POST", "path": "/sign-up", "fields": {"name": "<script>漢", "email": ""}}
    assert site.requests[0].agent == "Test/1"


@pytest.mark.parametrize("half", [b"", b"GET / HT", b"GET /\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"])
async def test_half_a_request_is_neither_answered_nor_logged(tmp_path: Path, half: bytes) -> None:
    """What never arrived whole is no effect."""
    async with opened_site(tmp_path / "web.jsonl") as site:
        assert await asked(site.origin, half) == b""
        assert site.requests == []


def test_the_policy_is_valid_private_and_without_the_token() -> None:
    """The broker takes the generated file; the secret is only in the agent's environment."""
    with opened_place() as place:
        write_policy(place, "http://127.0.0.1:8000", ("a.b",))
        words = "\n".join(explain(read_policy(place.policy)))
        assert place.token not in place.policy.read_text()
        assert stat.S_IMODE(place.policy.stat().st_mode) == 0o600
        assert "decides itself: lomi_android_install_apk" in words
        assert len(str(place.home)) < 40
        assert place.agent_environment()["LOMI_CLIENT_TOKEN"] == place.token
        assert "LOMI_CLIENT_TOKEN" not in place.broker_environment({"LOMI_CLIENT_TOKEN": "another"})
    assert not place.root.exists()


def test_the_made_app_passes_every_check_that_a_real_one_meets(tmp_path: Path) -> None:
    """The broker's, the device library's and the phone's readers agree on what it is."""
    file = tmp_path / "made.apk"
    file.write_bytes(made_apk())
    with file.open("rb") as opened:
        check_apk(opened.fileno())
        seen = read_on_paper(opened)
    assert read_apk(file).package == seen.package == PACKAGE
    assert seen.launcher == f"{PACKAGE}.Main"
    assert seen.label == "Tiny"
    assert made_apk() == made_apk()


def test_only_the_known_app_is_taken_from_the_cache(tmp_path: Path) -> None:
    """A file with other bytes is not installed; without a network the made one is."""
    cache = tmp_path / "lomi" / "demo"
    cache.mkdir(parents=True)
    (cache / "app-uiautomator.apk").write_bytes(b"PK\x03\x04 something else")
    said: list[str] = []
    app = asyncio.run(find_app({"XDG_CACHE_HOME": str(tmp_path)}, said.append, offline=True))
    assert (app.package, app.made, said) == (PACKAGE, True, [])


def test_an_index_that_can_not_be_reached_is_said_and_survived(tmp_path: Path) -> None:
    """The fetch says what it does, fails fast, leaves nothing, and the made app stands in."""
    said: list[str] = []
    nowhere = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path),
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "0",
    }
    without = {**nowhere, "PIP_EXTRA_INDEX_URL": "", "PIP_CONFIG_FILE": os.devnull}
    app = asyncio.run(find_app(without, said.append, offline=False))
    assert app.made
    assert said[0].startswith("fetching a small real app once")
    assert "using a tiny app made here" in said[1]
    assert list((tmp_path / "lomi" / "demo").iterdir()) == []


def test_a_log_gets_one_plain_line_a_step() -> None:
    """No bar, no colours, and the problem on a line of its own."""
    target = io.StringIO()
    step = demo_runs.run(problem="it broke", steps=3).steps[-1]
    with show_for(target) as show:
        show.began(step)
        show.called(step, step.calls[0])
        show.ended(step)
    first, second = target.getvalue().splitlines()
    assert first.startswith("[ 3/14] FAIL Boot a phone")
    assert first.endswith("0.5 s  1 call")
    assert second.strip() == "it broke"


def test_a_terminal_gets_a_bar() -> None:
    """On a real terminal the step and the last call are shown while they run."""
    code = (
        "import sys; from demo import demo_runs; from lomi.demo.progress import show_for\n"
        "step = demo_runs.run(steps=3).steps[-1]\n"
        "with show_for(sys.stderr) as show:\n"
        "    show.began(step); show.called(step, step.calls[0]); show._progress.refresh(); show.ended(step)\n"
    )
    ours, theirs = pty.openpty()
    try:
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": str(Path(__file__).parents[1])}
        process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=environment)
        os.close(theirs)
        shown = b""
        while True:
            try:
                read = os.read(ours, 65536)
            except OSError:
                break
            shown += read
        assert process.wait() == 0
    finally:
        os.close(ours)
    assert b"\x1b[" in shown
    assert b"lomi_android_input 250 ms" in shown
    assert b"[ 3/14] ok   Boot a phone" in shown
