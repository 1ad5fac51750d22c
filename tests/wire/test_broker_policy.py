"""Policies and pairing through real processes: what is refused, who is let in, what is decided."""

import asyncio
import hashlib
import json
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence

import pytest
from harness import ALL_SCOPES, ClientEntry, World, agent, mcp_agent, opened_world, owner, policy_text
from harness.agent import answered
from harness.world import Ended

from lomi.client.client import connect

TOKEN = "correct-horse-battery"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()
POLICY = policy_text(
    ClientEntry(label="open"),
    ClientEntry(label="secret", token_sha256=DIGEST),
    ClientEntry(label="deciding", token_sha256=DIGEST, decide=("lomi_project_open",)),
    ClientEntry(label="narrow", scopes=("workspace.read", "panel.focus"), origins=()),
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A broker with four kinds of client."""
    with opened_world(POLICY) as made:
        yield made


GOOD = '[[client]]\nlabel = "qa"\nscopes = ["workspace.read"]\nany_same_user = true\n'
FAULTS: dict[str, tuple[str, str]] = {
    "no TOML": ("version = ", "not TOML"),
    "no version": (GOOD, "version"),
    "another version": ("version = 2\n" + GOOD, "version 2 is not known"),
    "unknown key": ("version = 1\nspeed = 3\n" + GOOD, "speed"),
    "unknown key of a client": ("version = 1\n" + GOOD + "speed = 3\n", "speed"),
    "unknown limit": ("version = 1\n[limits]\nspeed = 3\n" + GOOD, "speed"),
    "a limit of nothing": ("version = 1\n[limits]\nconnections = 0\n" + GOOD, "connections must be at least 1, not 0"),
    "a negative limit": ("version = 1\n[limits]\nqueue_over_bound_s = -1\n" + GOOD, "must be at least 0, not -1"),
    "more devices than the limit": (
        'version = 1\n[limits]\ndevices = 1\n[[device]]\nname="a"\nimage="paper-36"\n'
        '[[device]]\nname="b"\nimage="paper-36"\n' + GOOD,
        "there are 2 [[device]], but limits.devices is 1",
    ),
    "a resource without a port": (
        "version = 1\n"
        + GOOD.replace('"workspace.read"', '"workspace.read", "browser.read"')
        + 'origins = ["http://a.test"]\nresources = ["public", "cdn.a.test"]\n',
        "'cdn.a.test' is no resource; write host:port, or public",
    ),
    "resources without a browser scope": ("version = 1\n" + GOOD + 'resources = ["public"]\n', "resources go with"),
    "wrong type": ("version = 1\n" + GOOD.replace('"qa"', "3"), "label"),
    "unknown scope": ("version = 1\n" + GOOD.replace("workspace.read", "workspace.rule"), "unknown scope"),
    "missing dependency": (
        "version = 1\n" + GOOD.replace('"workspace.read"', '"workspace.read", "panel.move"'),
        "panel.move also needs workspace.write",
    ),
    "no workspace.read": ("version = 1\n" + GOOD.replace("workspace.read", "panel.focus"), "workspace.read is needed"),
    "browser scope without origins": (
        "version = 1\n" + GOOD.replace('"workspace.read"', '"workspace.read", "browser.read"'),
        "add origins",
    ),
    "origins without a browser scope": ("version = 1\n" + GOOD + 'origins = ["http://a.test"]\n', "add scopes"),
    "origin with a path": (
        "version = 1\n"
        + GOOD.replace('"workspace.read"', '"workspace.read", "browser.read"')
        + 'origins = ["http://a.test/x"]\n',
        "is no origin",
    ),
    "neither token nor any_same_user": ("version = 1\n" + GOOD.replace("any_same_user = true\n", ""), "token_sha256"),
    "both": ("version = 1\n" + GOOD + f'token_sha256 = "{DIGEST}"\n', "either token_sha256"),
    "short token hash": (
        "version = 1\n" + GOOD.replace("any_same_user = true", 'token_sha256 = "ab"'),
        "64 lower-case",
    ),
    "decide with any_same_user": ("version = 1\n" + GOOD + 'decide = ["lomi_project_open"]\n', "decide can't stand"),
    "decide of a tool without decision": (
        "version = 1\n"
        + GOOD.replace("any_same_user = true", f'token_sha256 = "{DIGEST}"')
        + 'decide = ["lomi_status"]\n',
        "takes no decision",
    ),
    "unknown device": ("version = 1\n" + GOOD + 'devices = ["phone-9"]\n', "no [[device]] is named"),
    "a device whose name no phone can have": (
        'version = 1\n[[device]]\nname="phöne 1"\nimage="paper-36"\n' + GOOD, "device 'phöne 1': a name is letters"
    ),
    "an image that there is not": (
        'version = 1\n[[device]]\nname="a"\nimage="paper-1"\n' + GOOD, "no image is named 'paper-1'"
    ),
    "two devices of a name": ('version = 1\n[[device]]\nname="a"\nimage="paper-36"\n' * 1
        + '[[device]]\nname="a"\nimage="paper-36"\n' + GOOD, "two devices"),
    "two clients of a label": ("version = 1\n" + GOOD + GOOD, "two clients"),
    "control characters in a label": ("version = 1\n" + GOOD.replace('"qa"', '"q\\u0007a"'), "label must be"),
    "negative idle limit": ("version = 1\n" + GOOD + "lease_idle_s = -1\n", "lease_idle_s"),
    "an idle limit of ages": ("version = 1\n" + GOOD + "lease_idle_s = 316224001\n", "at most 316224000, or 0"),
    "more devices than any machine has": (
        f"version = 1\n[limits]\ndevices = {10**21}\n" + GOOD,
        f"devices must be at most 10000, not {10**21}",
    ),
    "more bytes than any disk has": (f"version = 1\n[limits]\nfile_bytes = {2**50 + 1}\n" + GOOD, f"at most {2**50}"),
    "arrays in arrays": ("version = 1\nx = " + "[" * 50_000, "not TOML: nested too deep"),
    "tables in tables": ("version = 1\nx = " + "{a = " * 5_000, "not TOML: nested too deep"),
    "a key of endless parts": ("version = 1\n" + "a." * 100_000 + "a = 1\n", "too many parts (at line 2,"),
    "a table of endless parts": ("version = 1\n\n[" + "a." * 100_000 + "a]\n", "too many parts (at line 3,"),
    "an inline key of endless parts": ("version = 1\nx = {" + "a . " * 50_000 + "a=1}", "too many parts (at line 2,"),
    "a number of endless digits": ("version = " + "9" * 5_000, "a number or date is out of range"),
    "a day that there is not": ("version = 1979-02-30", "not TOML"),
}  # fmt: skip
NO_ORIGINS = (
    "*", "http://*", "http://*:80", "https://*.example.com", "http://a.test:*", "http://exa mple", "http://a..test",
    "http://a.test:0", "http://a.test:99999", "http://[::1", "http://[zz]", "http://[::1]:", "http://é.test", "http://a?",
    "http://a#", "http://u@a.test", "http://１２７.0.0.1", "http://a.test:٣", " http://a.test", "ftp://a.test", "http://",
    "http://" + "a" * 5_000 + "/x",
)  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_policy_check_names_the_fault_and_up_refuses_the_file(world: World, fault: str) -> None:
    """`lomi policy check` exits 1 with the place and the rule; `lomi up` says the same and starts nothing."""
    text, said = FAULTS[fault]
    file = world.root / "faulty.toml"
    file.touch(mode=0o600)
    file.write_text(text)
    checked = world.command("policy", "check", str(file))
    assert checked.code == 1
    assert said in checked.err
    assert "Traceback" not in checked.err
    as_json = world.command("policy", "check", str(file), "--json")
    assert any(said in line for line in json.loads(as_json.out)["faults"])
    other = str(world.root / "elsewhere")
    started = world.command("up", "--headless", "--policy", str(file), "--project", str(world.project), LOMI_HOME=other)
    assert started.code == 1
    assert said in started.err
    assert not os.path.exists(other)


def test_an_origin_has_no_wildcard_and_no_other_host_than_a_browser_has(world: World) -> None:
    """Each is refused by name, on a line of its own that is cut where it is endless; others are taken."""

    def check(origins: Sequence[str]) -> Ended:
        file = world.root / "origins.toml"
        file.touch(mode=0o600)
        file.write_text(policy_text(ClientEntry(label="qa", origins=origins)), encoding="utf-8")
        return world.command("policy", "check", str(file))

    refused = check(NO_ORIGINS)
    assert refused.code == 1
    *faults, hint = refused.err.splitlines()
    assert hint == "hint: docs/ci.md explains a policy, field by field"
    assert len(faults) == len(NO_ORIGINS)
    for origin, fault in zip(NO_ORIGINS, faults, strict=True):
        assert f"client 1 ('qa'): {repr(origin)[:50]}" in fault
        assert fault.endswith("is no origin; write scheme://host[:port]")
        assert len(fault) < 300
    good = (
        "HTTP://A.test/",
        "https://a-b.example.com:8443",
        "http://[::1]:80",
        "http://localhost",
        "http://10.0.0.1:1",
    )
    taken = check(good)
    assert taken.code == 0, taken.err
    assert "HTTP://A.test/, https://a-b.example.com:8443, http://[::1]:80" in taken.out


def test_bytes_that_are_no_text_are_said_on_one_line(world: World) -> None:
    """Neither UTF-8 nor a path with a null character ends in a traceback."""
    file = world.root / "bytes.toml"
    file.touch(mode=0o600)
    file.write_bytes(b"version = 1 # \xff")
    said = world.command("policy", "check", str(file))
    assert (said.code, said.err.splitlines()) == (
        1,
        [f"Error: {file}: not UTF-8", "hint: docs/ci.md explains a policy, field by field"],
    )


@pytest.mark.parametrize(
    "harm", ["writable by the group", "writable by others", "a link", "a folder", "a pipe", "absent"]
)
def test_a_policy_that_others_could_have_written_is_refused(world: World, harm: str) -> None:
    """Modes, links and special files: said, with what to do; nothing hangs."""
    file = world.root / f"policy-{harm.replace(' ', '-')}.toml"
    good = world.root / "good.toml"
    good.touch(mode=0o600)
    good.write_text("version = 1\n" + GOOD)
    if harm == "a link":
        file.symlink_to(good)
    elif harm == "a folder":
        file.mkdir()
    elif harm == "a pipe":
        os.mkfifo(file)
    elif harm != "absent":
        file.write_text(good.read_text())
        file.chmod(0o620 if "group" in harm else 0o602)
    checked = world.command("policy", "check", str(file))
    assert checked.code == 1
    assert str(file) in checked.err
    if harm.startswith("writable"):
        assert "chmod go-w" in checked.err
    assert world.command("policy", "check", str(good)).code == 0


def test_wildcards_are_written_out_and_never_hold_the_dangerous_ones(world: World) -> None:
    """`*` and `family.*` are expanded and printed; setup, manage, settings.write and git never come by wildcard."""
    file = world.root / "wild.toml"
    file.touch(mode=0o600)
    file.write_text(
        policy_text(
            ClientEntry(label="all"), ClientEntry(label="some", scopes=("workspace.read", "terminal.*"), origins=())
        )
    )
    said = world.command("policy", "check", str(file)).out
    everything, some = (line for line in said.splitlines() if line.startswith("  may: "))
    assert set(everything.removeprefix("  may: ").split()) == set(ALL_SCOPES)
    for never in ("android.setup", "android.manage", "settings.write", "git.read", "git.push"):
        assert never not in everything.split()
    assert some.split()[1:] == ["workspace.read", "terminal.execute", "terminal.read"]
    assert "ANY process of this user" in said


def test_any_same_user_is_said_aloud_at_the_start(world: World) -> None:
    """Starting with an entry that asks for no secret says so on stderr, and on stdout is one line of JSON only."""
    assert "any process of this user may pair as 'open', without a secret" in world.live.stderr()
    (line,) = world.live.stdout().splitlines()
    assert set(json.loads(line)) == {"event", "instanceId", "discoveryFile", "discoveryKey"}


def test_policy_token_makes_a_pair_that_fits(world: World) -> None:
    """The printed hash is that of the printed token, and each call makes another."""
    made = [json.loads(world.command("policy", "token", "--json").out) for _ in range(2)]
    assert made[0] != made[1]
    for pair in made:
        assert hashlib.sha256(pair["LOMI_CLIENT_TOKEN"].encode()).hexdigest() == pair["token_sha256"]


@pytest.mark.parametrize(
    ("label", "token", "phase"),
    [
        ("secret", TOKEN, "connected"),
        ("secret", "wrong", "pairing_required"),
        ("secret", None, "pairing_required"),
        ("secret", DIGEST, "pairing_required"),
        ("open", None, "connected"),
        ("open", "whatever", "connected"),
        ("nobody", None, "pairing_required"),
        ("nobody", TOKEN, "pairing_required"),
    ],
)
async def test_who_is_paired(world: World, label: str, token: str | None, phase: str) -> None:
    """Label and proof decide; whoever is not paired may ask for status and nothing else."""
    async with agent(world, label, token=token, bind=False) as client:
        status = (await client.ask("lomi_status")).data
        assert status["connection"] == phase
        listed = await client.call("lomi_workspace_list", {})
        assert listed.code == (None if phase == "connected" else "PAIRING_REQUIRED")
        if phase != "connected":
            assert status["usage"] == []
            assert not any(row["authorized"] for row in status["capabilities"])


async def test_a_token_works_through_the_helper_and_stays_out_of_its_environment(world: World) -> None:
    """LOMI_CLIENT_TOKEN pairs a helper; afterwards no process of ours has it in its environment."""
    async with mcp_agent(world, label="secret", LOMI_CLIENT_TOKEN=TOKEN) as client:
        status = await client.call_tool("lomi_status", {})
        assert status.structured_content["data"]["connection"] == "connected"
    async with mcp_agent(world, label="secret", LOMI_CLIENT_TOKEN="wrong") as client:
        status = await client.call_tool("lomi_status", {})
        assert status.structured_content["data"]["connection"] == "pairing_required"


@pytest.mark.parametrize("label", ["secret", "nobody"])
async def test_whom_no_entry_fits_is_told_to_check_what_it_gave(world: World, label: str) -> None:
    """Nobody is there to approve it: its next step is said once, and is no request to a person."""
    async with mcp_agent(world, label=label, LOMI_CLIENT_TOKEN="wrong") as client:
        for tool, start in (("lomi_status", "connection: pairing_required\nnext: "), ("lomi_diagnostics", "")):
            said = (await client.call_tool(tool, {})).content[0].text
            assert said.startswith(start)
            assert said.count("check LOMI_CLIENT_LABEL and LOMI_CLIENT_TOKEN against the file") == 1
            assert "approve" not in said


INSIDE = textwrap.dedent(
    """
    import asyncio, json, sys
    from pathlib import Path
    from lomi.client.client import connect
    from lomi.client.errors import ToolError
    async def main():
        found = {}
        for label, token in (("open", None), ("secret", sys.argv[3])):
            async with connect(Path(sys.argv[1]), sys.argv[2], label=label, token=token) as client:
                found[label] = (await client.call("lomi_status", {})).plain()["connection"]
        Path(sys.argv[4]).write_text(json.dumps(found))
    asyncio.run(main())
    """
)


async def test_a_client_inside_one_of_our_terminals_is_never_paired_without_a_token(world: World) -> None:
    """Started in one of our terminals, also when it escapes session and parent: pairing_required; a token works."""
    script = world.project / "inside.py"
    script.write_text(INSIDE)
    async with agent(world, "open") as qa:
        created = await qa.do("lomi_terminal_create", await qa.revised(cwdRelative="", title="inside"))
        place = {name: created.result[name] for name in ("panelId", "terminalSessionId", "leaseId")}
        arguments = f"{world.live.discovery_file} {world.live.discovery_key} {TOKEN}"
        for how in ("", "setsid -w ", "setsid -f "):
            out = world.project / f"found{len(how)}.json"
            command = f"{how}{sys.executable} inside.py {arguments} {out}; until [ -s {out} ]; do sleep 0.1; done"
            run = {**await qa.keyed(), **place, "command": command, "waitMs": 15000}
            done = await qa.call("lomi_terminal_run", run)
            if done.data["state"] == "running":
                done = await qa.call("lomi_operation_get", {"operationId": done.data["operationId"], "waitMs": 40000})
            assert done.short == "receipt succeeded/complete", done.raw
            assert json.loads(out.read_text()) == {"open": "pairing_required", "secret": "connected"}, how


async def test_what_the_policy_does_not_decide_is_refused_at_once(world: World) -> None:
    """Headless: an undecided plan settles cancelled/none SCOPE_DENIED at once; a named one is taken."""
    folder = world.root / "decided"
    folder.mkdir()
    outcomes = {}
    for label in ("secret", "deciding"):
        async with agent(world, label, token=TOKEN) as client:
            clock = asyncio.get_running_loop().time
            begun = clock()
            opening = await client.revised(projectPath=str(folder), name="decided")
            said = await client.call("lomi_project_open", {**opening, "waitMs": 15000})
            outcomes[label] = said.short
            assert clock() - begun < 10
    assert outcomes == {
        "secret": "receipt cancelled/none SCOPE_DENIED (not_decided_here)",
        "deciding": "receipt succeeded/complete",
    }


async def test_no_argument_carries_a_decision_and_no_client_reaches_the_owner(world: World) -> None:
    """`decision`, `approved` and owner commands from a client are unknown to the broker."""
    async with agent(world, "open") as client:
        for extra in ({"decision": "approved"}, {"approved": True}, {"decidedBy": "owner"}):
            arguments = {**await client.revised(projectPath="/", name="x"), **extra}
            with pytest.raises(Exception, match="unknown field"):
                await client.call("lomi_project_open", arguments)
        for command in ("owner.status", "owner.revoke_all", "owner.down"):
            with pytest.raises(Exception, match="unknown tool"):
                await client.call(command, {})
    assert "tools_working" in await owner(world, "status")


async def test_a_scope_is_checked_and_named(world: World) -> None:
    """A session with two scopes is refused everything else, with the scope that it lacks."""
    async with agent(world, "narrow") as client:
        said = await client.call("lomi_workspace_create", await client.revised(name="x"))
        assert (said.code, said.reason) == ("SCOPE_DENIED", "scope_missing")
        assert said.error["details"]["needScope"] == "workspace.write"


async def test_a_client_of_another_key_is_not_answered(world: World) -> None:
    """A discovery key that is not this broker's: refused before a byte is sent to it."""
    with pytest.raises(Exception, match="signature"):
        async with connect(world.live.discovery_file, "ab" * 32, label="open"):
            raise AssertionError


def test_answered_reads_envelopes() -> None:
    """The harness itself: an error envelope is an answer with a code."""
    assert answered(b'{"status":"error","code":"TARGET_BUSY","reason":"x","message":"m"}').short == "TARGET_BUSY (x)"
