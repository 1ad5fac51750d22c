"""Reading words: quotes, variables, substitutions and here-documents' bodies."""

from collections.abc import Callable

from emulator_images.paper.shell.syntax import Arithmetic, Literal, Part, Script, Substitution, Variable, Word

_BREAKS = frozenset(" \t\n;&|<>()")
_SPECIAL = frozenset("?$#@*!-0123456789")
_OPERATORS = (":-", ":=", ":+", "##", "%%", "-", "=", "+", "#", "%")


class ShellSyntaxError(Exception):
    """Raised for a script the shell cannot read; the text is mksh's."""


def unexpected(what: str) -> ShellSyntaxError:
    """The error mksh gives for a token in the wrong place."""
    return ShellSyntaxError(f"syntax error: unexpected '{what}'")


class WordReader:
    """Reads words from a script, from a moving position."""

    def __init__(self, text: str, parse_script: Callable[[str], Script]) -> None:
        self.text = text
        self.at = 0
        self._parse_script = parse_script

    def peek(self, length: int = 1) -> str:
        """The next characters."""
        return self.text[self.at : self.at + length]

    def word(self) -> Word | None:
        """The word at the position; None when a break character or the end is there."""
        parts: list[Part] = []
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in _BREAKS:
            parts.extend(self._parts())
        return Word(tuple(parts)) if self.at > start else None

    def quoted_body(self, body: str) -> Word:
        """The text of a here-document with its substitutions."""
        inner = WordReader(body, self._parse_script)
        parts: list[Part] = []
        while inner.at < len(inner.text):
            parts.append(inner._in_double_quotes(stop=""))
        return Word(tuple(parts))

    def _parts(self) -> list[Part]:
        character = self.text[self.at]
        if character == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise ShellSyntaxError("no closing quote")
            text, self.at = self.text[self.at + 1 : end], end + 1
            return [Literal(text, quoted=True)]
        if character == '"':
            return self._double_quoted()
        if character == "\\":
            text = self.peek(2)[1:]
            self.at += 2
            return [Literal("" if text == "\n" else text, quoted=True)]
        if character in "$`" and (part := self._expansion(quoted=False)) is not None:
            return [part]
        start = self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] not in _BREAKS and self.text[self.at] not in "'\"\\$`":
            self.at += 1
        return [Literal(self.text[start : self.at])]

    def _double_quoted(self) -> list[Part]:
        self.at += 1
        parts: list[Part] = [Literal("", quoted=True)]
        while self.peek() != '"':
            if self.at >= len(self.text):
                raise ShellSyntaxError("no closing quote")
            parts.append(self._in_double_quotes(stop='"'))
        self.at += 1
        return parts

    def _in_double_quotes(self, *, stop: str) -> Part:
        character = self.text[self.at]
        if character == "\\" and self.peek(2)[1:] in {"$", "`", '"', "\\", "\n"}:
            text = self.peek(2)[1:]
            self.at += 2
            return Literal("" if text == "\n" else text, quoted=True)
        if character in "$`" and (part := self._expansion(quoted=True)) is not None:
            return part
        start = self.at
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] not in "\\$`" + stop:
            self.at += 1
        return Literal(self.text[start : self.at], quoted=True)

    def _expansion(self, *, quoted: bool) -> Part | None:
        if self.peek() == "`":
            end = self.text.find("`", self.at + 1)
            if end < 0:
                raise ShellSyntaxError("no closing quote")
            inner, self.at = self.text[self.at + 1 : end], end + 1
            return Substitution(self._parse_script(inner), quoted)
        if self.peek(3) == "$((":
            inner = self._balanced(3, "))")
            return Arithmetic(self.quoted_body(inner))
        if self.peek(2) == "$(":
            return Substitution(self._parse_script(self._balanced(2, ")")), quoted)
        if self.peek(2) == "${":
            return self._braced(self._balanced(2, "}"), quoted=quoted)
        if self.peek(2) == "$'" and not quoted:
            return self._ansi_quoted()
        following = self.peek(2)[1:]
        if following and following in _SPECIAL:
            self.at += 2
            return Variable(following, quoted)
        name = _name_at(self.text, self.at + 1)
        if not name:
            return None
        self.at += 1 + len(name)
        return Variable(name, quoted)

    def _ansi_quoted(self) -> Part:
        end = self.at + 2
        while end < len(self.text) and self.text[end] != "'":
            end += 2 if self.text[end] == "\\" else 1
        if end >= len(self.text):
            raise ShellSyntaxError("no closing quote")
        body, self.at = self.text[self.at + 2 : end], end + 1
        return Literal(unescape(body), quoted=True)

    def _braced(self, inner: str, *, quoted: bool) -> Part:
        if inner.startswith("#") and len(inner) > 1:
            return Variable(inner[1:], quoted, "len")
        name = _name_at(inner, 0) or inner[:1]
        rest = inner[len(name) :]
        operator = next((operator for operator in _OPERATORS if rest.startswith(operator)), "")
        if rest and not operator:
            raise ShellSyntaxError(f"${{{inner}}}: bad substitution")
        word = self.quoted_body(rest[len(operator) :].strip("\"'")) if operator else None
        return Variable(name, quoted, operator, word)

    def _balanced(self, opening: int, closing: str) -> str:
        start = self.at + opening
        depth, position, quote = 0, start, ""
        opener = "{" if closing == "}" else "("
        while position < len(self.text):
            character = self.text[position]
            if character == "\\" and quote != "'":
                position += 2
                continue
            if quote:
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character
            elif character == opener:
                depth += 1
            elif depth == 0 and self.text.startswith(closing, position):
                self.at = position + len(closing)
                return self.text[start:position]
            elif character == closing[0]:
                depth -= 1
            position += 1
        raise ShellSyntaxError(f"no closing '{closing}'")


def _name_at(text: str, at: int) -> str:
    end = at
    while end < len(text) and (text[end].isascii() and (text[end].isalnum() or text[end] == "_")):
        end += 1
    name = text[at:end]
    return "" if name[:1].isdigit() else name


def unescape(text: str) -> str:
    """Backslash escapes as `echo -e`, `printf` and `$'...'` know them."""
    simple = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "\\": "\\"}
    out: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "\\" or at + 1 == len(text):
            out.append(text[at])
            at += 1
            continue
        following = text[at + 1]
        base, digits = {"x": (16, 2), "u": (16, 4), "U": (16, 8)}.get(following, (0, 0))
        if following in "01234567":
            length = 1
            while length < 4 and text[at + 1 + length : at + 2 + length] in tuple("01234567"):
                length += 1
            out.append(chr(int(text[at + 1 : at + 1 + length], 8)))
            at += 1 + length
        elif base:
            length = 0
            while length < digits and text[at + 2 + length : at + 3 + length] in tuple("0123456789abcdefABCDEF"):
                length += 1
            out.append(chr(int(text[at + 2 : at + 2 + length], 16)) if length else "\\" + following)
            at += 2 + length
        else:
            out.append(simple.get(following, following if following in "'\"?" else "\\" + following))
            at += 2
    return "".join(out)
