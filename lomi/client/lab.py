"""The typed Python API for code without an event loop: `lomi.client.aio`, each call blocking its own thread only.

Every method here is the one of the same name there; see its docstring.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lomi.client import aio
from lomi.client.acts import Act
from lomi.client.aio.connecting import PAIRING_S
from lomi.client.face import Face, Shown
from lomi.client.find import Found
from lomi.client.loop_thread import loop_thread
from lomi.contract.model import Result

T = TypeVar("T")
PanelT_co = TypeVar("PanelT_co", bound=aio.Phone | aio.Page | aio.Terminal, covariant=True)


class OnPanel(Face[PanelT_co]):
    """What phones, pages and terminals have in common."""

    @property
    def panel_id(self) -> str:
        """The panel that we see it through."""
        return self._source.panel_id

    @property
    def generation(self) -> str:
        """The present life, the only one of a page or a terminal; StaleGenerationError of a phone that has none."""
        return self._source.generation

    @property
    def receipts(self) -> tuple[Act[Result], ...]:
        """The acts on it in the order of their ends."""
        return self._source.receipts


class Phone(OnPanel[aio.Phone]):
    """One phone, made by `Lab.phone`."""

    @property
    def name(self) -> str:
        """Its name in the owner's policy."""
        return self._source.name

    @property
    def device_id(self) -> str:
        """Its UUID."""
        return self._source.device_id

    @property
    def simulated(self) -> bool:
        """Whether it is a `paper` phone and not Android."""
        return self._source.simulated

    @property
    def running(self) -> bool:
        """Whether it was started, as far as this client knows."""
        return self._source.running

    @property
    def booted(self) -> bool:
        """Whether this client started the present generation."""
        return self._source.booted

    @property
    def leased(self) -> bool:
        """Whether this session took control of the present life."""
        return self._source.leased

    start = Shown(aio.Phone.start)
    stop = Shown(aio.Phone.stop)
    restart = Shown(aio.Phone.restart)
    wipe = Shown(aio.Phone.wipe)
    lease = Shown(aio.Phone.lease)
    release = Shown(aio.Phone.release)
    tap = Shown(aio.Phone.tap)
    swipe = Shown(aio.Phone.swipe)
    type = Shown(aio.Phone.type)
    press = Shown(aio.Phone.press)
    key = Shown(aio.Phone.key)
    go = Shown(aio.Phone.go)
    rotate = Shown(aio.Phone.rotate)
    launch = Shown(aio.Phone.launch)
    install = Shown(aio.Phone.install)
    snapshot = Shown(aio.Phone.snapshot)
    outline = Shown(aio.Phone.outline)
    find = Shown(aio.Phone.find)
    shows = Shown(aio.Phone.shows)
    wait_for = Shown(aio.Phone.wait_for)
    wait_gone = Shown(aio.Phone.wait_gone)
    capture = Shown(aio.Phone.capture)
    start_video = Shown(aio.Phone.start_video)
    stop_video = Shown(aio.Phone.stop_video)
    drop_video = Shown(aio.Phone.drop_video)
    log = Shown(aio.Phone.log)


class Page(OnPanel[aio.Page]):
    """One page, made by `Lab.page`."""

    @property
    def url(self) -> str:
        """The document's URL as it was last seen."""
        return self._source.url

    @property
    def closed(self) -> bool:
        """Whether this client closed it."""
        return self._source.closed

    goto = Shown(aio.Page.goto)
    click = Shown(aio.Page.click)
    hover = Shown(aio.Page.hover)
    check = Shown(aio.Page.check)
    drag = Shown(aio.Page.drag)
    fill = Shown(aio.Page.fill)
    select = Shown(aio.Page.select)
    press = Shown(aio.Page.press)
    scroll = Shown(aio.Page.scroll)
    reveal = Shown(aio.Page.reveal)
    close = Shown(aio.Page.close)
    snapshot = Shown(aio.Page.snapshot)
    outline = Shown(aio.Page.outline)
    find = Shown(aio.Page.find)
    shows = Shown(aio.Page.shows)
    wait_for = Shown(aio.Page.wait_for)
    wait_for_element = Shown(aio.Page.wait_for_element)
    wait_for_url = Shown(aio.Page.wait_for_url)
    wait_for_load = Shown(aio.Page.wait_for_load)
    capture = Shown(aio.Page.capture)
    start_video = Shown(aio.Page.start_video)
    stop_video = Shown(aio.Page.stop_video)
    drop_video = Shown(aio.Page.drop_video)
    console = Shown(aio.Page.console)
    start_trace = Shown(aio.Page.start_trace)
    stop_trace = Shown(aio.Page.stop_trace)


class Terminal(OnPanel[aio.Terminal]):
    """One terminal, made by `Lab.terminal`."""

    @property
    def closed(self) -> bool:
        """Whether this client closed it."""
        return self._source.closed

    run = Shown(aio.Terminal.run)
    send = Shown(aio.Terminal.send)
    key = Shown(aio.Terminal.key)
    read = Shown(aio.Terminal.read)
    wait_for = Shown(aio.Terminal.wait_for)
    screen = Shown(aio.Terminal.screen)
    interrupt = Shown(aio.Terminal.interrupt)
    close = Shown(aio.Terminal.close)


class Lab(Face[aio.Lab]):
    """A session with one workspace, made by `connect`."""

    @property
    def instance_id(self) -> str:
        """The broker's instance."""
        return self._source.instance_id

    @property
    def receipts(self) -> tuple[Act[Result], ...]:
        """The acts of this session in the order of their ends, at most the last 4096."""
        return self._source.receipts

    @property
    def acted(self) -> int:
        """How many acts there were in all."""
        return self._source.acted

    @property
    def scopes(self) -> frozenset[str]:
        """What this session may do."""
        return self._source.scopes

    @property
    def project_path(self) -> str:
        """The folder of the workspace's project."""
        return self._source.project_path

    def run(self, work: Callable[[aio.Lab], Coroutine[Any, Any, T]]) -> T:
        """Run asynchronous work on this session's own loop and wait for it."""
        return self._thread.run(work(self._source))

    phones = Shown(aio.Lab.phones)
    fitting = Shown(aio.Lab.fitting)
    download = Shown(aio.Lab.download)

    def phone(
        self,
        name: str | None = None,
        *,
        start: bool = True,
        lease: bool = True,
        keep: bool = False,
        wait_s: float = 0.0,
    ) -> Phone:
        """A phone by its name or its image's, ready to be touched; see `aio.Lab.phone`."""
        opened = self._source.phone(name, start=start, lease=lease, keep=keep, wait_s=wait_s)
        return Phone(self._thread.run(opened), self._thread)

    def page(self, url: str) -> Page:
        """Open a page of a granted origin; see `aio.Lab.page`."""
        return Page(self._thread.run(self._source.page(url)), self._thread)

    def popups(self, act: Act[Result]) -> tuple[Page, ...]:
        """The pages that an act opened, each with a lease of its own."""
        return tuple([Page(page, self._thread) for page in self._thread.run(self._source.popups(act))])

    def terminal(self, folder: str = "", *, title: str = "python") -> Terminal:
        """A new terminal in a folder of the project; see `aio.Lab.terminal`."""
        return Terminal(self._thread.run(self._source.terminal(folder, title=title)), self._thread)

    def release(self, phone: Phone, *, keep: bool = False) -> None:
        """Let a phone go before the session ends; see `aio.Lab.release`."""
        self._thread.run(self._source.release(phone._source, keep=keep))  # noqa: SLF001  # a face of this same session


@contextmanager
def connect(
    *,
    label: str | None = None,
    token: str | None = None,
    discovery: Found | None = None,
    home: str | Path | None = None,
    workspace: str | None = None,
    pairing_timeout_s: float = PAIRING_S,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Lab]:
    """Connect as `lomi.connect_async` does, on an event loop in a thread; both end with the context.

    Raises:
        LinkError: no broker, or one that is not to be trusted or does not accept us.
        PairingRequiredError: nobody approved the pairing in time.
        TargetNotFoundError: no workspace is granted, or not this one.
    """
    with loop_thread(
        lambda: aio.connect_async(
            label=label,
            token=token,
            discovery=discovery,
            home=home,
            workspace=workspace,
            pairing_timeout_s=pairing_timeout_s,
            environment=environment,
        ),
        "lomi-lab",
    ) as thread:
        yield Lab(thread.held, thread)
