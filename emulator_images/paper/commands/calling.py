"""What a command gets when it is called."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from emulator_images.paper.phone import Phone
from emulator_images.paper.shell.interpreter import Shell, Streams


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a command: its name, arguments, streams, the shell it runs in and the phone."""

    phone: Phone
    shell: Shell
    streams: Streams
    name: str
    args: tuple[str, ...]

    async def out(self, text: str | bytes) -> None:
        """Write to standard output."""
        await self.streams.stdout.write(_bytes(text))

    async def err(self, text: str) -> None:
        """Write to standard error."""
        await self.streams.stderr.write(_bytes(text))

    async def fail(self, text: str, code: int = 1) -> int:
        """Write a line to standard error and give an exit code."""
        await self.err(text + "\n")
        return code

    def called(self, name: str, *args: str) -> "Call":
        """The same call of another command."""
        return replace(self, name=name, args=args)

    def options(self, with_value: str = "") -> tuple[dict[str, str], list[str]]:
        """Options and operands; `with_value` lists the option words (separated by spaces) that take a value.

        Single-letter options may be joined (`-rf`). A later option replaces an earlier one.
        """
        taking = set(with_value.split())
        found: dict[str, str] = {}
        operands: list[str] = []
        queue = list(self.args)
        while queue:
            word = queue.pop(0)
            if word == "--":
                operands.extend(queue)
                break
            if not word.startswith("-") or word == "-":
                operands.append(word)
            elif word in taking:
                found[word] = queue.pop(0) if queue else ""
            elif word.startswith("--"):
                name, _, value = word.partition("=")
                found[name] = value
            elif len(word) > 2 and word[:2] in taking:
                found[word[:2]] = word[2:]
            else:
                found.update({f"-{letter}": "" for letter in word[1:]} if len(word) <= 4 else {word: ""})
                found[word] = ""
        return found, operands


Command = Callable[[Call], Awaitable[int]]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
