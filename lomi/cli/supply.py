"""What `lomi call` adds to a call since no person should have to type it: keys, revisions, lives, leases."""

import itertools
import secrets
from typing import TYPE_CHECKING, TypeVar

import msgspec

from lomi.cli.arguments import entry_of, schema_of
from lomi.cli.failing import fail
from lomi.cli.shown import short
from lomi.contract.listing import Entry

if TYPE_CHECKING:
    from lomi.client.client import Answer, Client

T = TypeVar("T")
Arguments = dict[str, object]
LIVES = {"terminalSessionId": "terminal", "browserGeneration": "browser", "generation": "android"}
SEEN = ("snapshotId", "navigationId")
_ENDED = frozenset({"succeeded", "failed", "cancelled", "outcome_unknown"})


class _Workspace(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    name: str
    project_name: str


class _Workspaces(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[_Workspace, ...]
    domain_revision: str


class _Connected(msgspec.Struct, frozen=True, rename="camel"):
    retry_epoch: str


class _Panel(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    kind: str
    terminal_session_id: str | None
    browser_generation: str | None
    android_device_id: str | None


class _Panels(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[_Panel, ...]
    next_cursor: str | None


class _Device(msgspec.Struct, frozen=True, rename="camel"):
    device_id: str
    generation: str | None


class _Devices(msgspec.Struct, frozen=True):
    items: tuple[_Device, ...]


class _Phones(msgspec.Struct, frozen=True):
    devices: _Devices


class _Words(msgspec.Struct, frozen=True, rename="camel"):
    """What answers of every kind may name, to be used by the calls after them."""

    panel_id: str | None = None
    lease_id: str | None = None
    controlled: bool | None = None
    snapshot_id: str | None = None
    navigation_id: str | None = None


class _Failure(msgspec.Struct, frozen=True):
    code: str | None = None
    reason: str | None = None
    hint: str | None = None


class Receipt(msgspec.Struct, frozen=True, rename="camel"):
    """A receipt as a caller follows it; `result` is the JSON of its result."""

    operation_id: str
    state: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    observation: msgspec.Raw = msgspec.Raw(b"null")

    @staticmethod
    def of(answer: "Answer") -> "Receipt | None":
        """The receipt in an answer, if it is one."""
        return _read(answer.data, Receipt)

    @property
    def ended(self) -> bool:
        """Whether it says its last."""
        return self.state in _ENDED

    def failure(self) -> tuple[str, str | None] | None:
        """What went wrong and what to do about it; None for one that succeeded, or still runs."""
        if self.state == "succeeded" or not self.ended:
            return None
        why = _read(self.result, _Failure) or _Failure()
        cause = f": {why.code}" if why.code else ""
        return f"the operation ended as {self.state}{cause}" + (f" ({why.reason})" if why.reason else ""), why.hint


class Supply:
    """Completes the calls of one connection. Only what is required and was not given is added, never a target.

    Fetched: `workspaceId` where only one is granted, `retryEpoch`, `requestKey`, `expectedRevision`, the present life
    of a named panel or phone, a lease (claimed where this session has none), the last document and snapshot seen there.
    """

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._leases: dict[str, str] = {}
        self._seen: dict[tuple[str, str], str] = {}
        self._sequences: dict[str, itertools.count[int]] = {}

    async def complete(self, entry: Entry, given: Arguments) -> Arguments:
        """The whole arguments of a call. What can't be fetched stays away: the broker names it.

        Raises:
            ToolError: a fetch was refused.
            CommandFailed: a lease can't be had, or the workspace is not plain.
        """
        fields = schema_of(entry)
        whole = dict(given)

        def lacks(name: str) -> bool:
            return name in fields.required and name not in whole

        if lacks("workspaceId"):
            whole["workspaceId"] = await self._only_workspace()
        if "workspaceId" not in whole:
            return whole
        await self._life(entry, whole)
        panel = str(whole.get("panelId"))
        for name in SEEN:
            if lacks(name) and (panel, name) in self._seen:
                whole[name] = self._seen[panel, name]
        if lacks("leaseId") and (lease := await self._lease(panel, whole)) is not None:
            whole["leaseId"] = lease
        if lacks("inputSequence") and "leaseId" in whole:
            whole["inputSequence"] = self._next(str(whole["leaseId"]))
        if lacks("retryEpoch"):
            whole["retryEpoch"] = await self._epoch(whole)
        if lacks("requestKey"):
            whole["requestKey"] = f"cli-{secrets.token_hex(8)}"
        if lacks("expectedRevision"):
            whole["expectedRevision"] = await self._revision()
        return whole

    def learn(self, given: Arguments, answer: "Answer") -> None:
        """Remember what later calls name."""
        receipt = Receipt.of(answer)
        told = [answer.data] if receipt is None else [bytes(receipt.result), bytes(receipt.observation)]
        for words in filter(None, (_read(part, _Words) for part in told)):
            panel = str(words.panel_id or given.get("panelId"))
            if words.lease_id is not None:
                self._leases[panel] = words.lease_id
            elif words.controlled is False:
                self._leases.pop(panel, None)
            for name, value in zip(SEEN, (words.snapshot_id, words.navigation_id), strict=True):
                if value is not None:
                    self._seen[panel, name] = value

    async def _ask(self, tool: str, **arguments: object) -> "Answer":
        return await self._client.call(tool, arguments)

    async def _only_workspace(self) -> str:
        items = (await self._ask("lomi_workspace_list")).read(_Workspaces).items
        if len(items) != 1:
            named = (f"{item.id} {short(item.name)!r} of {short(item.project_name)!r}" for item in items[:8])
            listed = ", ".join(named) or "none"
            fail(f"say which workspace with workspaceId=; there is {listed}", "`lomi call lomi_workspace_list`")
        return items[0].id

    async def _revision(self) -> str:
        return (await self._ask("lomi_workspace_list", limit=1)).read(_Workspaces).domain_revision

    async def _epoch(self, whole: Arguments) -> str:
        return (await self._ask("lomi_connect", workspaceId=whole["workspaceId"])).read(_Connected).retry_epoch

    async def _panel(self, whole: Arguments) -> _Panel | None:
        """The panel that is named, or one that shows the phone that is named."""
        asked: Arguments = {"workspaceId": whole["workspaceId"], "limit": 500}
        name, wanted = ("id", whole["panelId"]) if "panelId" in whole else ("android_device_id", whole["deviceId"])
        while True:
            page = (await self._ask("lomi_panel_list", **asked)).read(_Panels)
            found = next((panel for panel in page.items if getattr(panel, name) == wanted), None)
            if found is not None or page.next_cursor is None:
                return found
            asked["cursor"] = page.next_cursor

    async def _generation(self, whole: Arguments) -> str | None:
        phones = (await self._ask("lomi_android_list", workspaceId=whole["workspaceId"])).read(_Phones)
        here = (phone for phone in phones.devices.items if phone.device_id == whole.get("deviceId"))
        return next((phone.generation for phone in here), None)

    async def _life(self, entry: Entry, whole: Arguments) -> None:
        """The panel of a named phone or the phone of a named panel, and the life of either.

        Panel tools ask for a life only where the panel has one, so there it is added without being required.
        """
        fields = schema_of(entry)
        optional = entry.family == "panel" and "panelId" in whole
        wanted = [name for name in fields.properties if optional or name in fields.required]
        lacking = {*LIVES, "deviceId", "panelId"}.intersection(wanted) - whole.keys()
        if lacking - {"generation"} and not whole.keys().isdisjoint(("panelId", "deviceId")):
            panel = await self._panel(whole)
            named = {
                "panelId": panel and panel.id,
                "terminalSessionId": panel and panel.terminal_session_id,
                "browserGeneration": panel and panel.browser_generation,
                "deviceId": panel and panel.android_device_id,
            }
            whole.update({name: value for name, value in named.items() if name in lacking and value is not None})
        if "generation" in lacking and "deviceId" in whole and (life := await self._generation(whole)) is not None:
            whole["generation"] = life
        if optional and "deviceId" in whole and "expectedRevision" in fields.properties:
            whole.setdefault("expectedRevision", await self._revision())

    async def _lease(self, panel: str, whole: Arguments) -> str | None:
        """The lease that this session holds on a panel; claimed where it holds none and the kind can be claimed."""
        if panel in self._leases:
            return self._leases[panel]
        if LIVES.keys().isdisjoint(whole):
            return None
        if "browserGeneration" in whole:
            fail("a page's lease is its opener's alone", "open the page in the same session: `lomi call -`")
        control = entry_of("lomi_panel_control")
        assert control is not None, "the contract has it"
        places = ("workspaceId", "panelId", "terminalSessionId", "deviceId", "generation")
        asked = {name: whole[name] for name in places if name in whole}
        terms = await self.complete(control, {**asked, "action": "claim", "waitMs": 0})
        answer = await self.follow(await self._client.call(control.name, terms))
        self.learn(terms, answer)
        if panel not in self._leases:
            fail(f"the lease of {panel} can't be had: {answer.text}", "`lomi ps` shows who holds it")
        return self._leases[panel]

    def _next(self, lease: str) -> str:
        return str(next(self._sequences.setdefault(lease, itertools.count(1))))

    async def follow(self, answer: "Answer") -> "Answer":
        """The answer once its receipt has ended; one that is no receipt as it is."""
        while (receipt := Receipt.of(answer)) is not None and not receipt.ended:
            answer = await self._ask("lomi_operation_get", operationId=receipt.operation_id, waitMs=55_000)
        return answer


def _read(data: bytes, kind: type[T]) -> T | None:
    """A part of an answer; None where it is of another kind."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        return None
