"""One answer of a tool, read by path; a missing part fails the step with a sentence instead of a KeyError."""

from collections.abc import Mapping
from dataclasses import dataclass

from lomi.demo.record import DemoFailedError, Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`data` is the envelope's data, `text` what a model reads, `pictures` the PNGs that came along."""

    tool: str
    data: Mapping[str, object]
    text: str
    pictures: tuple[bytes, ...]

    def at(self, *path: str) -> object:
        """What stands at a path of `data`, or None."""
        found: object = self.data
        for name in path:
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def word(self, *path: str) -> str:
        """A string of `data`.

        Raises:
            DemoFailedError: there is none.
        """
        found = self.at(*path)
        if not isinstance(found, str):
            raise DemoFailedError(f"{self.tool} answered without {'.'.join(path)}")
        return found

    def rows(self, *path: str) -> list[Mapping[str, object]]:
        """The objects of a list of `data`; empty when there is none."""
        found = self.at(*path)
        return [row for row in found if isinstance(row, Mapping)] if isinstance(found, (list, tuple)) else []

    @property
    def receipt(self) -> Receipt | None:
        """The receipt, where the tool makes one."""
        if self.at("kind") != "operation":
            return None
        return Receipt(
            operation_id=self.word("operationId"), state=self.word("state"), effect_state=self.word("effectState")
        )

    @property
    def observed(self) -> tuple[str, ...]:
        """The lines of the observation."""
        found = self.at("observation", "lines")
        return tuple(str(line) for line in found) if isinstance(found, (list, tuple)) else ()

    @property
    def settled(self) -> bool | None:
        """Whether the target had come to rest; None without an observation."""
        found = self.at("observation", "settled")
        return found if isinstance(found, bool) else None
