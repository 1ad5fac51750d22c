"""The ports of our own processes (phones, adb), which no page may reach even when its grant names them."""

from collections.abc import Callable

Changed = Callable[[frozenset[int]], None]


class OwnPorts:
    """Who listens where, as it changes. Adapters that own listeners add them; whoever guards a way out is told."""

    def __init__(self) -> None:
        self._by_owner: dict[str, frozenset[int]] = {}
        self._told: list[Changed] = []

    @property
    def all(self) -> frozenset[int]:
        """Every port of ours."""
        return frozenset().union(*self._by_owner.values())

    def hold(self, owner: str, ports: frozenset[int]) -> None:
        """Note the ports of one owner; an empty set forgets it."""
        if ports:
            self._by_owner[owner] = ports
        else:
            self._by_owner.pop(owner, None)
        for told in self._told:
            told(self.all)

    def tell(self, changed: Changed) -> None:
        """Call `changed` with all ports after every change."""
        self._told.append(changed)
