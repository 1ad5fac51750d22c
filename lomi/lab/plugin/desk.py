"""What one process of a run works with: its broker, its phones, and the attempt under way."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import pytest

from lomi.client.errors import BrokerFaultError, ConnectionLostError, StaleGenerationError, TargetBusyError, ToolError
from lomi.client.lab import Lab, Page, Phone, Terminal
from lomi.contract.android import DeviceView
from lomi.lab.plugin import infra
from lomi.lab.plugin.attempt import Attempt
from lomi.lab.plugin.evidence import Evidence
from lomi.lab.plugin.makers import Makers
from lomi.lab.plugin.options import Options, read_options
from lomi.lab.plugin.place import NoImageError, OwnBroker, Place, reap_keepers
from lomi.lab.plugin.stations import RECORD_ATTRIBUTE, Stations
from lomi.lab.records import PHONES_VARIABLE, Cause

ClosedT = TypeVar("ClosedT", Page, Terminal)

IMAGE = "paper-36"
QUEUE_S = 300.0
"""How long a test may wait for a phone that others use."""
_PAUSE_S = 0.05
_MOST_ENDED = 20
_LOST = frozenset({"session_ended", "closing", "broker_fault"})


class Desk:
    """Made when the first test that uses devices is set up."""

    def __init__(self, config: pytest.Config, stations: Stations) -> None:
        self.options: Options = read_options(config)
        self._station = stations.own()
        self._base = Path(self._station["artifacts"])
        self._granted = tuple(name for name in os.environ.get(PHONES_VARIABLE, "").split(",") if name)
        self._place = Place(
            Path(self._station["root"]), self._station["run_pid"], self._own_broker(config), dict(os.environ)
        )
        self._lab: Lab | None = None
        self._numbers: dict[str, int] = {}
        self._makers = Makers()
        self.attempt: Attempt | None = None

    def _own_broker(self, config: pytest.Config) -> OwnBroker:
        options = self.options
        base = config.getoption("base_url", None)
        origins = dict.fromkeys((*options.origins, *([str(base)] if base else ())))
        return OwnBroker(
            image=options.phone or IMAGE,
            phones=options.pool or self._station["workers"],
            origins=tuple(origins),
            project=Path(config.rootpath),
            home=Path(options.home).absolute() if options.home else None,
        )

    def begin(self, item: pytest.Item) -> None:
        """A test's set-up begins."""
        number = self._numbers[item.nodeid] = self._numbers.get(item.nodeid, 0) + 1
        self.attempt = Attempt(item.nodeid, number, self._lab)

    def _now(self) -> Attempt:
        assert self.attempt is not None
        return self.attempt

    @contextmanager
    def connected(self) -> Iterator[Lab]:
        """The connection of this process; the time to have it is boot time of the test that came first."""
        with ExitStack() as opened:
            opened.callback(reap_keepers)
            with self._now().measuring("boot"):
                try:
                    lab = opened.enter_context(self._place.connecting())
                except NoImageError as unknown:
                    # A wrong word on the command line: no test can be run. pytest-xdist fails over a worker that exits.
                    if self._station["worker"] != "main":
                        raise
                    pytest.exit(str(unknown), returncode=pytest.ExitCode.USAGE_ERROR)
            self._lab = lab
            self._now().uses(lab)
            try:
                yield lab
            finally:
                self._makers.delete_all(lab)
                self._lab = None

    @contextmanager
    def phone(self, lab: Lab, request: pytest.FixtureRequest) -> Iterator[Phone]:
        """A phone under this test's own lease, in the state that the options ask for."""
        attempt = self._now()
        marker = request.node.get_closest_marker("lomi_phone")
        wanted = str(marker.args[0]) if marker is not None and marker.args else self.options.phone
        how, key = self.options.reset, self._key()
        if how == "wipe" or how == "fresh":  # noqa: PLR1714  mypy narrows this
            with attempt.measuring("boot"):
                wanted = self._makers.ready(lab, wanted or IMAGE, key, how)
        phone = self._leased(lab, wanted)
        try:
            if how == "restart" and self._makers.due(phone.name, key):
                with attempt.measuring("boot"):
                    phone.restart()
            attempt.phones.append(phone)
            attempt.took("phone", phone.name, phone)
            self._film(phone)
            yield phone
        finally:
            attempt.films.drop(phone)
            if phone.running:
                attempt.took("phone", phone.name, phone)
            if phone.leased:
                _quietly(phone.release)

    def _leased(self, lab: Lab, wanted: str | None) -> Phone:
        """The first phone that is free, this process's own before all others."""
        attempt, end, ended = self._now(), time.monotonic() + QUEUE_S, 0
        while True:
            for device in self._mine(lab, wanted):
                try:
                    return self._ready(lab, device)
                except TargetBusyError as busy:
                    if busy.reason != "already_leased" or time.monotonic() > end:
                        raise
                except StaleGenerationError:
                    # Another worker that has ended may just be stopping the phone that it booted.
                    ended += 1
                    if ended > _MOST_ENDED:
                        raise
            with attempt.measuring("queue"):
                time.sleep(_PAUSE_S)

    def _ready(self, lab: Lab, device: DeviceView) -> Phone:
        phone = lab.phone(device.device_id, start=False, lease=False)
        if not phone.running:
            with self._now().measuring("boot"):
                phone.start()
        if not phone.leased:
            phone.lease()
        return phone

    def _mine(self, lab: Lab, wanted: str | None) -> tuple[DeviceView, ...]:
        if self.options.reset in ("wipe", "fresh"):
            return lab.fitting(wanted)
        if self._granted:
            devices = {device.name: device for device in lab.phones()}
            return tuple(devices[name] for name in self._granted if name in devices)
        fitting = lab.fitting(wanted)
        pool = sorted(fitting, key=lambda device: device.name)[: self.options.pool]
        number = self._station["number"]
        if number < len(pool):
            return (pool[number],)
        return tuple(device for device in fitting if device in pool)

    def _key(self) -> str:
        """What stays the same for as long as a phone need not be made as new."""
        attempt = self._now()
        module = attempt.node_id.partition("::")[0]
        return {"test": f"{attempt.node_id} {attempt.number}", "module": module, "session": "all"}[self.options.each]

    @contextmanager
    def page(self, lab: Lab) -> Iterator[Page]:
        """A blank page in a browser context of its own."""
        attempt = self._now()
        if not any(scope.startswith("browser.") for scope in lab.scopes):
            pytest.fail("lomi: no origin is granted; give --lomi-origin URL, or ini lomi_origins", pytrace=False)
        with attempt.measuring("boot"):
            page = lab.page("about:blank")
        with _kept(attempt, "page", page, attempt.pages):
            self._film(page)
            try:
                yield page
            finally:
                attempt.films.drop(page)

    def _film(self, device: Phone | Page) -> None:
        attempt, options = self._now(), self.options
        with attempt.measuring("evidence"):
            attempt.films.begin(device, video=options.videos != "off", trace=options.page_traces != "off")

    @contextmanager
    def terminal(self, lab: Lab) -> Iterator[Terminal]:
        """A terminal in the project's root."""
        attempt = self._now()
        with attempt.measuring("boot"):
            terminal = lab.terminal(title="pytest")
        with _kept(attempt, "terminal", terminal, attempt.terminals):
            yield terminal

    @property
    def worker(self) -> str:
        """What records call this process."""
        return self._station["worker"]

    def next_is_last(self, item: pytest.Item) -> bool:
        """Whether no other attempt of this test may follow the one that comes next, whatever becomes of it."""
        return self._numbers.get(item.nodeid, 0) + 1 > self.options.retries

    def again(self, attempt: Attempt) -> bool:
        """Whether another attempt follows: the device was lost, and the options allow it."""
        return attempt.infra and attempt.number <= self.options.retries

    def must_reconnect(self, attempt: Attempt) -> bool:
        """Whether what outlives the test is of no use any more."""
        cause = attempt.cause
        return attempt.infra and (attempt.in_setup or cause is None or cause.code is None or cause.reason in _LOST)

    def phase_ended(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        """Judge a phase, take evidence while the devices are there, and hang the record on the last report."""
        attempt = self.attempt
        if attempt is None or attempt.node_id != item.nodeid:
            return
        attempt.phase_took(report.when, report.duration)
        error = call.excinfo.value if call.excinfo is not None else None
        if report.when == "call" and (not report.passed or self._always):
            self._look(attempt, error, failed=report.failed or hasattr(report, "wasxfail"))
        elif report.when != "call" and report.failed and not attempt.infra:
            self._look(attempt, error, failed=True)
        self._judge(attempt, report, error)
        if report.when == "teardown":
            self._finish(attempt, report)

    @property
    def _always(self) -> bool:
        return "on" in (self.options.pictures, self.options.traces, self.options.videos)

    def _look(self, attempt: Attempt, error: BaseException | None, *, failed: bool) -> None:
        """Take what is to be kept, and find out whether the devices still live."""
        options = self.options
        with attempt.measuring("evidence"):
            evidence = Evidence(attempt, self._base)
            evidence.take(
                pictures=options.pictures == "on" or (failed and options.pictures == "failure"),
                trace=options.traces == "on" or (failed and options.traces == "failure"),
                video=options.videos == "on" or (failed and options.videos == "failure"),
                rest=failed,
            )
            attempt.account = "\n".join(evidence.missing)
            if failed and error is not None:
                cause = infra.cause_of(error) or self._dead(attempt)
                for met in evidence.errors:
                    cause = cause or infra.cause_of(met)
                attempt.infra = cause is not None
                attempt.cause = cause or infra.told(error)

    def _dead(self, attempt: Attempt) -> Cause | None:
        """Why a phone of the attempt is not in the life in which it was handed out, or out of reach in it.

        None where it runs, or was stopped here.
        """
        if self._lab is None or not attempt.phones:
            return None
        try:
            listed = {device.device_id: device for device in self._lab.phones()}
        except ConnectionLostError as lost:
            return infra.cause_of(lost)
        except (ToolError, BrokerFaultError):
            return None
        for phone in attempt.phones:
            device = listed.get(phone.device_id)
            if not phone.running:
                continue
            if device is None or device.generation != phone.generation or not device.process_alive:
                said = f"phone {phone.name} ended its generation {phone.generation} while the test used it"
                return Cause(message=said, code="APP_UNAVAILABLE", reason="emulator_exited")
            if device.phase != "running":  # on a busy machine its process is seen to end a while after adb has lost it
                said = f"phone {phone.name} went offline in its generation {phone.generation} while the test used it"
                return Cause(message=said, code="APP_UNAVAILABLE", reason="offline")
        return None

    def _judge(self, attempt: Attempt, report: pytest.TestReport, error: BaseException | None) -> None:
        if attempt.infra:
            attempt.outcome = "infra_error"
            attempt.in_setup = attempt.in_setup or (report.when == "setup" and error is not None)
            if report.when != "teardown" and error is not None and (report.when == "call" or self.again(attempt)):
                _as_infra(report)
            if report.when == "teardown" and not self.again(attempt) and report.passed and not attempt.in_setup:
                report.outcome = "failed"
                said = attempt.cause.message if attempt.cause is not None else ""
                report.longrepr = f"infra_error, no failure of the test: {said}"
        elif report.failed:
            attempt.outcome = "failed"
            attempt.cause = attempt.cause or (infra.told(error) if error is not None else None)
        elif report.skipped:
            attempt.outcome, attempt.cause = "skipped", infra.told(error) if error is not None else None
        if hasattr(report, "wasxfail") and not attempt.infra:
            attempt.note = "xfailed" if report.skipped else "xpassed"
        if error is not None and (attempt.artifacts or attempt.account):
            lines = [*(f"{one.kind}: {self._base / one.path}" for one in attempt.artifacts), attempt.account]
            report.sections.append(("lomi", "\n".join(line for line in lines if line)))

    def _finish(self, attempt: Attempt, report: pytest.TestReport) -> None:
        record = attempt.record(self.worker, final=not self.again(attempt))
        setattr(report, RECORD_ATTRIBUTE, msgspec.to_builtins(record))
        told = [("lomi.outcome", record.outcome), ("lomi.attempt", str(record.attempt))]
        told += [(f"lomi.{one.kind}", str(self._base / one.path)) for one in record.artifacts]
        told += [("lomi.generation", one.generation) for one in record.leased]
        report.user_properties.extend(told)


def _as_infra(report: pytest.TestReport) -> None:
    """Take a report out of the failures: neither pytest nor a JUnit file holds it against the test."""
    report.outcome = "infra"  # type: ignore[assignment]
    if hasattr(report, "wasxfail"):
        del report.wasxfail


@contextmanager
def _kept(
    attempt: Attempt, kind: Literal["page", "terminal"], device: ClosedT, devices: list[ClosedT]
) -> Iterator[None]:
    """A page or a terminal among those of the attempt; closed afterwards, unless the test did."""
    devices.append(device)
    attempt.took(kind, kind, device)
    try:
        yield
    finally:
        devices.remove(device)
        if not device.closed:
            _quietly(device.close)


def _quietly(end: Callable[[], object]) -> None:
    """Let go of a device that may be gone."""
    with suppress(ToolError, BrokerFaultError):
        end()
