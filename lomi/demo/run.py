"""One whole run: the server, the broker, the agent, the story, the end, the judgement."""

import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lomi.demo import judge, story
from lomi.demo.agent import opened_agent
from lomi.demo.broker import Broker, lomi_command, opened_broker
from lomi.demo.notebook import Listener, Notebook
from lomi.demo.place import Place, opened_place, write_policy
from lomi.demo.plan import EMAIL, NAME
from lomi.demo.record import DemoFailedError, Finding, Run
from lomi.demo.site import opened_site


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetting:
    """Where the run writes its logs, and what it takes from outside."""

    folder: Path
    environment: Mapping[str, str]
    clock: Callable[[], float] = time.monotonic


async def run_demo(setting: RunSetting, listener: Listener) -> Run:
    """Run the demo; a step that fails ends the story, never the judgement."""
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    notebook = Notebook(listener=listener, clock=setting.clock, since=setting.clock())
    findings: list[Finding] = []
    with opened_place() as place:
        broker = await _in_place(setting, notebook, place, findings)
    findings += judge.judge_end(broker.exit_code if broker else None, broker.left if broker else (), place.root)
    return Run(
        started_at=started_at,
        total_s=setting.clock() - notebook.since,
        steps=tuple(notebook.steps),
        findings=tuple(findings),
        facts=(),
        simulated=(),
    )


async def _in_place(setting: RunSetting, notebook: Notebook, place: Place, findings: list[Finding]) -> Broker | None:
    broker: Broker | None = None
    given = setting.environment
    async with opened_site(setting.folder / "web.log.jsonl") as site, AsyncExitStack() as stack:
        write_policy(place, site.origin, ("*",))
        log = setting.folder / "broker.log"
        with suppress(DemoFailedError):
            with notebook.step("broker"):
                opening = opened_broker(place.policy, place.project, place.broker_environment(given), log)
                broker = await stack.enter_async_context(opening)
            await _with_agent(notebook, place, site.origin)
        if broker is not None:
            with suppress(DemoFailedError), notebook.step("down"):
                await broker.end()
        findings += judge.judge_phone(judge.read_journal(place.journal), NAME, EMAIL)
        findings += judge.judge_site(site.requests, NAME, EMAIL)
    return broker


async def _with_agent(notebook: Notebook, place: Place, origin: str) -> None:
    """Tell the story. Its failure leaves as itself, not inside a group of the SDK's task groups."""
    failed: DemoFailedError | None = None
    command = [*lomi_command(), "mcp", "--profile", "qa", "--tools", "lomi_panel_close"]
    async with AsyncExitStack() as stack:
        try:
            with notebook.step("connect"):
                opening = opened_agent(
                    command, place.agent_environment(), notebook.heard, notebook.since, notebook.clock
                )
                agent = await stack.enter_async_context(opening)
                await agent.call("lomi_status", {})
                await agent.connect()
            await story.tell(agent, notebook, origin)
        except DemoFailedError as error:
            failed = error
    if failed is not None:
        raise failed
