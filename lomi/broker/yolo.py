"""YOLO: the owner's choice that every client of theirs pairs and decides by itself. Off by default.

It is a policy value, never a bypass: validation, revisions, exclusions, quotas and leases stay as they are, and
processes inside a terminal of ours get nothing by it.
"""

from lomi.broker.deciders import Decider, Decision, DecisionRequest
from lomi.contract.scopes import SCOPES
from lomi.core.grant import EVERY, Grant

DECIDED = frozenset(
    {
        "lomi_panel_control",
        "lomi_project_open",
        "lomi_settings_update",
        "lomi_browser_upload",
        "lomi_android_install_apk",
        "lomi_android_setup_apply",
        "lomi_android_device_manage",
        "lomi_git_mutate",
        "lomi_chat_send",
    }
)
"""The decisions that YOLO takes. What closes or trashes a person's unsaved work still asks."""

WARNING = """\
YOLO lets ANY process of this user that runs outside a Lomi terminal pair with this broker without asking you:
all scopes, every workspace, every phone and app, every web origin, a shell. Nothing asks before an upload, an install,
a git push, a chat message or a change of settings. Leases, revisions, quotas and receipts stay.
Switching it on or off ends every session at once."""


class YoloSwitch:
    """Whether YOLO is on now. `damage` says why the stored choice could not be read; YOLO is off then."""

    def __init__(self, *, on: bool = False, damage: str | None = None) -> None:
        self.on = on
        self.damage = damage


class YoloDecider:
    """Approves what YOLO covers for sessions that paired by it; everything else goes to the broker's own decider."""

    def __init__(self, otherwise: Decider, switch: YoloSwitch) -> None:
        self._otherwise = otherwise
        self._switch = switch

    async def decide(self, request: DecisionRequest) -> Decision:
        """Approve at once, or ask whoever decides here."""
        if self._switch.on and request.grant.decider == "yolo" and request.tool in DECIDED:
            return Decision(verdict="approved", plan_hash=request.plan_hash, by="yolo")
        return await self._otherwise.decide(request)


def yolo_grant() -> Grant:
    """Everything, for a session that paired while YOLO was on."""
    every = frozenset({EVERY})
    return Grant(
        scopes=frozenset(SCOPES),
        workspaces=every,
        devices=every,
        packages=every,
        origins=every,
        conversations=every,
        terminal_profile="bash",
        decide=DECIDED,
        decider="yolo",
    )
