"""Sessions: paired connections, their grants, and the one epoch that revokes them all."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec

from lomi.broker.operations import Operation, RetryKey
from lomi.broker.paging import Cursors
from lomi.contract.codes import ErrorCode
from lomi.contract.limits import WORKING_CALLS
from lomi.contract.model import Connection as Phase
from lomi.core.grant import Grant
from lomi.core.ids import LeaseId, OperationId, SessionId
from lomi.core.refusal import Refusal
from lomi.core.sequences import InputLedger

KEPT_OPERATIONS = 1024


@dataclass(slots=True, kw_only=True)
class RetryEpoch:
    """The window in which this session's retries are recognised."""

    id: str
    expires: float


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """One connection with a pinned certificate. It has no authority before `approve`, and none after it ends.

    `unlisted`: no entry of the policy fits, and nobody is there to ask. `told_revision` is the domain revision that it
    was told last.
    """

    id: SessionId
    label: str
    client_sha256: str
    peer_pid: int
    pairing_request_id: str
    since: float
    cursors: Cursors
    grant: Grant | None = None
    approved_at: int = -1
    ended: bool = False
    refused: str | None = None
    unlisted: bool = False
    told_revision: int = 0
    epoch: RetryEpoch | None = None
    replay: dict[RetryKey, Operation] = field(default_factory=dict)
    operations: dict[OperationId, Operation] = field(default_factory=dict)
    inputs: dict[LeaseId, InputLedger[Operation]] = field(default_factory=dict)
    acks: dict[LeaseId, InputLedger[Operation]] = field(default_factory=dict)
    cut: Callable[[], None] | None = None
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WORKING_CALLS))
    waiting: int = 0

    def forget_old(self) -> None:
        """Keep at most `KEPT_OPERATIONS` settled operations in memory; the store answers for older ones."""
        while len(self.operations) > KEPT_OPERATIONS:
            # One that runs for hours must not keep all that came after it; few run at once, so few are passed over.
            oldest = next((known for known in self.operations.values() if known.answered.is_set()), None)
            if oldest is None:
                return
            del self.operations[oldest.id]
            if oldest.replay_key is not None:
                self.replay.pop(oldest.replay_key, None)

    def sees_workspace(self, workspace_id: str) -> bool:
        """Whether the workspace is in the grant."""
        return self.grant is not None and self.grant.admits_workspace(workspace_id)

    def let_in(self, workspace_id: str) -> None:
        """Bring a workspace that the session made into its grant, and with it what comes from there."""
        if self.grant is not None:
            seen = self.grant.workspaces | {workspace_id}
            self.grant = msgspec.structs.replace(self.grant, workspaces=seen)


class Sessions:
    """All connections, and the authorisation epoch. Revoking all is one addition: it waits for no lock and no store."""

    def __init__(self) -> None:
        self._sessions: dict[SessionId, Session] = {}
        self._epoch = 0

    def add(self, session: Session) -> None:
        """Note a new connection."""
        self._sessions[session.id] = session

    def remove(self, session: Session) -> None:
        """Forget a connection that has ended."""
        self._sessions.pop(session.id, None)

    def get(self, session_id: str) -> Session | None:
        """A present session by id."""
        return self._sessions.get(SessionId(session_id))

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._sessions.values()))

    def __len__(self) -> int:
        return len(self._sessions)

    def approve(self, session: Session, grant: Grant) -> None:
        """Give a session its authority."""
        session.grant = grant
        session.approved_at = self._epoch

    def revoke_all(self) -> None:
        """End the authority of every session, at once."""
        self._epoch += 1

    def has_authority(self, session: Session) -> bool:
        """Whether the session may act at this instant."""
        return not session.ended and session.grant is not None and session.approved_at == self._epoch

    def phase(self, session: Session) -> Phase:
        """The connection phase that status tells."""
        if session.ended or (session.grant is not None and session.approved_at != self._epoch) or session.refused:
            return "disconnected"
        return "pairing_required" if session.grant is None else "connected"

    def require_authority(self, session: Session) -> Grant:
        """The session's grant.

        Raises:
            Refusal: PAIRING_REQUIRED before approval, CONTROL_REVOKED after its end.
        """
        if self.has_authority(session):
            assert session.grant is not None
            return session.grant
        if self.phase(session) == "pairing_required":
            reason = "not_in_policy" if session.unlisted else "waiting_for_approval"
            raise Refusal(ErrorCode.PAIRING_REQUIRED, reason)
        raise Refusal(ErrorCode.CONTROL_REVOKED, "session_ended")
