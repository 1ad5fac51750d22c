"""Hardware profiles a device can be made from."""

from dataclasses import dataclass

from devices.spec import Display


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of phone; `name` is its name in Google's device list, `min_api` the oldest Android it fits."""

    id: str
    name: str
    maker: str
    display: Display
    min_api: int = 21


PROFILES: tuple[Profile, ...] = (
    Profile("small_phone", "Small Phone", "Generic", Display(720, 1280, 320)),
    Profile("medium_phone", "Medium Phone", "Generic", Display(1080, 2400, 420)),
    Profile("pixel_5", "Pixel 5", "Google", Display(1080, 2340, 440)),
    Profile("pixel_6", "Pixel 6", "Google", Display(1080, 2400, 420)),
    Profile("pixel_7", "Pixel 7", "Google", Display(1080, 2400, 420)),
    Profile("pixel_8", "Pixel 8", "Google", Display(1080, 2400, 420)),
    Profile("pixel_tablet", "Pixel Tablet", "Google", Display(2560, 1600, 320), min_api=33),
)


def profile(identifier: str) -> Profile | None:
    """A profile by its id."""
    return next((one for one in PROFILES if one.id == identifier), None)
