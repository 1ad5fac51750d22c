"""Settings tools: read a section, change one preference, show a page."""

from typing import Annotated, Literal

from lomi.contract.bounds import NO_CONTROL, Hex64, OutOfBounds, number, says, text
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.model import Data, Model, Result, RevisedInput, WorkspaceInput

Section = Literal["editor", "terminal", "keybinds", "themes"]
Page = Literal["keybinds", "themes", "plugins", "terminal", "about", "chat-ai", "android", "agent-control"]
ActionName = Annotated[str, text(160, shortest=1, pattern=NO_CONTROL, shown=False)]
TerminalField = Annotated[
    str,
    text(
        128,
        pattern=r"appearance(?:\.colors)?\.[A-Za-z]+|behavior\.[A-Za-z]+|windowsShell|agentNotifications|alwaysShowTitles",
        shown=False,
    ),
    says("appearance.*, appearance.colors.*, behavior.*, windowsShell, agentNotifications or alwaysShowTitles"),
]
Preference = bool | float | str


class SettingsReadInput(WorkspaceInput, frozen=True, kw_only=True):
    """A section; only `keybinds` has more than one page, which need the section's revision."""

    section: Section
    offset: Annotated[int, number(0, 4096)] = 0
    limit: Annotated[int, number(1, 200)] = 100
    expected_revision: Hex64 | None = None


class EditorValues(Model, frozen=True, kw_only=True, tag_field="section", tag="editor"):
    """Editor preferences."""

    tab_size: int
    insert_spaces: bool


class TerminalValues(Model, frozen=True, kw_only=True, tag_field="section", tag="terminal"):
    """Terminal preferences; `appearanceOverrides` holds what differs from the theme."""

    appearance_overrides: dict[str, Preference]
    behavior: dict[str, Preference]
    windows_shell: Literal["powershell", "cmd"]
    agent_notifications: bool
    always_show_titles: bool


class Keybinding(Model, frozen=True, kw_only=True):
    """One action's shortcut."""

    action: str
    shortcut: str | None
    default_shortcut: str | None


class KeybindValues(Model, frozen=True, kw_only=True, tag_field="section", tag="keybinds"):
    """A page of shortcuts."""

    focus_follows_pointer: bool
    items: tuple[Keybinding, ...]
    total: int
    offset: int
    next_offset: int | None


class ThemeValues(Model, frozen=True, kw_only=True, tag_field="section", tag="themes"):
    """Themes in use."""

    active: str | None
    file_icons: str | None
    product_icons: str | None
    appearance: Literal["system", "light", "dark"]
    effective_appearance: Literal["light", "dark"]
    safe_mode: bool


class SettingsSnapshot(Data, frozen=True, kw_only=True, tag_field="kind", tag="settings_snapshot"):
    """One section at one revision."""

    workspace_id: str
    section: Section
    revision: str
    readiness: Literal["ready", "recovery_required"]
    values: EditorValues | TerminalValues | KeybindValues | ThemeValues


class EditorTabSize(Model, frozen=True, kw_only=True, tag_field="type", tag="editor_tab_size"):
    """Columns of a tab."""

    value: Annotated[int, number(1, 16)]


class EditorInsertSpaces(Model, frozen=True, kw_only=True, tag_field="type", tag="editor_insert_spaces"):
    """Spaces instead of tabs."""

    value: bool


class TerminalFieldPatch(Model, frozen=True, kw_only=True, tag_field="type", tag="terminal_field"):
    """One terminal preference; null takes an appearance override away."""

    field: TerminalField
    value: bool | Annotated[float, number(-1_000_000, 1_000_000)] | Annotated[str, text(500, pattern=NO_CONTROL)] | None


class KeybindingSet(Model, frozen=True, kw_only=True, tag_field="type", tag="keybinding_set"):
    """A shortcut; null disables it."""

    action: ActionName
    shortcut: Annotated[str, text(64, shortest=1, pattern=NO_CONTROL)] | None


class KeybindingReset(Model, frozen=True, kw_only=True, tag_field="type", tag="keybinding_reset"):
    """Back to the default shortcut."""

    action: ActionName


class FocusFollowsPointer(Model, frozen=True, kw_only=True, tag_field="type", tag="keybinds_focus_follows_pointer"):
    """Focus without a click."""

    value: bool


class ThemeBuiltin(Model, frozen=True, kw_only=True, tag_field="type", tag="theme_builtin"):
    """A built-in theme."""

    value: Literal["lomi", "deepmono"]


class ThemeAppearance(Model, frozen=True, kw_only=True, tag_field="type", tag="theme_appearance"):
    """Light or dark."""

    value: Literal["system", "light", "dark"]


Patch = (
    EditorTabSize
    | EditorInsertSpaces
    | TerminalFieldPatch
    | KeybindingSet
    | KeybindingReset
    | FocusFollowsPointer
    | ThemeBuiltin
    | ThemeAppearance
)


class SettingsUpdateInput(RevisedInput, frozen=True, kw_only=True):
    """One change at one revision of its section."""

    patch: Patch
    expected_settings_revision: Hex64


class SettingsUpdated(Result, frozen=True, kw_only=True, tag_field="kind", tag="settings_updated"):
    """What is stored now, and whether it is in effect."""

    workspace_id: str
    section: Section
    previous_stored_revision: str | None
    stored_revision: str
    applied: bool


class SettingsOpenInput(RevisedInput, frozen=True, kw_only=True):
    """The page to show."""

    page: Page


class SettingsOpened(Result, frozen=True, kw_only=True, tag_field="kind", tag="settings_opened"):
    """A page that a window was asked to show; no preference changed."""

    workspace_id: str
    page: Page
    requested: bool


def _read_rule(given: SettingsReadInput) -> None:
    if given.offset > 0:
        if given.section != "keybinds":
            raise OutOfBounds("/offset", "variant_unclear")
        if given.expected_revision is None:
            raise OutOfBounds("/expectedRevision", "field_needed")


def _update_rule(given: SettingsUpdateInput) -> None:
    patch = given.patch
    if isinstance(patch, TerminalFieldPatch) and patch.value is None and not patch.field.startswith("appearance."):
        raise OutOfBounds("/patch/value", "null_not_allowed")


TOOLS = (
    define(
        name="lomi_settings_read",
        family="settings",
        purpose="Read one section of the preferences with its revision.",
        input=SettingsReadInput,
        results=(SettingsSnapshot,),
        scopes=("settings.read",),
        rule=_read_rule,
        deadline_s=2.0,
        queue="none",
        notes=("Provider keys, plugins' data and grants can't be read.",),
    ),
    define(
        name="lomi_settings_update",
        family="settings",
        purpose="Change one preference, after a decision on the values before and after.",
        input=SettingsUpdateInput,
        results=(SettingsUpdated,),
        scopes=("settings.read", "settings.write"),
        rule=_update_rule,
        mutation=True,
        scope_before_sight=True,
        deadline_s=120.0,
        decision_s=120.0,
        queue="none",
        notes=("theme_appearance only while a built-in theme is active.",),
    ),
    define(
        name="lomi_settings_open",
        family="settings",
        purpose="Ask a window to show one settings page; changes nothing.",
        input=SettingsOpenInput,
        results=(SettingsOpened,),
        scopes=("settings.open",),
        mutation=True,
        queue="none",
    ),
)

_C = ErrorCode
REASONS = (
    Reason("settings_changed", _C.REVISION_CONFLICT, "The section changed; read it again."),
    Reason(
        "settings_recovery", _C.UNSUPPORTED_CAPABILITY, "The stored preferences are damaged; a person must repair them."
    ),
    Reason("theme_safe_mode", _C.UNSUPPORTED_CAPABILITY, "Themes are in safe mode; a person must leave it first."),
    Reason("theme_not_builtin", _C.UNSUPPORTED_CAPABILITY, "Choose a built-in theme first."),
    Reason("preference_refused", _C.RESOURCE_EXHAUSTED, "That preference does not take such a value."),
    Reason("preference_unknown", _C.UNSUPPORTED_CAPABILITY, "There is no such preference."),
    Reason("null_not_allowed", _C.RESOURCE_EXHAUSTED, "Null only takes an appearance override away."),
)
