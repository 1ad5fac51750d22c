"""`lomi call`: what need not be typed is filled in, what is typed has its field's type, every tool is in reach."""

import json
import select
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cli_runs import LOMI, WAIT_S, lomi, lomi_in
from harness import ClientEntry, World, opened_world, policy_text
from harness.agent import answered
from harness.site import Site, serving

from lomi.cli.arguments import arguments_of, entry_of, schema_of
from lomi.cli.supply import Supply
from lomi.client.client import connect
from lomi.client.find import own_broker
from lomi.contract.listing import catalogue
from lomi.contract.tools import BY_NAME

TOOLS = [entry.name for entry in catalogue().tools]
FORM = "lomi.paper.form"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A web server that notes what reaches it."""
    with serving() as opened:
        yield opened


def _policy(site: Site) -> str:
    entry = ClientEntry(label="lomi call", devices=("phone-1",), origins=(site.origin,))
    return policy_text(entry, phones=("phone-1",))


@pytest.fixture(scope="module")
def world(site: Site) -> Iterator[World]:
    """A broker with a simulated phone, whose one client is `lomi call` by its usual name."""
    with opened_world(_policy(site)) as opened:
        yield opened


@pytest.fixture
def walked(site: Site) -> Iterator[World]:
    """A broker of its own for calls that leave things behind."""
    with opened_world(_policy(site)) as opened:
        yield opened


def _sample(field: dict[str, Any]) -> Any:
    """A value of a field's type whose text could be taken for one of another type."""
    if "const" in field:
        return field["const"]
    if "enum" in field:
        return field["enum"][0]
    if "oneOf" in field:
        return _sample(field["oneOf"][0])
    kind = field["type"] if isinstance(field["type"], str) else field["type"][0]
    if kind == "object":
        return {name: _sample(one) for name, one in field["properties"].items()}
    if kind == "array":
        return [_sample(field["items"])] * field.get("minItems", 1)
    numbers = {"integer": field.get("minimum", 7), "number": 0.5, "boolean": True}
    return numbers.get(kind, "2")


def _pair(name: str, value: Any) -> str:
    return f"{name}={value if isinstance(value, str) else json.dumps(value)}"


def _place(asked: dict[str, Any]) -> dict[str, str]:
    return {"workspaceId": "w1"} if "workspaceId" in asked else {}


@pytest.mark.parametrize("tool", TOOLS)
def test_each_value_has_the_type_of_its_field(tool: str) -> None:
    """Every field of every tool, typed as key=value, is decoded by the tool's own model; text such as 2 stays text."""
    entry = entry_of(tool)
    assert entry is not None
    sample = {name: _sample(field) for name, field in schema_of(entry).properties.items()}
    made = msgspec.json.encode(arguments_of(entry, [_pair(name, value) for name, value in sample.items()]))
    assert json.loads(made) == sample
    msgspec.json.decode(made, type=BY_NAME[tool].input)


async def test_every_tool_is_in_reach_with_what_only_a_person_knows(walked: World) -> None:
    """Each of the 74 tools, given no key, epoch and revision, reaches its own rules in a real broker."""
    known = {"retryEpoch", "requestKey", "expectedRevision"}
    found = own_broker(walked.environment())
    for tool in TOOLS:
        entry = entry_of(tool)
        assert entry is not None
        fields = schema_of(entry)
        asked = {name: _sample(fields.properties[name]) for name in fields.required if name not in known}
        typed = [_pair(name, value) for name, value in {**asked, **_place(asked)}.items()]
        async with connect(found.discovery_file, found.discovery_key, label="lomi call") as client:
            whole = await Supply(client).complete(entry, arguments_of(entry, typed))
            reply = answered((await client.call_raw(tool, msgspec.json.encode(whole))).structured)
        assert reply.code != "RETRY_WINDOW_EXPIRED"
        assert reply.reason not in ("revision_stale", "epoch_unknown", "epoch_expired")


def test_a_call_writes_with_nothing_but_what_is_to_be_written(world: World) -> None:
    """A workspace is made from its name 2 alone, and is there; a stale revision 1 ends with cause, hint and code 1."""
    named = lomi(world, "call", "lomi_workspace_create", "name=2", "--json")
    assert (named.code, named.json["state"]) == (0, "succeeded"), named.err
    listed = {row["name"]: row["id"] for row in lomi(world, "call", "lomi_workspace_list", "--json").json["items"]}
    assert listed["2"] == named.json["result"]["workspaceId"]
    assert lomi(world, "receipts", "--json").json["receipts"][0]["tool"] == "lomi_workspace_create"
    stale = lomi(world, "call", "lomi_workspace_create", "workspaceId=w1", "name=3", "expectedRevision=1", "--json")
    assert (stale.code, stale.json["result"]["reason"]) == (1, "revision_stale")
    error, hint = stale.err.splitlines()
    assert error == "Error: the operation ended as failed: REVISION_CONFLICT (revision_stale)"
    assert hint.startswith("hint: ")
    closed = lomi(world, "call", "lomi_workspace_update", f"workspaceId={listed['2']}", "action=close", "--json")
    assert closed.json["state"] == "succeeded"


def test_which_workspace_is_asked_where_there_are_two(walked: World) -> None:
    """The error names them, with a hint."""
    assert lomi(walked, "call", "lomi_workspace_create", "name=other").code == 0
    ran = lomi(walked, "call", "lomi_panel_list")
    assert ran.code == 1
    project = walked.project.name
    assert ran.err.splitlines() == [
        f"Error: say which workspace with workspaceId=; there is w1 'main' of '{project}', w2 'other' of '{project}'",
        "hint: `lomi call lomi_workspace_list`",
    ]


def test_a_malformed_field_is_named_with_the_command_that_explains_it(world: World) -> None:
    """A phone's name is not its id: the refusal says which field, and where the form of it is told."""
    ran = lomi(world, "call", "lomi_android_open", "workspaceId=w1", "deviceId=phone-1")
    assert ran.code == 1
    error, hint = ran.err.splitlines()
    assert error.endswith("(malformed) at /deviceId")
    assert hint.endswith("`lomi tools lomi_android_open` shows its scopes and fields.")


WRONG = {
    "no number": (("limit=many",), 1, "limit takes JSON (integer); 'many' is not JSON"),
    "not JSON": (("limit:=[1",), 1, "limit takes JSON; '[1' is not JSON"),
    "too deep": (("x:=" + "[" * 100_000,), 1, "x takes JSON"),
    "a number of another type": (("limit=1.5",), 1, "Expected `int`, got `float`"),
    "a key twice": (("limit=1", "limit=2"), 2, "limit is given twice"),
    "no UTF-8": (("cursor=\udcff",), 1, "cursor: the value is no UTF-8"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_value_that_is_wrong_is_said_on_one_line(world: World, case: str) -> None:
    """One line, a hint, the documented exit code."""
    pairs, code, said = WRONG[case]
    ran = lomi(world, "call", "lomi_workspace_list", *pairs)
    assert (ran.code, ran.out) == (code, "")
    error, hint = ran.err.splitlines()
    assert said in error
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (b"\xff\xfe\n", 1, "unknown tool '\\udcff\\udcfe'"),
        (b"x" * 50_000 + b"\n", 1, "unknown tool 'xxx"),
        (b"lomi_status waitMs=" + b"1" * 3_000_000 + b"\n", 2, "characters; 262144 are the most"),
    ],
    ids=["no UTF-8", "a long word", "a long line"],
)
def test_a_line_that_is_no_call_is_said_at_once_and_on_one_line(
    world: World, line: bytes, code: int, said: str
) -> None:
    """Whatever its bytes and however long it is."""
    ran = subprocess.run(
        [LOMI, "call", "-"],
        check=False,
        env=world.environment(),
        cwd=world.root,
        input=line,
        capture_output=True,
        timeout=WAIT_S,
    )
    error, hint = [told for told in ran.stderr.decode().splitlines() if told.startswith(("Error: ", "hint: "))]
    assert (ran.returncode, ran.stdout) == (code, b"")
    assert said in error
    assert len(error) < 300
    assert hint.startswith("hint: ")


class _Dialogue:
    """`lomi call - --json`: a line in, a line out."""

    def __init__(self, world: World) -> None:
        self._process = subprocess.Popen(
            [LOMI, "call", "-", "--json"],
            env=world.environment(),
            cwd=world.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str) -> dict[str, Any]:
        """One call and its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        assert select.select([self._process.stdout], [], [], WAIT_S)[0], "it gave no answer"
        said = self._process.stdout.readline()
        assert said, self._process.communicate(timeout=WAIT_S)[1]
        return dict(json.loads(said))

    def end(self) -> int:
        """Close its input and wait."""
        self._process.communicate(timeout=WAIT_S)
        return self._process.returncode


def _element(page: dict[str, Any], name: str) -> str:
    return next(str(element["elementRef"]) for element in page["elements"] if element["name"] == name)


def test_what_lives_in_a_session_is_driven_line_by_line(world: World, site: Site) -> None:
    """With `-` a phone, a terminal and a page are made, leased and acted on by what a person knows of them alone."""
    talk = _Dialogue(world)
    device = talk.ask("lomi_android_list")["devices"]["items"][0]["deviceId"]
    phone = talk.ask(f"lomi_android_open deviceId={device}")["result"]["panelId"]
    assert talk.ask(f"lomi_android_start panelId={phone}")["state"] == "succeeded"
    assert talk.ask(f"lomi_android_launch deviceId={device} packageName={FORM}")["state"] == "succeeded"
    for number in ("1", "2"):
        pressed = talk.ask(f"""lomi_android_input panelId={phone} event='{{"type":"navigation","key":"back"}}'""")
        assert (pressed["state"], pressed["result"]["inputSequence"]) == ("succeeded", number)
    terminal = talk.ask("lomi_terminal_create cwdRelative= title='a shell of mine'")["result"]["panelId"]
    ran = talk.ask(f"lomi_terminal_run panelId={terminal} command='echo it ran > ran.txt'")
    assert ran["state"] == "succeeded"
    assert (world.project / "ran.txt").read_text() == "it ran\n"
    page = talk.ask(f"lomi_browser_open url={site.origin}/")["result"]["panelId"]
    field = _element(talk.ask(f"lomi_browser_snapshot panelId={page} form=elements"), "Text")
    assert talk.ask(f"lomi_browser_fill panelId={page} elementRef={field} text=2")["state"] == "succeeded"
    button = _element(talk.ask(f"lomi_browser_snapshot panelId={page} form=elements"), "Send")
    assert talk.ask(f"lomi_browser_click panelId={page} elementRef={button}")["state"] == "succeeded"
    assert site.wait("/submit", text="2")
    assert talk.ask(f"lomi_panel_control panelId={phone} action=release")["state"] == "succeeded"
    assert talk.ask(f"lomi_android_stop panelId={phone}")["state"] == "succeeded"
    assert talk.end() == 0


def test_a_script_ends_at_its_first_failure(world: World, tmp_path: Path) -> None:
    """What stands below a line that fails is not done; comments and empty lines are nothing."""
    script = """
# a comment
lomi_workspace_list --

lomi_workspace_create name=never
"""
    ran = lomi_in(world.environment(), "call", "-", cwd=tmp_path, said=script)
    assert (ran.code, ran.out) == (2, "")
    assert "'--' is not key=value" in ran.err
    unclosed = lomi_in(world.environment(), "call", "-", cwd=tmp_path, said="lomi_status 'x\nlomi_status\n")
    assert (unclosed.code, unclosed.out) == (2, "")
    unknown = lomi_in(world.environment(), "call", "-", cwd=tmp_path, said="lomi_statu")
    assert unknown.err.splitlines()[-1] == "hint: did you mean lomi_status? `lomi tools` lists them"
    names = [row["name"] for row in lomi(world, "call", "lomi_workspace_list", "--json").json["items"]]
    assert "never" not in names
