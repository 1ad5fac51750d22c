"""The client for code without an event loop: the same calls, each blocking its own thread only."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lomi.client.client import Answer, Client, connect
from lomi.client.loop_thread import LoopThread, loop_thread
from lomi.contract.model import Input
from lomi.link.messages import Welcome


class BlockingClient:
    """A live connection, made by `connect_blocking`. Any number of threads may call."""

    def __init__(self, thread: LoopThread[Client]) -> None:
        self._thread = thread

    @property
    def welcome(self) -> Welcome:
        """The broker's first words: instance, phase and pairing request."""
        return self._thread.held.welcome

    def call(self, tool: str, arguments: Input | Mapping[str, object]) -> Answer:
        """Call a tool and return its data; an interrupt from the keyboard asks the broker to cancel it.

        Raises:
            ToolError: the broker's error envelope (`ConnectionLostError` when the connection ends first).
            InvalidArgumentsError: unknown tool, unknown field or wrong type.
            BrokerFaultError: the broker failed.
        """
        return self._thread.run(self._thread.held.call(tool, arguments))


@contextmanager
def connect_blocking(
    discovery_path: Path,
    public_key_hex: str,
    *,
    label: str,
    token: str | None = None,
    options: Mapping[str, str] | None = None,
) -> Iterator[BlockingClient]:
    """Connect as `lomi.client.client.connect` does, on an event loop in a thread; both end with the context.

    Raises:
        LinkError: no broker, a discovery file that is not to be trusted, or no acceptance.
    """
    with loop_thread(
        lambda: connect(discovery_path, public_key_hex, label=label, token=token, options=options), "lomi-client"
    ) as thread:
        yield BlockingClient(thread)
