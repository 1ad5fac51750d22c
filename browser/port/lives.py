"""Pages against generations: each page is a life that the ledger knows, behind an egress proxy of its own context."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from browser.egress import EgressGrant, EgressProxy, HostPort, HostSpellingError, Origin, RefusalIdentity
from browser.engine import Engine
from browser.errors import AdmissionRefusedError, BrowserError, EngineUnavailableError
from browser.navigate import close as close_page
from browser.page import Page, started
from browser.port import asking
from browser.port.blank import NOTHING, Blank
from browser.port.faults import reading, refusal_of
from browser.port.lazy import LazyEngine
from lomi.contract.browser import BrowserScreenshotInput
from lomi.contract.codes import ErrorCode
from lomi.contract.definition import ResourceKind
from lomi.contract.model import PendingObject
from lomi.contract.panel import RuntimeState
from lomi.core.grant import EVERY, Grant
from lomi.core.ids import GenerationId, LeaseId, PanelId
from lomi.core.own_ports import OwnPorts
from lomi.core.port import Call, Ledger, Panel, Permit, ResourceKey
from lomi.core.refusal import EffectFailed, Refusal

MOST_UNTOLD = 16
SPARE_S = 10.0
"""Pages that live no longer than this come and go: for as long after the last of them a spare one waits."""


@dataclass(slots=True, eq=False)
class Life:
    """One page from its opening to its end; `untold` are popups of it that no observation has named yet.

    A popup has a panel of its own, leased to its opener's holder.
    """

    page: Page
    over: asyncio.Event
    began: float
    panel: Panel | None = None
    untold: list[GenerationId] = field(default_factory=list)


def egress_grant(grant: Grant, own_ports: frozenset[int]) -> EgressGrant:
    """What a context of this grant may reach."""
    resources = (
        "public" if "public" in grant.resources else frozenset(HostPort.parse(place) for place in grant.resources)
    )
    return EgressGrant(
        origins=frozenset(Origin.parse(origin) for origin in grant.origins if origin != EVERY),
        everywhere=EVERY in grant.origins,
        resources=resources,  # type: ignore[arg-type]
        refused_ports=own_ports,
    )


class Lives:
    """The pages of one broker (the port's `Runtimes` of kind browser)."""

    kind: ResourceKind = "browser"

    def __init__(
        self,
        ledger: Ledger,
        engine: LazyEngine,
        tasks: asyncio.TaskGroup,
        own_ports: OwnPorts,
        identity: RefusalIdentity,
    ) -> None:
        self._ledger = ledger
        self._engine = engine
        self._tasks = tasks
        self._own_ports = own_ports
        self._identity = identity
        self._lives: dict[GenerationId, Life] = {}
        self._proxies: set[EgressProxy] = set()
        self._popups: dict[GenerationId, Panel] = {}
        self._pool: Engine | None = None
        self._spare: Blank | None = None
        self._spare_until = 0.0
        self._blanks = itertools.count(1)
        self._closing = False
        self.on_lease_ended: list[Callable[[Page], None]] = []
        own_ports.tell(self._refuse_ports)

    def _refuse_ports(self, ports: frozenset[int]) -> None:
        for proxy in self._proxies:
            proxy.refuse_ports(ports)

    def page(self, generation: str | None) -> Page:
        """The live page of a generation.

        Raises:
            Refusal: STALE_GENERATION.
        """
        life = self._lives.get(GenerationId(generation or ""))
        if life is None or life.over.is_set():
            raise Refusal(ErrorCode.STALE_GENERATION, "generation_ended", field="/browserGeneration")
        return life.page

    async def open(self, resource: ResourceKey, grant: Grant) -> tuple[GenerationId, Page]:
        """A blank page in a context of its own.

        Raises:
            BrowserError: no engine, or no room for another page.
            Refusal: STORAGE_UNAVAILABLE, or SCOPE_DENIED for a grant with a host in no spelling that can be compared.
        """
        try:
            reach = egress_grant(grant, self._own_ports.all)
        except HostSpellingError as odd:
            raise Refusal(ErrorCode.SCOPE_DENIED, "origin_not_granted") from odd
        generation = await self._ledger.begin_generation(resource)
        try:
            return generation, await self._opened(generation, reach)
        except BaseException:
            self._ledger.end_generation(generation)
            raise

    async def _opened(self, generation: GenerationId, reach: EgressGrant) -> Page:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.awaited = True
            with suppress(BrowserError):  # it has gone, with the engine perhaps: a fresh one says what is wrong
                return self._give(*await spare.take(), generation, reach)
        return self._give(*await self._begin_blank(awaited=True).take(), generation, reach)

    def _give(self, page: Page, proxy: EgressProxy, generation: GenerationId, reach: EgressGrant) -> Page:
        """From here on the page is this life's, and reaches what its grant admits."""
        proxy.replace(reach)
        # Ports that became ours since the grant was made out.
        proxy.refuse_ports(self._own_ports.all)
        page.profile.rename(page, generation)
        self._begin(generation, page)
        page.profile.name_popup = self._name_popup
        page.profile.on_popup.append(self._popup_opened)
        return page

    def _begin_blank(self, *, awaited: bool) -> Blank:
        blank = Blank(awaited=awaited, until=asyncio.get_running_loop().time() + SPARE_S)
        if not started(self._tasks, self._live(blank)):
            blank.failed(EngineUnavailableError("engine_stopped"))
        return blank

    def prepare_spare(self) -> None:
        """Where pages come and go, begin the next one before anybody asks for it; at most one, and only at leisure."""
        if self._spare is not None and not self._spare.over:
            return
        if self._closing or asyncio.get_running_loop().time() > self._spare_until:
            return
        if self._pool is not None and self._pool.at_leisure:
            self._spare = self._begin_blank(awaited=False)

    def _may_stay(self, spare: Blank) -> bool:
        leisure = self._pool is not None and self._pool.at_leisure
        return leisure and asyncio.get_running_loop().time() < spare.until

    def _drop_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.drop()

    async def _live(self, blank: Blank) -> None:
        try:
            async with EgressProxy.serve(NOTHING, identity=self._identity) as proxy:
                self._proxies.add(proxy)
                try:
                    proxy.refuse_ports(self._own_ports.all)
                    self._pool = engine = await self._engine.get()
                    engine.on_short = self._drop_spare
                    page = await engine.open(generation=f"blank-{next(self._blanks)}", egress=proxy)
                    await self._stay(page, proxy, blank)
                finally:
                    self._proxies.discard(proxy)
        except (BrowserError, OSError) as error:
            blank.failed(error if isinstance(error, BrowserError) else EngineUnavailableError("engine_start_failed"))

    async def _stay(self, page: Page, proxy: EgressProxy, blank: Blank) -> None:
        """Be there until the context has no page left; one that nobody wants is closed."""
        blank.arrived(page, proxy)
        if not await blank.is_taken(lambda: self._may_stay(blank)):
            await close_page(page)
        await page.ended.wait()
        while page.profile.pages:
            await next(iter(page.profile.pages.values())).ended.wait()
            await asyncio.sleep(0)

    def _begin(self, generation: GenerationId, page: Page, panel: Panel | None = None) -> Life:
        life = self._lives[generation] = Life(page, asyncio.Event(), asyncio.get_running_loop().time(), panel)
        page.on_ended.append(lambda reason: self._ended(generation, life, reason))
        return life

    async def _name_popup(self, opener: Page | None) -> str:
        """A panel and a generation for a popup, beside its opener.

        Raises:
            AdmissionRefusedError: the opener is gone, or the panel can't be stored.
        """
        life = self._lives.get(GenerationId(opener.generation)) if opener is not None else None
        resource = self._resource_of(life) if life is not None else None
        views = self._ledger.panels_of(resource) if resource is not None else ()
        if not views:
            raise AdmissionRefusedError("opener_gone")
        try:
            panel = await self._ledger.open_panel(views[0].workspace_id, "browser", "Popup", None)
            assert panel.resource is not None
            generation = await self._ledger.begin_generation(panel.resource)
        except (Refusal, EffectFailed) as said:
            raise AdmissionRefusedError("no_panel") from said
        self._popups[generation] = panel
        return generation

    def _resource_of(self, life: Life) -> ResourceKey | None:
        return self._ledger.resource(GenerationId(life.page.generation))

    def _popup_opened(self, page: Page, opener: Page | None) -> None:
        """A popup is a page like any other, leased to whoever holds its opener."""
        generation = GenerationId(page.generation)
        self._begin(generation, page, self._popups.pop(generation, None))
        before = self._lives.get(GenerationId(opener.generation)) if opener is not None else None
        if before is not None:
            before.untold = [*before.untold, generation][-MOST_UNTOLD:]
        held = self._ledger.lease(GenerationId(opener.generation)) if opener is not None else None
        if held is not None:
            with suppress(Refusal):
                self._ledger.grant_lease(generation, held.session_id)

    def popup_lines(self, page: Page, *, told: bool) -> tuple[str, ...]:
        """What an agent needs to act on the popups of a page that it has not heard of; with `told` it has from now on.

        One that a busy machine opens only after the observation of its click is named in the next one.
        """
        life = self._lives.get(GenerationId(page.generation))
        if life is None:
            return ()
        lines = tuple(self._popup_line(name) for name in life.untold if name in self._lives)
        if told:
            life.untold.clear()
        return lines

    def popup_objects(self, page: Page) -> tuple[PendingObject, ...]:
        """The popups of `popup_lines`, as values."""
        life = self._lives.get(GenerationId(page.generation))
        return tuple(self._popup_object(name) for name in life.untold if name in self._lives) if life else ()

    def _popup_object(self, generation: GenerationId) -> PendingObject:
        held, panel = self._ledger.lease(generation), self._lives[generation].panel
        named = panel.id if panel else "?"
        return PendingObject(kind="popup", id=named, browser_generation=generation, lease_id=held.id if held else None)

    def _popup_line(self, generation: GenerationId) -> str:
        held, panel = self._ledger.lease(generation), self._lives[generation].panel
        lease = f", leaseId {held.id}" if held else ""
        return f"popup: panelId {panel.id if panel else '?'}, browserGeneration {generation}{lease}"

    def _ended(self, generation: GenerationId, life: Life, reason: str) -> None:
        life.over.set()
        self._lives.pop(generation, None)
        self._ledger.end_generation(generation)
        now = asyncio.get_running_loop().time()
        if reason == "closed" and life.panel is None and now - life.began < SPARE_S:
            self._spare_until = now + SPARE_S
            self.prepare_spare()

    async def close_all(self) -> None:
        """End every page of this broker."""
        self._closing = True
        self._drop_spare()
        for life in tuple(self._lives.values()):
            await close_page(life.page)

    def check_open(self, call: Call[Any]) -> None:
        """The page must be there, and its document the one that the call names."""
        page = self.page(call.generation)
        navigation_id = getattr(call.input, "navigation_id", None)
        if navigation_id is not None and not page.same_document(navigation_id):
            raise Refusal(ErrorCode.STALE_SNAPSHOT, "navigated", field="/navigationId")

    def check_shown(self, call: Call[BrowserScreenshotInput]) -> None:
        """A picture is of the document that the call names; a video goes on from one document to the next."""
        if call.input.video is None:
            self.check_ref(call)
        else:
            self.page(call.generation)

    def check_ref(self, call: Call[Any]) -> None:
        """As `check_open`; the element's node must be one that the page still knows, or what it asks for be open."""
        page, given = self.page(call.generation), call.input
        asked = asking.asked_of(getattr(given, "element_ref", None))
        if asked is not None:
            with reading():
                asking.require_asked(page, asked)
            return
        self.check_open(call)
        if getattr(given, "element_ref", None) is not None:
            try:
                page.refs.resolve(given.element_ref, given.snapshot_id)
            except BrowserError as error:
                raise refusal_of(error) from error

    def state(self, resource: ResourceKey) -> RuntimeState:
        """How a page stands."""
        generation = self._ledger.current(resource)
        return "ready" if generation in self._lives else "exited"

    def process(self, resource: ResourceKey) -> int | None:
        """None: no client runs inside."""
        del resource
        return None

    def check_claim(self, call: Call[Any]) -> None:
        """A page's lease comes with its opening; it can't be claimed."""
        del call
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "not_leased_here", field="/panelId")

    def lease_ended(self, generation: GenerationId, lease_id: LeaseId) -> None:
        """Nobody is there to answer any more: what the page asks for gets its default now."""
        del lease_id
        life = self._lives.get(generation)
        if life is not None:
            life.page.pending.abandon()
            for told in self.on_lease_ended:
                told(life.page)

    def owner_gone(self, generation: GenerationId) -> None:
        """A page reaches the network by its owner's grant: it ends with its owner, and its panel too."""
        life = self._lives.get(generation)
        resource = self._ledger.resource(generation)
        if life is not None:
            panels = self._ledger.panels_of(resource) if resource is not None else ()
            self._tasks.create_task(self._end_abandoned(life, tuple(panel.id for panel in panels)))

    async def _end_abandoned(self, life: Life, panels: tuple[PanelId, ...]) -> None:
        await close_page(life.page)
        await life.over.wait()
        for panel in panels:
            # A panel that can't be taken out now is closed with the next broker's layout.
            with suppress(Refusal, EffectFailed):
                await self._ledger.close_panel(panel)

    async def close(self, resource: ResourceKey, permit: Permit) -> None:
        """End the page; its context ends with its last page."""
        del permit
        life = self._lives.get(self._ledger.current(resource) or GenerationId(""))
        if life is not None:
            await close_page(life.page)
            await life.over.wait()
