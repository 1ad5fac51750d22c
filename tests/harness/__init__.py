"""A real broker process in a home of its own, the clients that call it, and proof that nothing of it stays behind."""

from harness.agent import Agent, Answered, agent, owner, owner_client
from harness.helper import mcp_agent
from harness.policy import ALL_SCOPES, ClientEntry, policy_text
from harness.process import BrokerProcess, NotReadyError
from harness.stored import StoredRow, locked_storage, rows_of, store_is_sound
from harness.waiting import until
from harness.world import World, opened_world

__all__ = [
    "ALL_SCOPES",
    "Agent",
    "Answered",
    "BrokerProcess",
    "ClientEntry",
    "NotReadyError",
    "StoredRow",
    "World",
    "agent",
    "locked_storage",
    "mcp_agent",
    "opened_world",
    "owner",
    "owner_client",
    "policy_text",
    "rows_of",
    "store_is_sound",
    "until",
]
