"""The quotas of artifacts, counted in memory."""

import random

import msgspec

from lomi.contract.limits import DESKTOP
from lomi.store.quota import Holding, Quota, QuotaFull


def holding(number: int, size: int, session: str, expires: int = 100) -> Holding:
    """A ready image."""
    return Holding(
        id=str(number),
        artifact_class="image",
        session_id=session,
        project_id="p",
        byte_length=size,
        expires_s=expires,
        reserved=False,
    )


def test_running_sums_agree_with_a_count_of_everything() -> None:
    """A long random life of the quotas: no bound is ever passed, and only expired or releasable images ever leave."""
    chance = random.Random(3)
    limits = msgspec.structs.replace(
        DESKTOP, artifacts=20, image_bytes=5000, image_owner_bytes=2500, release_unpinned_images=True
    )
    quota = Quota(limits)
    held: dict[str, Holding] = {}
    for number in range(3000):
        new = holding(number, chance.randrange(1, 900), chance.choice("abc"), expires=number + chance.randrange(5, 60))
        try:
            leaving = quota.make_room(new, number)
        except QuotaFull:
            continue
        for gone in leaving:
            assert not held[gone.id].pins
            quota.remove(held.pop(gone.id))
        quota.add(new)
        held[new.id] = new
        for one in held.values():
            one.pins = int(chance.random() < 0.1)
        assert quota.used("count") == len(held) <= 20
        assert quota.used("image") == sum(one.byte_length for one in held.values()) <= 5000
        for session in "abc":
            assert sum(one.byte_length for one in held.values() if one.session_id == session) <= 2500
