"""Where the tests of a host find their broker: one of the run's own, or one that runs already; and its phones."""

import asyncio
import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

from lomi.client.aio import Lab, connect_async
from lomi.client.errors import BrokerFaultError, ToolError
from lomi.demo.broker import Broker, opened_broker
from lomi.demo.record import DemoFailedError
from lomi.disk.home import state_home
from lomi.lab.engine import EngineFailedError, NeedsUnmetError
from lomi.lab.lanes import Lane
from lomi.lab.phones import BrokerPhone, made_phones
from lomi.lab.plan import Plan
from lomi.lab.pool import Pool, PoolRule, opened_pool
from lomi.link.errors import LinkError

LABEL = "lab"
TOKEN_VARIABLE = "LOMI_CLIENT_TOKEN"  # noqa: S105  # the name of it
_SCOPES = (
    *("workspace.read", "panel.create", "panel.focus", "panel.close", "files.read"),
    *("artifact.import", "artifact.import_file", "android.*", "android.manage"),
)
_PAGE_SCOPES = ("browser.*",)
_TERMINAL_SCOPES = ("terminal.*",)
_DECIDED = ("lomi_android_install_apk", "lomi_android_device_manage")


class Quarters(NamedTuple):
    """What a host's workers use: their environment, and the pool; None when the plan has no phones.

    `lab` is the pool's own session, None where nothing needs a broker; `lost` is set once the broker is gone.
    """

    environment: Mapping[str, str]
    pool: Pool | None
    lab: Lab | None
    lost: asyncio.Event


class Premises(NamedTuple):
    """What quarters are opened for: the plan, its tests' folder, the environment, and the lanes of the phones."""

    plan: Plan
    folder: Path
    environment: Mapping[str, str]
    lanes: Mapping[str, Lane]
    log: Path


def phone_names(plan: Plan) -> tuple[str, ...]:
    """What the phones of a run's own broker are called."""
    return tuple(f"lab-{number}" for number in range(1, plan.phones + 1))


def policy_text(plan: Plan, token: str) -> str:
    """The policy of a run's own broker: its phones, and one client that may use them and what the plan names."""
    asked = plan.broker
    assert asked is not None
    digest = hashlib.sha256(token.encode()).hexdigest()
    scopes = [*_SCOPES, *(_PAGE_SCOPES if asked.origins else ()), *(_TERMINAL_SCOPES if asked.terminals else ())]
    scopes += [scope for scope in asked.scopes if scope not in scopes]
    image = plan.pool.image if plan.pool is not None and plan.pool.recycle == "reuse" else None
    phones = phone_names(plan) if image is not None else ()
    lines = ["version = 1"]
    for name in phones:
        lines += ["[[device]]", f"name = {json.dumps(name)}", f"image = {json.dumps(image)}"]
    lines += [
        "[[client]]",
        f"label = {json.dumps(LABEL)}",
        f"token_sha256 = {json.dumps(digest)}",
        f"scopes = {json.dumps(scopes)}",
        'workspaces = ["*"]',
        'devices = ["*"]',
        f"packages = {json.dumps(list(asked.packages))}",
        f"origins = {json.dumps(list(asked.origins))}",
        f"decide = {json.dumps(list(_DECIDED))}",
    ]
    if asked.terminals:
        lines.append('terminal_profile = "bash"')
    return "\n".join(lines) + "\n"


@contextmanager
def _policy_file(text: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lomi-lab-") as folder:
        path = Path(folder) / "policy.toml"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as target:
            target.write(text)
        yield path


@asynccontextmanager
async def opened_quarters(premises: Premises) -> AsyncIterator[Quarters]:
    """Open the broker, if the plan wants one of its own, and the pool; everything ends with the context.

    Raises:
        EngineFailedError: the broker did not start or does not take us, or there are too few phones.
    """
    plan, lost = premises.plan, asyncio.Event()
    async with AsyncExitStack() as stack:
        environment = dict(premises.environment)
        try:
            if plan.broker is not None:
                environment |= await _own_broker(premises, stack, lost)
            pool = lab = None
            if plan.phones or plan.broker is not None:
                lab = await stack.enter_async_context(connect_async(environment=environment))
            if plan.phones and lab is not None:
                pool = await _pool(premises, lab, stack, lost.set)
        except DemoFailedError as failed:
            raise EngineFailedError(str(failed)) from failed
        except (LinkError, ToolError, BrokerFaultError) as failed:
            raise EngineFailedError(f"the broker can't be used: {failed}") from failed
        except NeedsUnmetError as unmet:
            raise EngineFailedError(str(unmet)) from unmet
        yield Quarters(environment, pool, lab, lost)


async def _own_broker(premises: Premises, stack: AsyncExitStack, lost: asyncio.Event) -> dict[str, str]:
    """Start a headless broker on this environment's home; what its clients need to reach it."""
    token = secrets.token_urlsafe(32)
    policy = stack.enter_context(_policy_file(policy_text(premises.plan, token)))
    home = state_home(premises.environment)
    environment = {
        name: value
        for name, value in premises.environment.items()
        if name not in ("LOMI_CLIENT_LABEL", TOKEN_VARIABLE, "PYTHONDONTWRITEBYTECODE")
    }
    environment["LOMI_HOME"] = str(home)
    opening = opened_broker(policy, premises.folder, environment, premises.log, dies_with_us=True)
    broker = await stack.enter_async_context(opening)
    await stack.enter_async_context(_watched(broker, lost))
    return {"LOMI_HOME": str(home), "LOMI_CLIENT_LABEL": LABEL, TOKEN_VARIABLE: token}


@asynccontextmanager
async def _watched(broker: Broker, lost: asyncio.Event) -> AsyncIterator[None]:
    """Tell when the broker is gone."""

    async def watch() -> None:
        await broker.gone()
        lost.set()

    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch(), name="lomi-lab-broker")
        try:
            yield
        finally:
            watching.cancel()


async def _pool(premises: Premises, lab: Lab, stack: AsyncExitStack, lost: Callable[[], None]) -> Pool:
    plan = premises.plan
    assert plan.pool is not None
    if plan.pool.recycle == "reuse":
        phones = tuple([BrokerPhone(lab, name, lost) for name in await _granted(lab, plan.phones)])
    else:
        phones = await stack.enter_async_context(made_phones(lab, plan.pool.image, plan.phones, lost))
    rule = PoolRule(boot_s=plan.pool.boot_s, boots=plan.pool.boots, ahead=plan.pool.ahead)
    pairs = list(zip(phones, premises.lanes.values(), strict=False))
    return await stack.enter_async_context(opened_pool(pairs, rule))


async def _granted(lab: Lab, count: int) -> tuple[str, ...]:
    """The first phones of the grant.

    Raises:
        NeedsUnmetError: there are fewer than the plan wants.
    """
    found = await lab.phones()
    if len(found) < count:
        there = ", ".join(phone.name for phone in found) or "none"
        raise NeedsUnmetError(f"the plan wants {count} phones, and the broker grants {len(found)} ({there})")
    return tuple(phone.name for phone in found[:count])
