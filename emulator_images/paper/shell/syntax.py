"""The syntax tree of shell scripts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """Characters as they are; `quoted` ones are never split or matched against files."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` or `${name<operator>word}`; operators: `:-`, `-`, `:=`, `:+`, `+`, `#`, `##`, `%`, `%%`, `len`."""

    name: str
    quoted: bool
    operator: str = ""
    word: "Word | None" = None


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(script)` or backticks."""

    script: "Script"
    quoted: bool


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((expression))`."""

    expression: "Word"


Part = Literal | Variable | Substitution | Arithmetic


@dataclass(frozen=True, slots=True)
class Word:
    """One word before expansion."""

    parts: tuple[Part, ...]

    @property
    def plain(self) -> str | None:
        """The word's text if it is made of unquoted characters only."""
        if all(isinstance(part, Literal) and not part.quoted for part in self.parts):
            return "".join(part.text for part in self.parts if isinstance(part, Literal))
        return None


@dataclass(frozen=True, slots=True)
class Redirect:
    """`descriptor operator target`; operators `<`, `>`, `>>`, `>&`, `<<` (target is the text itself)."""

    descriptor: int
    operator: str
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its assignments, words and redirects."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ script; }`, or `( script )` when `subshell`."""

    script: "Script"
    subshell: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class If:
    """Branches of condition and body, and the `else` body."""

    branches: tuple[tuple["Script", "Script"], ...]
    otherwise: "Script | None"
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`while` or, inverted, `until`."""

    condition: "Script"
    body: "Script"
    until: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words`."""

    name: str
    words: tuple[Word, ...]
    body: "Script"
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """`case word in pattern|pattern) script ;; esac`."""

    word: Word
    branches: tuple[tuple[tuple[Word, ...], "Script"], ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """`name() { script; }`."""

    name: str
    body: "Command"


Command = Simple | Group | If | Loop | For | Case | Function


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`."""

    commands: tuple[Command, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Pipelines joined by `&&` and `||`; each with the operator before it (empty for the first)."""

    links: tuple[tuple[str, Pipeline], ...]
    background: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """Chains one after the other."""

    chains: tuple[Chain, ...]
