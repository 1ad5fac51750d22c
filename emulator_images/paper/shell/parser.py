"""Reads shell scripts into their syntax tree."""

import re
from functools import lru_cache

from emulator_images.paper.shell.syntax import (
    Case,
    Chain,
    Command,
    For,
    Function,
    Group,
    If,
    Literal,
    Loop,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Word,
)
from emulator_images.paper.shell.words import ShellSyntaxError, WordReader, unexpected

_SHORT = 2048  # characters of a script that is kept
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_REDIRECT = re.compile(r"(\d*)(<<-|<<|>>|>&|<&|&>|>|<)")


def parse(text: str) -> Script:
    """The syntax tree of a script; short ones, which clients send again and again, are kept.

    Raises:
        ShellSyntaxError: it is no script that mksh would read.
    """
    return _kept(text) if len(text) <= _SHORT else _parse(text)


@lru_cache(maxsize=128)
def _kept(text: str) -> Script:
    return _parse(text)


def _parse(text: str) -> Script:
    parser = _Parser(text)
    script = parser.script()
    if parser.reader.at < len(parser.reader.text):
        raise unexpected(parser.reader.peek())
    return script


class _Parser:
    def __init__(self, text: str) -> None:
        self.reader = WordReader(text, parse)

    def script(self) -> Script:
        """Chains up to a closing word, `)`, `;;` or the end."""
        chains: list[Chain] = []
        while True:
            self._space(newlines=True)
            if self._at_end():
                return Script(tuple(chains))
            links = [("", self._pipeline())]
            while (operator := self._operator("&&", "||")) is not None:
                self._space(newlines=True)
                links.append((operator, self._pipeline()))
            background = False
            self._space()
            if self.reader.peek(2) != ";;" and self.reader.peek() == ";":
                self.reader.at += 1
            elif self.reader.peek() == "&":
                self.reader.at += 1
                background = True
            elif self.reader.peek() not in {"\n", ""} and not self._at_end():
                raise unexpected(self.reader.peek())
            chains.append(Chain(tuple(links), background))

    def _at_end(self) -> bool:
        if self.reader.peek() in {"", ")"} or self.reader.peek(2) == ";;":
            return True
        return self._next_plain() in _CLOSERS

    def _next_plain(self) -> str:
        match = re.compile(r"[^\s;&|<>()'\"\\$`]+").match(self.reader.text, self.reader.at)
        return match.group() if match else ""

    def _keyword(self, *words: str) -> str:
        self._space(newlines=True)
        found = self._next_plain()
        if found not in words:
            raise unexpected(found or self.reader.peek() or "EOF")
        self.reader.at += len(found)
        return found

    def _operator(self, *operators: str) -> str | None:
        self._space()
        for operator in operators:
            if self.reader.peek(len(operator)) == operator:
                self.reader.at += len(operator)
                return operator
        return None

    def _space(self, *, newlines: bool = False) -> None:
        text = self.reader.text
        while self.reader.at < len(text):
            character = text[self.reader.at]
            if character in " \t" or text.startswith("\\\n", self.reader.at):
                self.reader.at += 2 if character == "\\" else 1
            elif character == "#":
                end = text.find("\n", self.reader.at)
                self.reader.at = len(text) if end < 0 else end
            elif character == "\n" and newlines:
                self.reader.at += 1
            else:
                return

    def _pipeline(self) -> Pipeline:
        self._space()
        negated = False
        while self._next_plain() == "!":
            self.reader.at += 1
            negated = not negated
            self._space()
        commands = [self._command()]
        while True:
            self._space()
            if self.reader.peek() != "|" or self.reader.peek(2) == "||":
                return Pipeline(tuple(commands), negated)
            self.reader.at += 1
            self._space(newlines=True)
            commands.append(self._command())

    def _command(self) -> Command:
        self._space()
        if self.reader.peek() == "(":
            self.reader.at += 1
            script = self.script()
            if self.reader.peek() != ")":
                raise ShellSyntaxError("no closing ')'")
            self.reader.at += 1
            return Group(script, subshell=True, redirects=self._redirects())
        compound = {"{": self._braces, "if": self._if, "while": self._loop, "until": self._loop, "for": self._for,
                    "case": self._case}.get(self._next_plain())  # fmt: skip
        return compound() if compound else self._simple()

    def _braces(self) -> Command:
        self._keyword("{")
        script = self.script()
        self._keyword("}")
        return Group(script, subshell=False, redirects=self._redirects())

    def _if(self) -> Command:
        branches: list[tuple[Script, Script]] = []
        otherwise: Script | None = None
        word = self._keyword("if")
        while word in {"if", "elif"}:
            condition = self.script()
            self._keyword("then")
            branches.append((condition, self.script()))
            word = self._keyword("elif", "else", "fi")
        if word == "else":
            otherwise = self.script()
            self._keyword("fi")
        return If(tuple(branches), otherwise, self._redirects())

    def _loop(self) -> Command:
        until = self._keyword("while", "until") == "until"
        condition = self.script()
        return Loop(condition, self._do_body(), until, self._redirects())

    def _do_body(self) -> Script:
        self._keyword("do")
        body = self.script()
        self._keyword("done")
        return body

    def _for(self) -> Command:
        self._keyword("for")
        self._space()
        name = self._next_plain()
        self.reader.at += len(name)
        words: list[Word] = []
        self._space(newlines=True)
        if self._next_plain() == "in":
            self.reader.at += 2
            self._space()
            while (word := self.reader.word()) is not None:
                words.append(word)
                self._space()
        else:
            words.append(self.reader.quoted_body("$@"))
        if self.reader.peek() == ";":
            self.reader.at += 1
        return For(name, tuple(words), self._do_body(), self._redirects())

    def _case(self) -> Command:
        self._keyword("case")
        self._space()
        subject = self.reader.word()
        if subject is None:
            raise unexpected(self.reader.peek() or "EOF")
        self._keyword("in")
        branches: list[tuple[tuple[Word, ...], Script]] = []
        while True:
            self._space(newlines=True)
            if self._next_plain() == "esac":
                self.reader.at += 4
                return Case(subject, tuple(branches), self._redirects())
            self._operator("(")
            patterns: list[Word] = []
            while True:
                self._space()
                word = self.reader.word()
                if word is None:
                    raise unexpected(self.reader.peek() or "EOF")
                patterns.append(word)
                if self._operator("|") is None:
                    break
            if self._operator(")") is None:
                raise unexpected(self.reader.peek() or "EOF")
            branches.append((tuple(patterns), self.script()))
            self._operator(";;")

    def _redirects(self) -> tuple[Redirect, ...]:
        found: list[Redirect] = []
        while True:
            self._space()
            redirect = self._redirect()
            if not redirect:
                return tuple(found)
            found.extend(redirect)

    def _redirect(self) -> list[Redirect]:
        match = _REDIRECT.match(self.reader.text, self.reader.at)
        if match is None:
            return []
        number, operator = match.groups()
        self.reader.at = match.end()
        self._space()
        target = self.reader.word()
        if target is None:
            raise unexpected(self.reader.peek() or "newline")
        if operator in {"<<", "<<-"}:
            return [self._here(target)]
        if operator == "&>":
            return [Redirect(1, ">", target), Redirect(2, ">&", Word((Literal("1"),)))]
        default = 0 if operator.startswith("<") else 1
        return [Redirect(int(number) if number else default, ">&" if operator == "<&" else operator, target)]

    def _here(self, mark: Word) -> Redirect:
        text = "".join(part.text for part in mark.parts if isinstance(part, Literal))
        end = self.reader.text.find("\n", self.reader.at)
        rest = "" if end < 0 else self.reader.text[end + 1 :]
        lines: list[str] = []
        length = 0
        for line in rest.splitlines(keepends=True):
            length += len(line)
            if line.rstrip("\n") == text:
                break
            lines.append(line)
        if end >= 0:
            self.reader.text = self.reader.text[: end + 1] + rest[length:]
        body = "".join(lines)
        expands = mark.plain is not None
        return Redirect(0, "<<", self.reader.quoted_body(body) if expands else Word((Literal(body, quoted=True),)))

    def _simple(self) -> Command:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._space()
            redirect = self._redirect()
            if redirect:
                redirects.extend(redirect)
                continue
            match = None if words else _ASSIGNMENT.match(self.reader.text, self.reader.at)
            if match is not None:
                self.reader.at = match.end()
                assignments.append((match.group()[:-1], self.reader.word() or Word(())))
                continue
            word = self.reader.word()
            if word is None:
                break
            words.append(word)
            if len(words) == 1 and word.plain is not None and self.reader.peek(2) == "()":
                self.reader.at += 2
                self._space(newlines=True)
                return Function(word.plain, self._command())
        if not words and not assignments and not redirects:
            raise unexpected(self.reader.peek() or "EOF")
        return Simple(tuple(assignments), tuple(words), tuple(redirects))
