"""Receipts: reserved once, moved only along the allowed moves, settled once, told truthfully after a restart."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path

import pytest
from store_values import EPOCH, NOW_S, StillClock, operation, receipt, store_at

from lomi.contract.codes import TERMINAL_STATES, EffectState, OperationState
from lomi.core.operations import EFFECTS, MOVES, RESERVED_STATES, move_allowed, recovered
from lomi.store import ReceiptExists, RuleBroken, Store, StoreFull, UnknownOperation
from lomi.store.schema import MIGRATIONS

S = OperationState
E = EffectState
INSERT = """INSERT INTO receipts (operation_id, session_id, client_label, project_id, tool, fingerprint, state, effect,
    created_s, updated_s) VALUES (?, 's', 'l', '', 't', zeroblob(32), ?, ?, 0, 0)"""


async def test_a_reserved_receipt_is_read_back_as_it_was_given(tmp_path: Path) -> None:
    """Every column of a receipt comes back, with the clock's time and the effect none."""
    async with store_at(tmp_path) as store:
        given = receipt(7, S.QUEUED, decided_by="policy")
        await store.reserve(given)
        found = await store.receipt(operation(7))
        assert found is not None
        for name in given.__slots__:
            assert getattr(found, name) == getattr(given, name)
        assert (found.effect, found.result, found.created_s, found.updated_s) == (E.NONE, None, NOW_S, NOW_S)
        assert await store.receipt(operation(8)) is None


async def test_a_receipt_is_found_by_its_key(tmp_path: Path) -> None:
    """The retry identity leads to the receipt, and any other part of it to nothing."""
    async with store_at(tmp_path) as store:
        await store.reserve(receipt(1))
        key = {"session_id": "s1", "epoch": EPOCH, "project_id": "p1", "tool": "lomi_browser_click", "key": "key-1"}
        found = await store.receipt_by_key(**key)
        assert found is not None
        assert found.operation_id == operation(1)
        for name in key:
            assert await store.receipt_by_key(**(key | {name: "other"})) is None


async def test_of_a_thousand_reservations_of_one_key_one_is_stored(tmp_path: Path) -> None:
    """Many concurrent reservations of one retry identity: one row, all others are told that it exists."""
    async with store_at(tmp_path) as store:
        futures = [store.reserve(receipt(number, request_key="same")) for number in range(1000)]
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        assert outcomes.count(None) == 1
        assert sum(isinstance(outcome, ReceiptExists) for outcome in outcomes) == 999
        stored = await store.receipts(limit=10)
        assert [row.operation_id for row in stored] == [operation(outcomes.index(None))]


async def test_receipts_without_a_key_do_not_collide(tmp_path: Path) -> None:
    """A tool whose retry identity lives in memory stores as many receipts as it makes."""
    async with store_at(tmp_path) as store:
        for number in range(3):
            await store.reserve(receipt(number, request_key=None, retry_epoch=None))
        assert len(await store.receipts()) == 3


async def test_a_bad_job_does_not_fail_its_neighbours(tmp_path: Path) -> None:
    """In one commit the illegal move and the duplicate are refused and everything around them is stored."""
    async with store_at(tmp_path) as store:
        commits = store.commits
        good = [store.reserve(receipt(number)) for number in range(10)]
        duplicate = store.reserve(receipt(99, request_key="key-3"))
        illegal = store.move(operation(4), S.QUEUED)
        unknown = store.move(operation(77), S.CANCELLING)
        last = store.settle(operation(5), S.SUCCEEDED, E.COMPLETE, b"{}")
        outcomes = await asyncio.gather(*good, duplicate, illegal, unknown, last, return_exceptions=True)
        assert outcomes[:10] == [None] * 10
        assert isinstance(outcomes[10], ReceiptExists)
        assert isinstance(outcomes[11], RuleBroken)
        assert outcomes[11].rule == "illegal_move"
        assert isinstance(outcomes[12], UnknownOperation)
        assert outcomes[13] is None
        assert store.commits == commits + 1
        assert {row.state for row in await store.receipts()} == {S.RUNNING, S.SUCCEEDED}


async def test_a_value_that_sqlite_cannot_take_fails_alone(tmp_path: Path) -> None:
    """A lone surrogate or a number beyond 64 bits is that write's own failure; the store goes on."""
    async with store_at(tmp_path) as store:
        before = store.reserve(receipt(1))
        surrogate = store.reserve(receipt(2, resource="\ud800"))
        after = store.reserve(receipt(3))
        outcomes = await asyncio.gather(before, surrogate, after, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [type(None), UnicodeEncodeError, type(None)]
        with pytest.raises(OverflowError):
            await store.put_layout(1 << 64, b"")
        await store.reserve(receipt(4))
        assert len(await store.receipts()) == 3


async def test_a_result_is_written_once_with_the_end(tmp_path: Path) -> None:
    """Settling stores result and state together; a second end is refused and changes nothing."""
    async with store_at(tmp_path) as store:
        await store.reserve(receipt(1))
        await store.settle(operation(1), S.SUCCEEDED, E.COMPLETE, b'{"kind":"browser_clicked"}')
        with pytest.raises(RuleBroken):
            await store.settle(operation(1), S.FAILED, E.NONE, b"{}")
        found = await store.receipt(operation(1))
        assert found is not None
        assert (found.state, found.effect, found.result) == (S.SUCCEEDED, E.COMPLETE, b'{"kind":"browser_clicked"}')
        with pytest.raises(ValueError, match="does not end"):
            store.settle(operation(1), S.RUNNING, E.NONE, None)


async def test_a_result_of_64_kib_fits_and_one_byte_more_does_not(tmp_path: Path) -> None:
    """The bound on a result is exact, and the receipt can still be settled after a refused one."""
    async with store_at(tmp_path) as store:
        await store.reserve(receipt(1))
        await store.reserve(receipt(2))
        await store.settle(operation(1), S.SUCCEEDED, E.COMPLETE, bytes(65_536))
        with pytest.raises(RuleBroken, match="too_large"):
            await store.settle(operation(2), S.SUCCEEDED, E.COMPLETE, bytes(65_537))
        await store.settle(operation(2), S.OUTCOME_UNKNOWN, E.UNKNOWN, None)


async def test_running_needs_an_epoch_of_this_broker_and_session(tmp_path: Path) -> None:
    """No receipt enters running with an epoch that is unknown, over, another session's or an earlier broker's."""
    clock = StillClock()
    async with store_at(tmp_path, clock=clock) as store:
        for number, changes in enumerate(({"retry_epoch": "f" * 40}, {"session_id": "s2"})):
            with pytest.raises(RuleBroken, match="epoch"):
                await store.reserve(receipt(number, **changes))
        await store.reserve(receipt(5, S.QUEUED))
        clock.now_s += 86_400
        with pytest.raises(RuleBroken, match="epoch"):
            await store.move(operation(5), S.RUNNING)
    async with store_at(tmp_path, instance="i2") as store:
        with pytest.raises(RuleBroken, match="epoch"):
            await store.reserve(receipt(6))


async def test_the_decider_is_recorded_with_the_decision(tmp_path: Path) -> None:
    """After a decision a receipt goes awaiting_user, queued, running, and keeps who decided."""
    async with store_at(tmp_path) as store:
        await store.reserve(receipt(1, S.AWAITING_USER))
        await store.move(operation(1), S.QUEUED, decided_by="prompt")
        await store.move(operation(1), S.RUNNING)
        found = await store.receipt(operation(1))
        assert found is not None
        assert (found.state, found.decided_by) == (S.RUNNING, "prompt")


async def test_receipts_are_listed_newest_first_and_in_pages(tmp_path: Path) -> None:
    """The list for the owner filters by session and time and pages by sequence."""
    clock = StillClock()
    async with store_at(tmp_path, clock=clock) as store:
        for number in range(6):
            clock.now_s = NOW_S + number
            await store.reserve(receipt(number, S.QUEUED, session_id=f"s{number % 2}"))
        assert [row.operation_id for row in await store.receipts(limit=2)] == [operation(5), operation(4)]
        second = await store.receipts(before=(await store.receipts(limit=2))[-1].sequence, limit=2)
        assert [row.operation_id for row in second] == [operation(3), operation(2)]
        assert [row.operation_id for row in await store.receipts(session_id="s0")] == [
            operation(number) for number in (4, 2, 0)
        ]
        assert len(await store.receipts(since_s=NOW_S + 4)) == 2


async def test_events_are_the_states_in_order_without_gaps(tmp_path: Path) -> None:
    """The view of a session and a workspace numbers its events from 1 and shows nobody else's."""
    async with store_at(tmp_path) as store:
        await store.reserve(receipt(1, S.QUEUED))
        await store.reserve(receipt(2, S.QUEUED, session_id="s2"))
        await store.move(operation(1), S.RUNNING)
        await store.reserve(receipt(3, S.QUEUED, workspace_id="w2"))
        await store.reserve(receipt(4, S.QUEUED, workspace_id=None))
        await store.settle(operation(1), S.FAILED, E.PARTIAL, b"{}")
        events = await store.events(session_id="s1", workspace_id="w1", after=0, limit=10)
        assert [(event.place, event.state, event.effect) for event in events] == [
            (1, S.QUEUED, E.NONE),
            (2, S.RUNNING, E.NONE),
            (3, S.FAILED, E.PARTIAL),
        ]
        assert {event.operation_id for event in events} == {operation(1)}
        later = await store.events(session_id="s1", workspace_id="w1", after=1, limit=1)
        assert [event.place for event in later] == [2]
        assert len(await store.events(session_id="s1", workspace_id="w2", after=0, limit=10)) == 1


async def test_a_restart_tells_the_truth_about_unfinished_work(tmp_path: Path) -> None:
    """What was never dispatched is cancelled, what was running is unknown, what had ended stays; each has its event."""
    async with store_at(tmp_path) as store:
        await store.reserve(receipt(1, S.QUEUED))
        await store.reserve(receipt(2, S.AWAITING_USER))
        await store.reserve(receipt(3))
        await store.reserve(receipt(4))
        await store.move(operation(4), S.CANCELLING)
        await store.reserve(receipt(5))
        await store.settle(operation(5), S.SUCCEEDED, E.COMPLETE, b"{}")
    async with store_at(tmp_path, instance="i2") as store:
        rows = {row.operation_id: row for row in await store.receipts()}
        assert [rows[operation(number)].state for number in range(1, 6)] == [
            S.CANCELLED,
            S.CANCELLED,
            S.OUTCOME_UNKNOWN,
            S.OUTCOME_UNKNOWN,
            S.SUCCEEDED,
        ]
        assert rows[operation(3)].effect is E.UNKNOWN
        assert rows[operation(3)].result == b'{"kind":"failure","code":"OUTCOME_UNKNOWN"}'
        assert rows[operation(1)].result is None
        assert set(store.recovered.cancelled) == {operation(1), operation(2)}
        assert set(store.recovered.unknown) == {operation(3), operation(4)}
        events = await store.events(session_id="s1", workspace_id="w1", after=0, limit=100)
        assert [event.state for event in events if event.operation_id == operation(4)] == [
            S.RUNNING,
            S.CANCELLING,
            S.OUTCOME_UNKNOWN,
        ]
    async with store_at(tmp_path, instance="i3") as store:
        assert (store.recovered.cancelled, store.recovered.unknown) == ((), ())


async def test_the_store_is_full_at_4096_receipts(tmp_path: Path) -> None:
    """The desktop's 4096th receipt is stored, the next is refused at once and nothing is pruned by a restart."""
    async with store_at(tmp_path) as store:
        await asyncio.gather(*(store.reserve(receipt(number, S.QUEUED)) for number in range(4096)))
        with pytest.raises(StoreFull) as full:
            store.reserve(receipt(5000, S.QUEUED))
        assert (full.value.reason, full.value.limit) == ("store_full", "receipts")
    async with store_at(tmp_path, instance="i2") as store:
        with pytest.raises(StoreFull):
            store.reserve(receipt(5000, S.QUEUED))
        assert usage(store)["receipts"] == (4096, 4096)
        assert await store.receipt(operation(0)) is not None


async def test_a_refused_reservation_does_not_use_up_the_bound(tmp_path: Path) -> None:
    """Duplicates count for nothing, also when nobody waits for the answer; epochs have a bound of their own."""
    async with store_at(tmp_path, receipts=2, epochs=2) as store:
        await store.reserve(receipt(1))
        for number in range(2, 6):
            with pytest.raises(ReceiptExists):
                await store.reserve(receipt(number, request_key="key-1"))
        abandoned = store.reserve(receipt(8, request_key="key-1"))
        abandoned.cancel()
        await store.put_layout(1, b"")
        await store.reserve(receipt(9))
        with pytest.raises(StoreFull):
            store.reserve(receipt(10))
        await store.put_epoch("a" * 40, "s2", NOW_S + 5)
        with pytest.raises(StoreFull):
            store.put_epoch("b" * 40, "s2", NOW_S + 5)


def usage(store: Store) -> dict[str, tuple[int, int]]:
    return {row.name: (row.used, row.limit) for row in store.usage()}


def moves() -> list[tuple[OperationState, OperationState, EffectState]]:
    return [(before, after, effect) for before in S for after in S for effect in E]


def test_the_triggers_hold_the_same_rules_as_the_pure_table() -> None:
    """Every pair of states with every effect: SQL refuses exactly what the core refuses."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        connection.execute("DROP TRIGGER receipt_admit")
        for number, (before, after, effect) in enumerate(moves()):
            start = next(iter(EFFECTS[before]))
            connection.execute(
                INSERT,
                (operation(number), before.value, start.value),
            )
            try:
                connection.execute(
                    "UPDATE receipts SET state = ?, effect = ? WHERE operation_id = ?",
                    (after.value, effect.value, operation(number)),
                )
                allowed = True
            except sqlite3.IntegrityError:
                allowed = False
            assert allowed == move_allowed(before, after, effect), (before, after, effect)


def test_the_triggers_guard_insertion_identity_and_result() -> None:
    """No receipt begins ended or with an effect, changes who it is, or has its result replaced."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in MIGRATIONS[0]:
            connection.execute(statement)
        for number, state in enumerate(S):
            legal = state in RESERVED_STATES
            with contextlib.nullcontext() if legal else pytest.raises(sqlite3.IntegrityError):
                connection.execute(INSERT, (operation(number), state.value, "none"))
        with pytest.raises(sqlite3.IntegrityError, match="effect"):
            connection.execute(INSERT, (operation(50), "running", "partial"))
        with pytest.raises(sqlite3.IntegrityError, match="identity"):
            connection.execute("UPDATE receipts SET session_id = 'x'")
        connection.execute("UPDATE receipts SET result = x'7b7d'")
        with pytest.raises(sqlite3.IntegrityError, match="result_written"):
            connection.execute("UPDATE receipts SET result = x'00'")


def test_terminal_states_never_change_and_recovery_is_a_legal_move() -> None:
    """The pure table: nothing leaves a terminal state, and what a restart does is allowed by the table itself."""
    for state in S:
        end = recovered(state)
        assert (end is None) == (state in TERMINAL_STATES)
        if state in TERMINAL_STATES:
            assert not MOVES[state]
        if end is not None:
            assert move_allowed(state, *end)
