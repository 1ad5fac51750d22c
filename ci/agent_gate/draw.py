"""The words of one run: what its pages, apps and checks hold is drawn from a seed, so that nobody knows it before."""

import random
from collections.abc import Mapping
from pathlib import Path

from agent_gate.task import AnswerCheck, Task, filled, folder

YEARS = (2023, 2024, 2025)
_FRUITS = ("APRICOT", "CHERRY", "FIG", "GUAVA", "LEMON", "MANGO", "OLIVE", "PAPAYA", "PEACH", "QUINCE")
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


def drawn(seed: str, task: str) -> dict[str, str]:
    """The words of one task: the same for the same seed, and no two of a kind alike."""
    chance = random.Random(f"{seed}/{task}")
    # No price ends in a nought, so that it can be written in one way only.
    prices = [10 * cents + chance.randint(1, 9) for cents in chance.sample(range(100, 1000), 3)]
    shelf = f"{chance.choice(_LETTERS)}{chance.randint(10, 99)}"
    fruits = chance.sample(_FRUITS, 2)
    words = {f"{mug}_price": f"{cents / 100:.2f}" for mug, cents in zip(("red", "blue", "green"), prices, strict=True)}
    words |= {
        "error_code": f"E-{chance.randint(1000, 9999)}",
        "day_code": f"{fruits[0]}-{chance.randint(1000, 9999)}",
        "old_code": f"{fruits[1]}-{chance.randint(1000, 9999)}",
        "crash_reason": f"no shelf {shelf} for parcel {chance.randint(1000, 9999)}",
        "sync_ticket": f"{chance.randint(2, 9)}{chance.choice(_LETTERS)}-{chance.randint(1000, 9999)}",
    }
    totals = chance.sample(range(1000, 10_000), len(YEARS))
    return words | {f"total_{year}": str(total) for year, total in zip(YEARS, totals, strict=True)}


def answer_for(task: Task, words: Mapping[str, str]) -> str:
    """The answer that a task asks for under these words; `done` where it asks for none."""
    wanted = [check.one_of[0] for check in task.check if isinstance(check, AnswerCheck)]
    return filled(wanted[0], words) if wanted else "done"


def write_apps(words: Mapping[str, str], into: Path) -> None:
    """The gate's own apps with these words, in a new folder."""
    into.mkdir()
    for path in folder("apps").glob("*.toml"):
        (into / path.name).write_text(filled(path.read_text(encoding="utf-8"), words), encoding="utf-8")
