"""Values that the store's tests share: a clock that stands, receipts, and an open store."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from lomi.contract.codes import OperationState
from lomi.contract.limits import DESKTOP, Limits
from lomi.core.failpoints import Failpoints
from lomi.store import NewReceipt, Store

EPOCH = "e" * 40
NOW_S = 1_800_000_000


class StillClock:
    """Time that moves only when a test moves it."""

    def __init__(self, now_s: float = NOW_S) -> None:
        self.now_s = now_s

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s

    async def sleep(self, _: float, /) -> None:
        raise AssertionError("the store never sleeps")


def operation(number: int) -> str:
    """The operation id that `receipt(number)` has."""
    return f"{number:040x}"


def receipt(number: int, state: OperationState = OperationState.RUNNING, **changes: object) -> NewReceipt:
    """A receipt of session s1 in workspace w1 with a key of its own."""
    values: dict[str, object] = {
        "operation_id": operation(number),
        "session_id": "s1",
        "client_label": "qa",
        "tool": "lomi_browser_click",
        "fingerprint": number.to_bytes(32, "big"),
        "state": state,
        "project_id": "p1",
        "retry_epoch": EPOCH,
        "request_key": f"key-{number}",
        "workspace_id": "w1",
        "resource": "b1",
        "generation": "b1",
    }
    return NewReceipt(**(values | changes))  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def store_at(
    home: Path, *, instance: str = "i1", clock: StillClock | None = None, epoch: bool = True, **limits: object
) -> AsyncIterator[Store]:
    """An open store with the desktop limits, changed as told, and an epoch of session s1."""
    clock = clock or StillClock()
    changed: Limits = msgspec.structs.replace(DESKTOP, **limits)
    opened = Store.open(home, instance_id=instance, limits=changed, clock=clock, failpoints=Failpoints({}))
    async with opened as store:
        if epoch:
            await store.put_epoch(EPOCH if instance == "i1" else f"{instance:e>40}", "s1", int(clock.now_s) + 86_400)
        yield store


def descriptors() -> set[str]:
    """What this process has open, as targets of its descriptors."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(str(entry.readlink()))
    return found
