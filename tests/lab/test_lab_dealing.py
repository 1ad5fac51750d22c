"""How tests become shards: all of them, once, in no empty shard."""

from hypothesis import given
from hypothesis import strategies as st
from lab import lab_values as values

from lomi.lab.dealing import by_count, by_timing

COUNTS = st.integers(0, 40), st.integers(1, 12)


@given(*COUNTS)
def test_by_count_is_even_and_in_order(tests: int, shards: int) -> None:
    """Neighbours stay together, lengths differ by one at most, and no shard is empty."""
    planned = values.tests_of(tests)
    dealt = by_count(planned, shards)
    assert [test for some in dealt for test in some] == planned
    lengths = [len(some) for some in dealt]
    assert len(lengths) == min(tests, shards)
    assert not lengths or (min(lengths) >= 1 and max(lengths) - min(lengths) <= 1)


@given(*COUNTS, st.data())
def test_by_timing_is_whole_and_never_empty(tests: int, shards: int, data: st.DataObject) -> None:
    """Every test is in one shard, whatever was recorded; the longest shard comes first."""
    planned = values.tests_of(tests)
    times = {test.id: data.draw(st.floats(0, 100)) for test in planned if data.draw(st.booleans())}
    dealt = by_timing(planned, shards, times)
    assert sorted(test.line for some in dealt for test in some) == [test.line for test in planned]
    assert len(dealt) == min(tests, shards)
    assert all(some for some in dealt)
    assert all([test.line for test in some] == sorted(test.line for test in some) for some in dealt)


def test_by_timing_puts_the_long_one_alone() -> None:
    """One test of 9 s and nine of 1 s on two shards: nine seconds each."""
    planned = values.tests_of(10)
    times = {test.id: 9.0 if test.line == 4 else 1.0 for test in planned}
    first, second = by_timing(planned, 2, times)
    assert [test.line for test in first] == [4]
    assert len(second) == 9


def test_three_tests_on_five_shards_are_three() -> None:
    """Row 37: an empty shard is never made."""
    assert [len(some) for some in by_count(values.tests_of(3), 5)] == [1, 1, 1]
    assert by_count([], 5) == by_timing([], 5, {}) == ()
