"""Values for tests of the lab."""

from lomi.lab.shard import Attempt, PlannedTest, Shard, ShardResult, Verdict, Work


def planned(number: int, file: str = "tests/test_a.py") -> PlannedTest:
    return PlannedTest(id=f"{file}::test_{number}", file=file, line=number)


def tests_of(count: int) -> list[PlannedTest]:
    return [planned(number) for number in range(1, count + 1)]


def attempt(work: Work, verdict: Verdict = "passed", shard: int = 1, **more: object) -> Attempt:
    return Attempt(test=work.test.id, attempt=work.attempt, shard=shard, verdict=verdict, **more)  # type: ignore[arg-type]


def shard(number: int, works: tuple[Work, ...]) -> Shard:
    return Shard(number=number, plan_sha256="0" * 64, works=works)


def result(given: Shard, *verdicts: Verdict, trouble: str | None = None) -> ShardResult:
    """The result of a shard whose first tests ended like this; the others did not begin."""
    attempts = tuple(attempt(work, verdict, given.number) for work, verdict in zip(given.works, verdicts, strict=False))
    return ShardResult(shard=given.number, host="h", attempts=attempts, trouble=trouble)
