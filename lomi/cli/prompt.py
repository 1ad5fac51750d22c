"""The prompt of a foreground `lomi up`: shows exactly what is asked, and means no unless a person types yes in time."""

import asyncio
import errno
import fcntl
import os
import select
import stat
import struct
import sys
import termios
from collections.abc import Callable
from typing import Protocol

import msgspec

from lomi.broker.deciders import Decision, DecisionRequest, Verdict
from lomi.broker.sessions import Session
from lomi.cli.offer import reach_of
from lomi.cli.shown import printable
from lomi.contract.scopes import SCOPES
from lomi.core.grant import Grant

_YES = ("y", "yes")


def _question(phrase: str | None) -> str:
    return "Allow this once? [y/N]" if phrase is None else f"To allow this once, type exactly: {printable(phrase)}"


def _in_front(descriptor: int) -> bool:
    """Whether what is typed at a terminal is meant for this process, not for the shell that put it behind."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError as error:
        # A terminal that is not the controlling one has no front and no back.
        return error.errno == errno.ENOTTY


def _has_ended(descriptor: int) -> bool:
    """Whether a pipe or socket has nobody at its other end and nothing left to be read."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | getattr(select, "POLLRDHUP", 0))
    gone = select.POLLHUP | select.POLLERR | select.POLLNVAL | getattr(select, "POLLRDHUP", 0)
    if not any(events & gone for _, events in poll.poll(0)):
        return False
    try:
        left: int = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0]
    except OSError:
        return True
    return left == 0


def _absence(word: str, why: str | None) -> str:
    """How a question ends that is not answered by a yes."""
    return word if why is None else f"{word}: nobody can be asked, {why}"


class Terminal(Protocol):
    """Where a person is asked."""

    def absent(self) -> str | None:
        """Why nobody can be asked here at this moment; None where somebody can."""
        ...

    def show(self, text: str) -> None:
        """Print lines."""
        ...

    def forget_typed(self) -> None:
        """Throw away what was typed so far: it answers no question that is still to come."""
        ...

    async def line(self) -> str:
        """The next line that the person types."""
        ...


class StandardTerminal:
    """The terminal that `lomi up` runs in. Lines are read without a thread, so that nothing hangs at the end.

    What was typed before a question is shown is no answer to it and is thrown away; what is typed from then on counts.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def absent(self) -> str | None:
        """Nobody answers from a file or device, from the background, at the end of a pipe, or where none is open."""
        if sys.stdin is None or sys.stdin.closed:
            return "standard input is closed"
        descriptor = sys.stdin.fileno()
        try:
            kind = os.fstat(descriptor).st_mode
        except OSError:
            return "standard input is closed"
        if os.isatty(descriptor):
            return None if _in_front(descriptor) else "lomi up runs in the background"
        if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
            return "standard input is no terminal"
        return "standard input has ended" if _has_ended(descriptor) else None

    def show(self, text: str) -> None:
        """Print to stderr, so that stdout stays free for what a script reads."""
        print(text, file=sys.stderr, flush=True)  # noqa: T201  a prompt prints

    def forget_typed(self) -> None:
        """Empty the terminal's input queue."""
        if os.isatty(sys.stdin.fileno()):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def line(self) -> str:
        """One line from standard input; empty at its end, and once nobody can be asked any more."""
        typed: asyncio.Future[bytes] = self._loop.create_future()
        descriptor, held = sys.stdin.fileno(), bytearray()

        def take() -> None:
            try:
                # A read from the background would stop the whole broker.
                content = os.read(descriptor, 4096) if self.absent() is None else b""
            except OSError:
                content = b""
            held.extend(content)
            if (not content or b"\n" in held) and not typed.done():
                typed.set_result(bytes(held))

        self._loop.add_reader(descriptor, take)
        try:
            return (await typed).partition(b"\n")[0].decode(errors="replace").strip()
        finally:
            self._loop.remove_reader(descriptor)


class PromptDecider:
    """Decides by asking; one question at a time, in order. Implements both `Decider` and `PairingAsker`."""

    def __init__(
        self,
        terminal: Terminal,
        offered: Callable[[], Grant],
        *,
        apart: frozenset[str] = frozenset(),
        pairing_s: float = 120.0,
    ) -> None:
        self._terminal = terminal
        self._offered = offered
        self._apart = apart
        self._pairing_s = pairing_s
        self._one = asyncio.Lock()

    async def _typed(self, seconds: float) -> str | None:
        """What a person types; None when nobody does in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._terminal.line()
        except TimeoutError:
            return None
        except asyncio.CancelledError:
            self._terminal.show("no answer is needed any more: it has gone, or was revoked")
            raise

    async def _yes(self, seconds: float, phrase: str | None = None) -> bool | None:
        """True for yes, or for the exact phrase that is asked; False for else, None when nobody answered in time."""
        line = await self._typed(seconds)
        if line is None:
            return None
        return line == phrase if phrase is not None else line.lower() in _YES

    async def ask(self, session: Session, scopes: frozenset[str]) -> Grant | None:
        """Show a pairing request with the exact grant that it would get."""
        del scopes
        async with self._one:
            granted = None if session.ended else await self._pairing(session, self._offered())
            return None if session.ended else granted

    async def _pairing(self, session: Session, offered: Grant) -> Grant | None:
        """The question and its answer: `y` gives what is offered, `all` what is kept apart too."""
        shown = [
            "",
            f"A client asks to pair: {printable(session.label)}",
            f"  request      {session.pairing_request_id}",
            f"  certificate  sha256 {session.client_sha256}",
            f"  process      {session.peer_pid}",
            "  it would get",
            "    scopes     " + " ".join(s for s in SCOPES if s in offered.scopes),
            "    workspaces " + ", ".join(sorted(offered.workspaces)),
            "    devices    " + (", ".join(sorted(offered.devices)) or "none"),
            "    packages   " + (", ".join(sorted(offered.packages)) or "none"),
            "    origins    " + (", ".join(sorted(offered.origins)) or "none"),
            *(f"  ATTENTION: {line}" for line in reach_of(offered.scopes)),
        ]
        if self._apart:
            shown += ["  and if you answer all, these too", *(f"    {line}" for line in reach_of(self._apart))]
        choice = "[y/N/all]" if self._apart else "[y/N]"
        shown.append(f"Approve? {choice} (no answer within {self._pairing_s:.0f} s is no)")
        if (absent := self._terminal.absent()) is not None:
            self._terminal.show(f"{shown[1]}\n{_absence('declined', absent)}")
            return None
        self._terminal.forget_typed()
        self._terminal.show("\n".join(shown))
        said = await self._typed(self._pairing_s)
        word = "expired" if said is None else said.lower()
        if word == "all" and self._apart:
            offered = msgspec.structs.replace(offered, scopes=offered.scopes | self._apart)
        elif word not in _YES:
            self._terminal.show("expired" if said is None else _absence("declined", self._terminal.absent()))
            return None
        self._terminal.show("approved")
        return offered

    async def decide(self, request: DecisionRequest) -> Decision:
        """Show one plan, whole."""
        async with self._one:
            shown = [
                "",
                f"{printable(request.session_label)} asks: {printable(request.plan.title)}",
                *(f"  {printable(line)}" for line in request.plan.lines),
                f"  plan {request.plan_hash}",
                f"{_question(request.plan.phrase)} (no answer within {request.expires_s:.0f} s is no)",
            ]
            if (absent := self._terminal.absent()) is not None:
                self._terminal.show("\n".join([*shown[:-1], _absence("refused", absent)]))
                return Decision(verdict="not_decided_here", plan_hash=request.plan_hash, by="prompt")
            self._terminal.forget_typed()
            self._terminal.show("\n".join(shown))
            said = await self._yes(request.expires_s, request.plan.phrase)
            declined = _absence("declined", self._terminal.absent())
            self._terminal.show("allowed" if said else declined if said is False else "expired")
            verdict: Verdict = "approved" if said else "declined" if said is False else "expired"
            return Decision(verdict=verdict, plan_hash=request.plan_hash, by="prompt")
