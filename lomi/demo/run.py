"""One whole run: the server, the broker, the agent, the story, the end, the judgement."""

import asyncio
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lomi.demo import judge, story
from lomi.demo.agent import opened_agent
from lomi.demo.apk import DemoApp
from lomi.demo.broker import Broker, lomi_command, opened_broker
from lomi.demo.facts import facts, simulated
from lomi.demo.notebook import Listener, Notebook
from lomi.demo.place import Place, opened_place, write_policy
from lomi.demo.plan import APK, ASKING, EMAIL, FORM, NAME
from lomi.demo.record import DemoFailedError, Finding, Run
from lomi.demo.site import Request, opened_site

EXTRA_TOOLS = "lomi_panel_close"
"""What the story needs beside the qa profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """Where the run writes its logs, what it installs, and what it takes from outside."""

    folder: Path
    app: DemoApp
    environment: Mapping[str, str]
    clock: Callable[[], float] = time.monotonic


async def run_demo(setting: RunSetting, listener: Listener) -> Run:
    """Run the demo; a step that fails ends the story, never the judgement."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    notebook = Notebook(listener=listener, clock=setting.clock, since=setting.clock())
    with opened_place() as place:
        performance = Performance(setting, notebook, place)
        await performance.play()
        findings = await asyncio.to_thread(performance.findings)
    return Run(
        started_at=started_at,
        total_s=setting.clock() - notebook.since,
        steps=tuple(notebook.steps),
        findings=(*findings, judge.judge_place(place.root)),
        facts=facts(performance.requests, setting.app, performance.era),
        simulated=simulated(setting.app),
    )


class Performance:
    """The story on its stage. After `play` everything it started has ended; `findings` asks the records."""

    def __init__(self, setting: RunSetting, notebook: Notebook, place: Place) -> None:
        self._setting = setting
        self._notebook = notebook
        self._place = place
        self._broker: Broker | None = None
        self.requests: list[Request] = []
        self.era = "not connected"

    async def play(self) -> None:
        """Run the plan as far as it goes."""
        place, setting = self._place, self._setting
        async with opened_site(setting.folder / "web.log.jsonl") as site, AsyncExitStack() as stack:
            self.requests = site.requests
            write_policy(place, site.origin, (FORM, ASKING, setting.app.package))
            await asyncio.to_thread((place.project / APK).write_bytes, setting.app.content)
            environment, log = place.broker_environment(setting.environment), setting.folder / "broker.log"
            with suppress(DemoFailedError):
                with self._notebook.step("broker"):
                    opening = opened_broker(place.policy, place.project, environment, log)
                    self._broker = await stack.enter_async_context(opening)
                await self._with_agent(site.origin)
            if self._broker is not None:
                with suppress(DemoFailedError), self._notebook.step("down"):
                    await self._broker.end()

    async def _with_agent(self, origin: str) -> None:
        """Tell the story. Its failure leaves as itself, not inside a group of the SDK's task groups."""
        failed: DemoFailedError | None = None
        notebook = self._notebook
        command = [*lomi_command(), "mcp", "--profile", "qa", "--tools", EXTRA_TOOLS]
        environment = self._place.agent_environment()
        async with AsyncExitStack() as stack:
            try:
                with notebook.step("connect"):
                    opening = opened_agent(command, environment, notebook.heard, notebook.since, notebook.clock)
                    agent = await stack.enter_async_context(opening)
                    self.era = agent.era
                    await agent.call("lomi_status", {})
                    await agent.connect()
                await story.tell(agent, notebook, origin, self._setting.app)
            except DemoFailedError as error:
                failed = error
        if failed is not None:
            raise failed

    def _keep(self) -> None:
        """Copy what the phone wrote down, and the last words of what failed, before the home is removed."""
        if self._place.journal.exists():
            shutil.copyfile(self._place.journal, self._setting.folder / "phone.log.jsonl")
        for evidence in self._place.evidence():
            shutil.copyfile(evidence, self._setting.folder / f"evidence-{evidence.stem[:8]}.txt")

    def findings(self) -> list[Finding]:
        """What the phone's journal, the web server's log, the receipts and the system say; blocking."""
        broker, journal = self._broker, judge.read_journal(self._place.journal)
        self._keep()
        calls = [call for step in self._notebook.steps for call in step.calls]
        return [
            *judge.judge_phone(journal, NAME, EMAIL, self._setting.app.package),
            *judge.judge_site(self.requests, NAME, EMAIL),
            *judge.judge_calls(calls),
            *judge.judge_end(
                broker.exit_code if broker else None,
                broker.left if broker else (),
                sorted(str(path) for path in self._place.scratch.iterdir()),
            ),
        ]
