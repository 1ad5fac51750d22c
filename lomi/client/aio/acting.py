"""What phones, pages and terminals have in common: a panel, the session that they act in, and what they did."""

from collections import deque

from lomi.client.acts import MOST_KEPT, Act
from lomi.client.aio.session import Session
from lomi.contract.model import Result


class Acting:
    """One panel that this client acts on.

    Attributes:
        panel_id: the panel that we see it through.
    """

    def __init__(self, session: Session, panel_id: str) -> None:
        self._session = session
        self.panel_id = panel_id
        self._acts: deque[Act[Result]] = deque(maxlen=MOST_KEPT)

    @property
    def receipts(self) -> tuple[Act[Result], ...]:
        """The acts on it in the order of their ends."""
        return tuple(self._acts)

    def _keep(self, act: Act[Result]) -> None:
        self._acts.append(act)
