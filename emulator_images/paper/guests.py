"""The clients of a phone's ports: each served in a task of its own, and all let go at its end."""

import asyncio
import traceback
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Coroutine

Session = Callable[[StreamReader, StreamWriter], Coroutine[None, None, None]]
OnClient = Callable[[StreamReader, StreamWriter], None]


class Guests:
    """Whoever is connected; `ending` is set once nobody may come any more."""

    def __init__(self, group: asyncio.TaskGroup, ending: asyncio.Event) -> None:
        self._group = group
        self._ending = ending
        self._sessions: set[asyncio.Task[None]] = set()

    def door(self, serve: Session) -> OnClient:
        """What a listening socket calls for each client."""

        def enter(reader: StreamReader, writer: StreamWriter) -> None:
            if self._ending.is_set():  # who was let in by then would be waited for, for ever
                writer.close()
                return
            session = self._group.create_task(_served(serve(reader, writer), writer))
            self._sessions.add(session)
            session.add_done_callback(self._sessions.discard)

        return enter

    def let_go(self) -> None:
        """End every session."""
        for session in tuple(self._sessions):
            session.cancel()


async def _served(session: Coroutine[None, None, None], writer: StreamWriter) -> None:
    """What goes wrong in one session is told, and costs that client its connection, never the phone."""
    try:
        (ended,) = await asyncio.gather(session, return_exceptions=True)
        if isinstance(ended, Exception):
            traceback.print_exception(ended)
    finally:
        writer.close()
