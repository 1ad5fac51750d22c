"""Runs shell scripts on the phone."""

import asyncio
import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from emulator_images.paper.shell.arithmetic import evaluate
from emulator_images.paper.shell.flow import BrokenPipe, Bytes, Collector, Discard, Pipe, Sink, Source
from emulator_images.paper.shell.parser import parse
from emulator_images.paper.shell.syntax import (
    Arithmetic,
    Case,
    Chain,
    Command,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Part,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Substitution,
    Variable,
    Word,
)
from emulator_images.paper.shell.words import ShellSyntaxError

_MOST_LOOPS = 100_000


class ExitShell(Exception):  # noqa: N818 - no error: `exit` was called
    """Raised by `exit` to leave the shell with a code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class LeaveLoop(Exception):  # noqa: N818 - no error: `break` or `continue` was called
    """Raised by `break` and `continue`."""

    def __init__(self, *, again: bool) -> None:
        super().__init__()
        self.again = again


class FileSystem(Protocol):
    """What the shell needs of the phone's files."""

    def read(self, path: str) -> bytes:
        """A file's content."""

    def write(self, path: str, payload: bytes, *, append: bool = False) -> None:
        """Write a file."""

    def matching(self, pattern: str) -> list[str]:
        """Paths that match a pattern."""

    def is_directory(self, path: str) -> bool:
        """Whether a directory is there."""


class FileError(Exception):
    """Raised by the file system; the text is the error's own (`No such file or directory`...)."""


@dataclass(frozen=True, slots=True)
class Streams:
    """Where a command reads and writes."""

    stdin: Source
    stdout: Sink
    stderr: Sink


class Runner(Protocol):
    """Runs one command by name."""

    async def __call__(self, shell: "Shell", words: list[str], streams: Streams) -> int:
        """The command's exit code; 127 when there is no such command."""


@dataclass(slots=True)
class Shell:
    """One shell: its variables, functions, directory and last exit code."""

    files: FileSystem
    run_command: Runner
    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Command] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    directory: str = "/"
    code: int = 0
    pid: int = 4242
    background: asyncio.TaskGroup | None = None
    jobs: list["asyncio.Task[int]"] = field(default_factory=list)

    async def run_text(self, text: str, streams: Streams) -> int:
        """Run a script; returns the shell's exit code."""
        try:
            script = parse(text)
        except ShellSyntaxError as error:
            await streams.stderr.write(f"/system/bin/sh: {error}\n".encode())
            self.code = 1
            return 1
        try:
            async with asyncio.TaskGroup() as group:
                self.background = group
                try:
                    return await self.script(script, streams)
                except ExitShell as leaving:
                    self.code = leaving.code
                    return leaving.code
                finally:
                    for job in self.jobs:
                        job.cancel()
        except BaseExceptionGroup as wrapped:
            # Callers wait for the script's own exception, such as that of a stream its client has closed.
            if len(wrapped.exceptions) == 1:
                raise wrapped.exceptions[0] from wrapped
            raise

    async def wait_for_jobs(self) -> None:
        """Wait until the commands in the background have ended."""
        if self.jobs:
            await asyncio.wait(self.jobs)

    async def _in_background(self, chain: Chain, streams: Streams) -> int:
        try:
            return await self.child().chain(chain, replace(streams, stdin=Bytes()))
        except (ExitShell, BrokenPipe):
            return 1

    def child(self) -> "Shell":
        """A subshell: changes to it stay in it."""
        return replace(self, variables=dict(self.variables), functions=dict(self.functions))

    def path(self, name: str) -> str:
        """An absolute path."""
        return name if name.startswith("/") else f"{self.directory.rstrip('/')}/{name}"

    async def script(self, script: Script, streams: Streams) -> int:
        """Run chains in order."""
        for chain in script.chains:
            if chain.background:
                assert self.background is not None
                self.jobs.append(self.background.create_task(self._in_background(chain, streams)))
                await asyncio.sleep(0)  # what takes no time is done before the shell goes on
                self.code = 0
            else:
                await self.chain(chain, streams)
        return self.code

    async def chain(self, chain: Chain, streams: Streams) -> int:
        """Run pipelines joined by `&&` and `||`."""
        for operator, pipeline in chain.links:
            if (operator == "&&" and self.code) or (operator == "||" and not self.code):
                continue
            code = await self._pipeline(pipeline, streams)
            self.code = int(not code) if pipeline.negated else code
        return self.code

    async def _pipeline(self, pipeline: Pipeline, streams: Streams) -> int:
        if len(pipeline.commands) == 1:
            return await self.command(pipeline.commands[0], streams)
        pipes = [Pipe() for _ in pipeline.commands[1:]]
        sources: list[Source] = [streams.stdin, *pipes]
        sinks: list[Sink] = [*pipes, streams.stdout]

        async def stage(position: int) -> int:
            own = Streams(sources[position], sinks[position], streams.stderr)
            try:
                return await self.child().command(pipeline.commands[position], own)
            except BrokenPipe:
                return 141
            except ExitShell as leaving:
                return leaving.code
            finally:
                if position < len(pipes):
                    await pipes[position].finish()
                if position > 0:
                    pipes[position - 1].abandon()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(stage(position)) for position in range(len(pipeline.commands))]
        return tasks[-1].result()

    async def command(self, command: Command, streams: Streams) -> int:
        """Run one command of any form."""
        if isinstance(command, Simple):
            return await self._simple(command, streams)
        if isinstance(command, Function):
            self.functions[command.name] = command.body
            return 0
        own = await self._redirected(command.redirects, streams)
        if own is None:
            return 1
        inner, targets = own
        code = await self._compound(command, inner)
        self._store(targets)
        return code

    async def _compound(self, command: Group | If | Loop | For | Case, streams: Streams) -> int:
        if isinstance(command, Group):
            if not command.subshell:
                return await self.script(command.script, streams)
            shell = self.child()
            try:
                return await shell.script(command.script, streams)
            except ExitShell as leaving:
                return leaving.code
        if isinstance(command, If):
            for condition, body in command.branches:
                if await self.script(condition, streams) == 0:
                    return await self.script(body, streams)
            return await self.script(command.otherwise, streams) if command.otherwise else 0
        if isinstance(command, Case):
            subject = await self.single(command.word, streams)
            for patterns, body in command.branches:
                for pattern in patterns:
                    if fnmatch.fnmatchcase(subject, await self.single(pattern, streams)):
                        return await self.script(body, streams)
            return 0
        return await self._repeat(command, streams)

    async def _repeat(self, command: Loop | For, streams: Streams) -> int:
        code = 0
        if isinstance(command, For):
            for value in await self.expand(command.words, streams):
                self.variables[command.name] = value
                try:
                    code = await self.script(command.body, streams)
                except LeaveLoop as leaving:
                    if not leaving.again:
                        break
            return code
        for _ in range(_MOST_LOOPS):
            if (await self.script(command.condition, streams) == 0) is command.until:
                break
            try:
                code = await self.script(command.body, streams)
            except LeaveLoop as leaving:
                if not leaving.again:
                    break
            await asyncio.sleep(0)
        return code

    async def _simple(self, command: Simple, streams: Streams) -> int:
        words = await self.expand(command.words, streams)
        values = {name: await self.single(word, streams) for name, word in command.assignments}
        own = await self._redirected(command.redirects, streams)
        if own is None:
            return 1
        inner, targets = own
        if not words:
            self.variables.update(values)
            code = self.code if any(_substitutes(word) for _, word in command.assignments) else 0
        else:
            saved = {name: self.variables.get(name) for name in values}
            self.variables.update(values)
            try:
                code = await self._invoke(words, inner)
            finally:
                for name, old in saved.items():
                    if old is None:
                        self.variables.pop(name, None)
                    else:
                        self.variables[name] = old
                self._store(targets)
            return code
        self._store(targets)
        return code

    async def _invoke(self, words: list[str], streams: Streams) -> int:
        body = self.functions.get(words[0])
        if body is None:
            return await self.run_command(self, words, streams)
        outer, self.arguments = self.arguments, tuple(words[1:])
        try:
            return await self.command(body, streams)
        finally:
            self.arguments = outer

    async def _redirected(
        self, redirects: tuple[Redirect, ...], streams: Streams
    ) -> tuple[Streams, list[tuple[str, Collector, bool]]] | None:
        stdin = streams.stdin
        sinks: dict[int, Sink] = {1: streams.stdout, 2: streams.stderr}
        targets: list[tuple[str, Collector, bool]] = []
        for redirect in redirects:
            name = await self.single(redirect.target, streams)
            path = self.path(name)
            if redirect.operator == "<<":
                stdin = Bytes(name.encode("utf-8", "surrogateescape"))
            elif redirect.operator == ">&":
                sinks[redirect.descriptor] = Discard() if name == "-" else sinks.get(int(name or 1), streams.stdout)
            elif path == "/dev/null":
                if redirect.operator == "<":
                    stdin = Bytes()
                else:
                    sinks[redirect.descriptor] = Discard()
            elif path in {"/dev/tty", "/dev/stdout", "/proc/self/fd/1"}:
                continue
            else:
                try:
                    if redirect.operator == "<":
                        stdin = Bytes(self.files.read(path))
                        continue
                    self.files.write(path, b"", append=redirect.operator == ">>")
                except FileError as error:
                    verb = "open" if redirect.operator == "<" else "create"
                    await streams.stderr.write(f"/system/bin/sh: can't {verb} {name}: {error}\n".encode())
                    return None
                collector = Collector()
                sinks[redirect.descriptor] = collector
                targets.append((path, collector, redirect.operator == ">>"))
        return Streams(stdin, sinks[1], sinks[2]), targets

    def _store(self, targets: list[tuple[str, Collector, bool]]) -> None:
        for path, collector, append in targets:
            self.files.write(path, bytes(collector.payload), append=append)

    async def expand(self, words: tuple[Word, ...], streams: Streams) -> list[str]:
        """Words after expansion, field splitting and file name matching."""
        fields: list[str] = []
        for word in words:
            fields.extend(await self._fields(word, streams))
        return fields

    async def single(self, word: Word, streams: Streams) -> str:
        """A word as one string, without splitting."""
        return "".join([await self._text(part, streams) for part in word.parts])

    async def _fields(self, word: Word, streams: Streams) -> list[str]:
        done: list[str] = []
        current, present, wild = "", False, False
        for part in word.parts:
            if isinstance(part, Variable) and part.name == "@" and part.quoted:
                for number, argument in enumerate(self.arguments):
                    if number:
                        done.append(current)
                        current = ""
                    current, present = current + argument, True
                continue
            text = await self._text(part, streams)
            if isinstance(part, Literal) and not part.quoted:
                wild = wild or any(c in text for c in "*?[")
            if isinstance(part, Literal | Arithmetic) or part.quoted:
                current += text
                present = True
                continue
            pieces = text.split()
            if text[:1].isspace() and current:
                done.append(current)
                current = ""
            for number, piece in enumerate(pieces):
                if number:
                    done.append(current)
                    current = ""
                current += piece
            if pieces and text[-1:].isspace():
                done.append(current)
                current = ""
        if current or present:
            done.append(current)
        if wild:
            return [path for one in done for path in (self.files.matching(self.path(one)) or [one])]
        return done

    async def _text(self, part: Part, streams: Streams) -> str:
        if isinstance(part, Literal):
            home = part.text == "~" and not part.quoted
            return "/" if home else part.text
        if isinstance(part, Substitution):
            collector = Collector()
            shell = self.child()
            try:
                await shell.script(part.script, replace(streams, stdout=collector))
            except ExitShell as leaving:
                shell.code = leaving.code
            self.code = shell.code
            return collector.payload.decode("utf-8", "surrogateescape").rstrip("\n")
        if isinstance(part, Arithmetic):
            return str(evaluate(await self.single(part.expression, streams), self.variables))
        return await self._variable(part, streams)

    async def _variable(self, part: Variable, streams: Streams) -> str:
        value = self.lookup(part.name)
        word = await self.single(part.word, streams) if part.word is not None else ""
        operator = part.operator
        if operator == "len":
            return str(len(value or ""))
        if operator in {":-", ":=", "-", "="}:
            missing = not value if operator.startswith(":") else value is None
            if missing and operator.endswith("="):
                self.variables[part.name] = word
            return word if missing else value or ""
        if operator in {":+", "+"}:
            there = bool(value) if operator == ":+" else value is not None
            return word if there else ""
        if operator:
            return _trimmed(value or "", operator, word)
        return value or ""

    def lookup(self, name: str) -> str | None:
        """A variable's value, None when unset."""
        special: Mapping[str, str] = {
            "?": str(self.code), "$": str(self.pid), "#": str(len(self.arguments)), "!": str(self.pid + 1), "0": "sh",
            "@": " ".join(self.arguments), "*": " ".join(self.arguments), "-": "", "PWD": self.directory,
        }  # fmt: skip
        if name in special:
            return special[name]
        if name.isdecimal():
            number = int(name)
            return self.arguments[number - 1] if number <= len(self.arguments) else None
        return self.variables.get(name)


def _substitutes(word: Word) -> bool:
    return any(isinstance(part, Substitution) for part in word.parts)


def _trimmed(value: str, operator: str, pattern: str) -> str:
    lengths = range(len(value) + 1)
    if operator.startswith("#"):
        order = reversed(lengths) if operator == "##" else lengths
        return next((value[n:] for n in order if fnmatch.fnmatchcase(value[:n], pattern)), value)
    order = lengths if operator == "%%" else reversed(lengths)
    return next((value[:n] for n in order if fnmatch.fnmatchcase(value[n:], pattern)), value)
