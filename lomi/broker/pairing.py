"""Pairing: who gets a grant, and what is in it. The policy answers at once; a person's decider may answer later."""

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from lomi.broker.ancestry import is_inside
from lomi.broker.policy import ClientPolicy, Policy
from lomi.broker.sessions import Session
from lomi.broker.world import World
from lomi.broker.yolo import YoloSwitch, yolo_grant
from lomi.core.grant import EVERY, Grant
from lomi.core.log_fields import fields
from lomi.link.connection import Connection
from lomi.link.messages import Hello

_log = logging.getLogger("lomi.broker.pairing")
Prove = Callable[[bytes], bool]


class PairingAsker(Protocol):
    """A person who may approve a pairing that no policy answers."""

    async def ask(self, session: Session, scopes: frozenset[str]) -> Grant | None:
        """The grant, or None when the person declines or does not answer in time."""
        ...


class Pairing:
    """Gives sessions their grants."""

    def __init__(
        self,
        world: World,
        policy: Policy | None,
        asker: PairingAsker | None,
        device_ids: Callable[[str], str],
        yolo: YoloSwitch,
    ) -> None:
        self._world = world
        self._policy = policy
        self._asker = asker
        self._device_ids = device_ids
        self._yolo = yolo
        self._pending = 0

    async def try_at_once(self, session: Session, connection: Connection, hello: Hello) -> None:
        """Pair by policy when an entry matches: its label, and its token or `any_same_user` from outside.

        Where no entry does and YOLO is on, every client from outside pairs.
        """
        entry = self._entry(session, connection, hello)
        if entry is not None:
            await self._approve(session, self.grant_of(entry))
        elif self._yolo.on and not is_inside(session.peer_pid, Path("/proc")):
            await self._approve(session, yolo_grant())

    async def _approve(self, session: Session, grant: Grant) -> None:
        self._world.sessions.approve(session, grant)
        _log.info("session paired", extra=fields(session=session.id, by=grant.decider))
        await self._world.tell_change()

    def _entry(self, session: Session, connection: Connection, hello: Hello) -> ClientPolicy | None:
        for entry in self._policy.client if self._policy else ():
            if entry.label != session.label:
                continue
            if entry.token_sha256 is not None:
                if connection.proves(hello, bytes.fromhex(entry.token_sha256)):
                    return entry
            elif entry.any_same_user and not is_inside(session.peer_pid, Path("/proc")):
                return entry
        return None

    def grant_of(self, entry: ClientPolicy) -> Grant:
        """A policy entry as a grant: wildcards expanded, device names as their ids."""
        devices = frozenset(EVERY if name == EVERY else self._device_ids(name) for name in entry.devices)
        return Grant(
            scopes=entry.expanded_scopes(),
            workspaces=frozenset(entry.workspaces),
            devices=devices,
            packages=frozenset(entry.packages),
            origins=entry.normal_origins(),
            resources=frozenset(entry.resources),
            terminal_profile=entry.terminal_profile,
            lease_idle_s=entry.lease_idle_s,
            decide=entry.decided_tools(),
            decider="policy",
        )

    async def wait_for_person(self, session: Session) -> None:
        """Ask a person about a session that nothing has answered yet; one over the bound is declined at once."""
        if session.grant is not None:
            return
        if self._asker is None:
            session.unlisted = True
            return
        grant = None
        if self._pending < self._world.limits.pending_pairings:
            self._pending += 1
            try:
                grant = await self._asker.ask(session, frozenset())
            finally:
                self._pending -= 1
        if grant is None:
            session.refused = "declined"
            _log.info("pairing declined", extra=fields(session=session.id))
            await self._world.tell_change()
        else:
            await self._approve(session, grant)


def token_sha256(token: str) -> str:
    """What a policy file holds of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
