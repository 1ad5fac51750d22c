"""`lomi mcp-config CLIENT`: exactly what an agent host needs to start Lomi, and where it goes. Writes nothing."""

import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from lomi.cli.failing import fail
from lomi.cli.shown import printable


@dataclass(frozen=True, slots=True)
class Entry:
    """How the helper is started: an absolute command, its arguments, and its environment."""

    name: str
    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def plain(self, **more: object) -> dict[str, object]:
        """As the JSON object that nearly every host reads."""
        return {**more, "command": self.command, "args": list(self.arguments), "env": dict(self.environment)}


def _unescaped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


def _toml_escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escaped(snippet: str, escape: Callable[[str], str], encoding: str) -> str:
    """A snippet as it can be printed: what can't be seen is escaped, and all that is not ASCII where need be.

    A host reads UTF-8, so a letter in the encoding of an older locale would not be the one that was meant.
    """
    wide = encoding.replace("-", "").lower() == "utf8"
    return "".join(c if c == "\n" or (c.isprintable() and (wide or c.isascii())) else escape(c) for c in snippet)


@dataclass(frozen=True, slots=True)
class Host:
    """One agent host: where its configuration lies, what goes in, and the command that puts it there, if it has one."""

    title: str
    where: str
    snippet: Callable[[Entry], str]
    command: Callable[[Entry], str] | None = None
    after: str = ""
    escape: Callable[[str], str] = _json_escape


def _json(key: str, **more: object) -> Callable[[Entry], str]:
    def snippet(entry: Entry) -> str:
        return json.dumps({key: {entry.name: entry.plain(**more)}}, indent=2, ensure_ascii=False)

    return snippet


def _toml(entry: Entry) -> str:
    """Strings of JSON are strings of TOML too, as long as they hold no pairs of surrogates."""
    lines = [
        f"[mcp_servers.{entry.name}]",
        f"command = {_unescaped(entry.command)}",
        f"args = {_unescaped(list(entry.arguments))}",
        "tool_timeout_sec = 120",
        "",
        f"[mcp_servers.{entry.name}.env]",
        *(f"{name} = {_unescaped(value)}" for name, value in entry.environment.items()),
    ]
    return "\n".join(lines)


def _added(start: str, flag: str) -> Callable[[Entry], str]:
    """A host's own command: its environment by `flag`, then the helper behind `--`."""

    def command(entry: Entry) -> str:
        variables = [word for name, value in entry.environment.items() for word in (flag, f"{name}={value}")]
        return shlex.join([*shlex.split(start), entry.name, *variables, "--", entry.command, *entry.arguments])

    return command


def _vs_code(entry: Entry) -> str:
    return shlex.join(["code", "--add-mcp", json.dumps({"name": entry.name, **entry.plain(type="stdio")})])


HOSTS: dict[str, Host] = {
    "claude-code": Host(
        "Claude Code",
        ".mcp.json in the project (shared), or let the command store it for you alone",
        _json("mcpServers", type="stdio"),
        _added("claude mcp add --scope user", "--env"),
        "in Claude Code: /mcp",
    ),
    "codex": Host(
        "Codex",
        "~/.codex/config.toml",
        _toml,
        _added("codex mcp add", "--env"),
        "in Codex: /mcp",
        _toml_escape,
    ),
    "gemini": Host(
        "Gemini CLI",
        "~/.gemini/settings.json, or .gemini/settings.json in the project",
        _json("mcpServers", timeout=120_000),
        after="in Gemini CLI: /mcp",
    ),
    "cursor": Host(
        "Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in the project", _json("mcpServers", type="stdio")
    ),
    "vscode": Host(
        "VS Code",
        ".vscode/mcp.json in the project, or the user's mcp.json (command: MCP: Open User Configuration)",
        _json("servers", type="stdio"),
        _vs_code,
    ),
    "zed": Host("Zed", "~/.config/zed/settings.json", _json("context_servers", source="custom")),
    "windsurf": Host("Windsurf", "~/.codeium/windsurf/mcp_config.json", _json("mcpServers")),
    "json": Host("any host that reads mcpServers", "wherever the host keeps its servers", _json("mcpServers")),
}


@click.command("mcp-config")
@click.argument("client", type=click.Choice(tuple(HOSTS)))
@click.option("--name", default="lomi", show_default=True, help="What the host calls the server.")
@click.option("--label", help="What Lomi calls the client; a policy finds it by this.  [default: CLIENT]")
@click.option("--profile", type=click.Choice(("qa",)), help="List a short selection of tools.")
@click.option("--tools", metavar="A,B", help="List only these tools and tool families.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def mcp_config(
    client: str, name: str, label: str | None, profile: str | None, tools: str | None, as_json: bool
) -> None:
    """Print what CLIENT needs to start Lomi, and where it goes. Nothing is written.

    A client with a token in the policy also needs LOMI_CLIENT_TOKEN in its environment; it is never printed here.
    """
    if not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
        raise click.UsageError("--name takes letters, digits, '-' and '_'")
    if label is not None and (not 1 <= len(label) <= 80 or not label.isprintable()):
        raise click.UsageError("--label takes 1 to 80 characters without control characters")
    host, entry = HOSTS[client], entry_of(name, label or client, profile, tools)
    _require_text(entry)
    command = host.command(entry) if host.command else None
    if as_json:
        said = {"client": host.title, "where": host.where, "snippet": host.snippet(entry), "command": command}
        click.echo(json.dumps(said))
        return
    click.echo(f"# {host.title}: {host.where}", err=True)
    click.echo(escaped(host.snippet(entry), host.escape, sys.stdout.encoding))
    if command is not None:
        click.echo(f"# or: {command}", err=True)
    if host.after:
        click.echo(f"# then {host.after}", err=True)


def _require_text(entry: Entry) -> None:
    for text in (entry.command, *entry.arguments, *entry.environment.values()):
        if any("\ud800" <= c <= "\udfff" for c in text):
            fail(f"{printable(text)} is no UTF-8, and no host's configuration can hold it", "choose another LOMI_HOME")


def entry_of(name: str, label: str, profile: str | None, tools: str | None) -> Entry:
    """The helper of this installation and home, by absolute path: a host has neither our PATH nor our variables."""
    helper = Path(sys.executable).with_name("lomi-mcp")
    command, arguments = (str(helper), []) if helper.exists() else (sys.executable, ["-m", "lomi.mcp.helper"])
    arguments += ["--profile", profile] if profile else []
    arguments += ["--tools", tools] if tools else []
    environment = {"LOMI_CLIENT_LABEL": label}
    if "LOMI_HOME" in os.environ:
        environment["LOMI_HOME"] = str(Path(os.environ["LOMI_HOME"]).absolute())
    return Entry(name, command, tuple(arguments), environment)
