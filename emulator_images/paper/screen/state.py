"""What changes on a screen while a person uses it."""

from dataclasses import dataclass, field

from emulator_images.paper.screen.description import Action, App, Item, Screen


@dataclass(slots=True)
class Editor:
    """A text field's content with its selection, in code points; `start == end` is a caret."""

    text: str = ""
    start: int = 0
    end: int = 0

    def insert(self, text: str) -> None:
        """Put text in place of the selection."""
        low, high = sorted((self.start, self.end))
        self.text = self.text[:low] + text + self.text[high:]
        self.start = self.end = low + len(text)

    def delete(self, *, forward: bool = False) -> None:
        """Delete the selection, else one code point before (or after) the caret."""
        low, high = sorted((self.start, self.end))
        if low == high:
            low, high = (low, high + 1) if forward else (max(0, low - 1), high)
        self.text = self.text[:low] + self.text[high:]
        self.start = self.end = low

    def select_all(self) -> None:
        """Select everything."""
        self.start, self.end = 0, len(self.text)

    def move(self, to: int, *, extend: bool = False) -> None:
        """Put the caret at a code point, or only the selection's end when `extend`."""
        self.end = min(max(0, to), len(self.text))
        if not extend:
            self.start = self.end

    @property
    def selected(self) -> str:
        """The selected text."""
        low, high = sorted((self.start, self.end))
        return self.text[low:high]


@dataclass(slots=True)
class Dialog:
    """A window above the app: `kind` is app, permission, anr or crash; buttons give what each one does."""

    kind: str
    package: str
    title: str
    message: str
    buttons: tuple[str, ...]
    permission: str = ""


@dataclass(slots=True)
class Activity:
    """One running activity and its widgets' state, by item key."""

    app: App
    screen: Screen
    editors: dict[str, Editor] = field(default_factory=dict)
    checked: dict[str, bool] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    strokes: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    scrolled: int = 0
    focused: str | None = None

    def editor(self, key: str) -> Editor:
        """The content of a field."""
        return self.editors.setdefault(key, Editor())

    def is_checked(self, key: str, item: Item) -> bool:
        """Whether a check box or switch is on."""
        return self.checked.get(key, item.checked)

    @property
    def component(self) -> str:
        """`package/full.activity.Name`, as window titles write it."""
        return f"{self.app.package}/{self.app.full_name(self.screen.activity)}"


@dataclass(frozen=True, slots=True)
class Notification:
    """An entry of the shade."""

    package: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Placed:
    """An item with its number filled in: `key` names it within its screen."""

    key: str
    item: Item
    text: str
    number: int = 1

    @property
    def tap(self) -> tuple[Action, ...]:
        """What a tap does."""
        return self.item.tap


def placed_items(screen: Screen) -> list[Placed]:
    """The items of a screen with repeats written out, each with a key that is stable for the screen."""
    found: list[Placed] = []
    for position, item in enumerate(screen.items):
        name = item.id or f"{item.kind}{position}"
        for number in range(1, item.count + 1):
            key = name.replace("{n}", str(number)) if "{n}" in name or item.count == 1 else f"{name}{number}"
            found.append(Placed(key, item, item.text.replace("{n}", str(number)), number))
    return found
