"""What the pages name exists: files, headings, commands, options, tools, codes, reasons, scopes, limits."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from pages import ROOT, anchors, code_spans, fences, pages, prose, written_pages

from lomi.cli.main import COMMANDS, cli
from lomi.contract.codes import ErrorCode
from lomi.contract.limits import DESKTOP, LAB
from lomi.contract.listing import catalogue
from lomi.contract.scopes import SCOPES
from lomi.docs import page
from lomi.mcp import helper
from lomi.store import failure

ALL = {path.name: path for path in pages()}
WRITTEN = {path.name: path for path in written_pages()}
OWN_WORDS = ("lomi_venv", "lomi_call", "lomi_page", "lomi_phone", "lomi_origins")
"""Words that look like tools and are functions of the set-up, or names of the pytest plugin."""


@pytest.mark.parametrize("name", ALL)
def test_links_lead_somewhere(name: str) -> None:
    """Each relative link names a file of the repository, and each anchor a heading in it."""
    path = ALL[name]
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.is_relative_to(ROOT), f"{name}: {link} leaves the repository"
        assert target.exists(), f"{name}: {link}"
        assert not anchor or anchor in anchors(target), f"{name}: {link} has no such heading"


def commands_in(path: Path) -> Iterator[list[str]]:
    """The words of each `lomi ...` of a page, in code spans and in fences of shell."""
    lines = code_spans(path)
    for fence in fences(path):
        if fence.language == "sh":
            lines += fence.text.splitlines()
    for line in lines:
        for said in re.findall(r"(?:^|[(;&|] ?)lomi ([a-z][^#;&|)]*)", line.strip()):
            yield said.split()


def options_of(words: list[str]) -> set[str]:
    """The options of the command that these words begin with.

    Raises:
        LookupError: there is no such command.
    """
    if words[0] == "mcp":
        return set(helper._parser()._option_string_actions)
    if words[0] not in COMMANDS:
        raise LookupError(words[0])
    with click.Context(cli) as context:
        command = cli.get_command(context, words[0])
        assert command is not None
        if isinstance(command, click.Group) and len(words) > 1 and words[1].isidentifier():
            command = command.get_command(context, words[1])
            if command is None:
                raise LookupError(" ".join(words[:2]))
        return {name for option in command.params for name in option.opts} | {"--help", "-h"}


@pytest.mark.parametrize("name", WRITTEN)
def test_commands_and_options_exist(name: str) -> None:
    """No page shows a command or an option that `lomi` does not have."""
    for words in commands_in(WRITTEN[name]):
        try:
            options = options_of(words)
        except LookupError as error:
            pytest.fail(f"{name}: there is no `lomi {error}`")
        given = {word.partition("=")[0].rstrip(",.") for word in words if re.match(r"--?[a-z]", word)}
        assert given <= options, f"{name}: lomi {' '.join(words)}"


@pytest.mark.parametrize("name", WRITTEN)
def test_tools_codes_and_reasons_exist(name: str) -> None:
    """Tools are in the catalogue; `CODE (reason)` is a code with a reason that belongs to it."""
    text = WRITTEN[name].read_text(encoding="utf-8")
    tools = {tool.name for tool in catalogue().tools}
    families = {tool.name.split("_")[1] for tool in catalogue().tools}
    for word in re.findall(r"(?<![\w./-])lomi_[a-z_]+\*?", text):
        stem = word.removesuffix("*").removesuffix("_")
        known = word in tools or (word.endswith("*") and stem.removeprefix("lomi_") in families)
        assert known or stem in OWN_WORDS, f"{name}: {word}"
    codes = {code.value for code in ErrorCode}
    known_reasons = {(reason.code, reason.name) for reason in catalogue().reasons}
    for code, reason in re.findall(r"`([A-Z_]+) \(([a-z_]+)\)`", text):
        assert code in codes, f"{name}: {code}"
        assert (code, reason) in known_reasons, f"{name}: {code} ({reason})"


@pytest.mark.parametrize("name", WRITTEN)
def test_scopes_exist(name: str) -> None:
    """A code span of the form family.verb, with a scope's family, is a scope."""
    families = {scope.split(".")[0] for scope in SCOPES}
    for span in code_spans(WRITTEN[name]):
        found = re.fullmatch(r"([a-z]+)\.([a-z_]+|\*)", span)
        if found and found[1] in families and found[2] not in ("py", "md", "json", "toml"):
            assert span in SCOPES or found[2] == "*", f"{name}: {span}"


def test_every_reason_of_a_refused_store_is_explained() -> None:
    """Whoever meets a refusal at three in the morning finds its reason as a heading of docs/recovery.md."""
    listed = str(failure.StoreRefused.__doc__).partition("one of:")[2].replace(".", "").split(",")
    reasons = {word.strip() for word in listed} - {"unsafe_name"}
    assert len(reasons) > 8
    assert reasons <= anchors(WRITTEN["recovery.md"])


def test_the_limits_of_ci_are_those_of_the_code() -> None:
    """The table of docs/ci.md holds each limit with both presets."""
    rows = re.findall(r"^\| `([a-z_]+)` \| (\w+) \| (\w+) \|$", WRITTEN["ci.md"].read_text(), flags=re.MULTILINE)
    desktop, lab = msgspec.to_builtins(DESKTOP), msgspec.to_builtins(LAB)
    assert {name: (a, b) for name, a, b in rows} == {
        name: (str(desktop[name]).lower(), str(lab[name]).lower()) for name in desktop
    }


def test_the_tools_page_is_fresh() -> None:
    """docs/tools.md is what `python -m lomi.docs --write docs/tools.md` would write."""
    assert (ROOT / "docs" / "tools.md").read_text(encoding="utf-8") == page()
