"""The one lease rule against a model: whatever order things happen in, at most one holder, and every end is told."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from lomi.core.generations import Generations
from lomi.core.ids import GenerationId, LeaseId, SessionId
from lomi.core.leases import Leases
from lomi.core.port import Lease, ResourceKey
from lomi.core.refusal import Refusal

PHONE = ResourceKey("android", "phone")
ACTIONS = ("claim", "release", "leave", "take", "give_back", "begin", "end")
STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(("a", "b", "c"))), max_size=60)


class Model:
    """The real rules beside what must hold of them."""

    def __init__(self) -> None:
        ids = itertools.count(1)
        self.told: list[Lease] = []
        self.leases = Leases(new_id=lambda: LeaseId(f"l{next(ids)}"), ended=self.told.append)
        self.generations, self.lives = Generations(), itertools.count(1)
        self.holder: str | None = None
        self.lease: LeaseId | None = None
        self.taken = False

    @property
    def current(self) -> GenerationId | None:
        return self.generations.current(PHONE)

    def begin(self, _: str) -> None:
        self.end(_)
        self.generations.begin(PHONE, GenerationId(f"g{next(self.lives)}"))

    def end(self, _: str) -> None:
        if self.current is not None:
            ending = self.current
            self.generations.end(ending)
            self.leases.end(ending)
            self.holder = None

    def claim(self, session: str) -> None:
        if self.current is None:
            return
        try:
            lease = self.leases.grant(self.current, SessionId(session), PHONE, 0.0)
        except Refusal as refusal:
            said = refusal.reason
        else:
            said = None
            assert lease.id not in {one.id for one in self.told}
            assert self.holder is None or self.lease == lease.id
        foreign = self.holder not in (None, session)
        assert said == ("taken_over" if self.taken else "already_leased" if foreign else None)
        if said is None:
            self.holder, self.lease = session, lease.id

    def release(self, session: str) -> None:
        if self.current is not None and self.holder == session:
            self.leases.end(self.current)
            self.holder = None

    def leave(self, session: str) -> None:
        self.leases.end_of_session(SessionId(session))
        self.holder = None if self.holder == session else self.holder

    def take(self, _: str) -> None:
        self.leases.take_over(PHONE, self.current)
        self.taken, self.holder = True, None

    def give_back(self, _: str) -> None:
        self.leases.give_back(PHONE)
        self.taken = False


@given(STEPS)
@settings(max_examples=300, deadline=None)
def test_leases_follow_their_model(steps: list[tuple[str, str]]) -> None:
    """Claims, releases, departures, takeovers and new lives in any order: never two holders, never a stale one."""
    model = Model()
    for action, session in steps:
        holder, told = model.holder, len(model.told)
        getattr(model, action)(session)
        held = None if model.current is None else model.leases.holder(model.current)
        assert (held.session_id if held else None) == model.holder
        assert len(list(model.leases)) == (0 if model.holder is None else 1)
        ended = holder is not None and model.holder != holder
        assert [one.session_id for one in model.told[told:]] == ([holder] if ended else [])
