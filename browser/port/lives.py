"""Pages against generations: each page is a life that the ledger knows, behind an egress proxy of its own context."""

import asyncio
from dataclasses import dataclass
from typing import Any

from browser.egress import EgressGrant, EgressProxy, HostPort, Origin, RefusalIdentity
from browser.errors import BrowserError
from browser.navigate import close as close_page
from browser.page import Page
from browser.port.faults import refusal_of
from browser.port.lazy import LazyEngine
from lomi.contract.codes import ErrorCode
from lomi.contract.definition import ResourceKind
from lomi.contract.panel import RuntimeState
from lomi.core.grant import Grant
from lomi.core.ids import GenerationId, LeaseId
from lomi.core.own_ports import OwnPorts
from lomi.core.port import Call, Ledger, Permit, ResourceKey
from lomi.core.refusal import Refusal


@dataclass(slots=True, eq=False)
class Life:
    """One page from its opening to its end."""

    page: Page
    over: asyncio.Event


def egress_grant(grant: Grant, own_ports: frozenset[int]) -> EgressGrant:
    """What a context of this grant may reach."""
    resources = (
        "public" if "public" in grant.resources else frozenset(HostPort.parse(place) for place in grant.resources)
    )
    return EgressGrant(
        origins=frozenset(Origin.parse(origin) for origin in grant.origins),
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
        """
        generation = await self._ledger.begin_generation(resource)
        ready: asyncio.Future[Page] = asyncio.get_running_loop().create_future()
        self._tasks.create_task(self._live(generation, grant, ready), name=f"page {generation}")
        try:
            return generation, await ready
        except BrowserError:
            self._ledger.end_generation(generation)
            raise

    async def _live(self, generation: GenerationId, grant: Grant, ready: "asyncio.Future[Page]") -> None:
        reach = egress_grant(grant, self._own_ports.all)
        async with EgressProxy.serve(reach, identity=self._identity) as proxy:
            self._proxies.add(proxy)
            try:
                engine = await self._engine.get()
                page = await engine.open(generation=generation, egress=proxy)
            except BrowserError as error:
                ready.set_exception(error)
                return
            life = self._lives[generation] = Life(page, asyncio.Event())
            page.on_ended.append(lambda _reason: self._ended(generation, life))
            if not ready.done():
                ready.set_result(page)
            try:
                await life.over.wait()
                for other in tuple(page.profile.pages.values()):
                    await other.ended.wait()
            finally:
                self._proxies.discard(proxy)

    def _ended(self, generation: GenerationId, life: Life) -> None:
        life.over.set()
        self._lives.pop(generation, None)
        self._ledger.end_generation(generation)

    async def close_all(self) -> None:
        """End every page of this broker."""
        for life in tuple(self._lives.values()):
            await close_page(life.page)

    def check_open(self, call: Call[Any]) -> None:
        """The page must be there, and its document the one that the call names."""
        page = self.page(call.generation)
        navigation_id = getattr(call.input, "navigation_id", None)
        if navigation_id is not None and not page.same_document(navigation_id):
            raise Refusal(ErrorCode.STALE_SNAPSHOT, "navigated", field="/navigationId")

    def check_ref(self, call: Call[Any]) -> None:
        """As `check_open`; the element's node must be one that the page still knows."""
        self.check_open(call)
        page, given = self.page(call.generation), call.input
        if getattr(given, "element_ref", None) is not None:
            try:
                page.refs.resolve(given.element_ref, given.snapshot_id)
            except BrowserError as error:
                raise refusal_of(error) from error

    def state(self, resource: ResourceKey) -> RuntimeState:
        """How a page stands."""
        generation = self._ledger.current(resource)
        return "ready" if generation in self._lives else "exited"

    def check_claim(self, call: Call[Any]) -> None:
        """A page's lease comes with its opening; it can't be claimed."""
        del call
        raise Refusal(ErrorCode.UNSUPPORTED_CAPABILITY, "not_leased_here", field="/panelId")

    def lease_ended(self, generation: GenerationId, lease_id: LeaseId) -> None:
        """Nothing is held down in a page between actions."""

    async def close(self, resource: ResourceKey, permit: Permit) -> None:
        """End the page; its context ends with its last page."""
        del permit
        life = self._lives.get(self._ledger.current(resource) or GenerationId(""))
        if life is not None:
            await close_page(life.page)
            await life.over.wait()
