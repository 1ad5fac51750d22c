"""Installed packages and the rules by which the package manager takes or refuses one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from emulator_images.paper.screen.description import App, Item, Screen


@dataclass(slots=True)
class Installed:
    """One installed package; `size` in bytes, times in phone seconds, `signature` a hex digest of the certificate."""

    app: App
    path: str
    uid: int
    min_sdk: int = 24
    target_sdk: int = 36
    signature: str = "lomi"
    size: int = 0
    installed_at: float = 0.0
    updated_at: float = 0.0
    third_party: bool = False
    debuggable: bool = False
    sideloaded: bool = False
    activities: tuple[str, ...] = ()
    permissions: dict[str, bool] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The package's name."""
        return self.app.package

    @property
    def launcher(self) -> str | None:
        """The launcher activity's full name."""
        return self.app.full_name(self.app.screens[0].activity) if self.app.launchable else None


class Packages:
    """Packages by name."""

    def __init__(self, apps: tuple[App, ...], now: float, api: int) -> None:
        self._packages: dict[str, Installed] = {}
        self._next_uid = 10050
        for app in apps:
            self.add_app(app, now, api)

    def add_app(self, app: App, now: float, api: int) -> Installed:
        """Install an app that is described as data."""
        folder = f"/system/app/{app.label.replace(' ', '')}" if app.system else f"/data/app/~~paper==/{app.package}-1=="
        package = Installed(
            app,
            f"{folder}/{app.label.replace(' ', '')}.apk" if app.system else f"{folder}/base.apk",
            self._next_uid,
            target_sdk=api,
            installed_at=now,
            updated_at=now,
            third_party=not app.system,
            activities=tuple(app.full_name(screen.activity) for screen in app.screens),
            permissions=dict.fromkeys(app.permissions, False),
        )
        self.put(package)
        return package

    def put(self, package: Installed) -> None:
        """Add or replace a package."""
        self._packages[package.name] = package
        self._next_uid += 1

    def take_uid(self) -> int:
        """A user id for a new package."""
        return self._next_uid

    def get(self, name: str) -> Installed | None:
        """The package of a name."""
        return self._packages.get(name)

    def remove(self, name: str) -> Installed | None:
        """Take a package out."""
        return self._packages.pop(name, None)

    def all(self) -> list[Installed]:
        """Every package, by name."""
        return [self._packages[name] for name in sorted(self._packages)]


def stand_in_app(
    package: str, label: str, activity: str | None, version: tuple[int, str], texts: Mapping[str, str]
) -> App:
    """The app that stands for an installed APK whose code cannot run here: one screen that says so."""
    items = [
        Item("title", id="title", text=label),
        Item("text", id="note", text="Simulated: this app's code is not run."),
    ]
    items += [Item("text", id=key, text=value) for key, value in texts.items()]
    screen = Screen(activity or ".None", title=label, items=tuple(items))
    return App(
        package, label, (screen,), version_code=version[0], version_name=version[1], launchable=activity is not None
    )
