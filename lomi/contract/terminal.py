"""Terminal tools: create, read, run, input, interrupt."""

from typing import Annotated, Literal

from lomi.contract.bounds import LINE, NO_NUL, Decimal, Id, OutOfBounds, RelativeDirectory, Sequence, number, says, text
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.model import Data, Model, PanelInput, PanelKeyed, Result, RevisedInput, WaitMs

Prompt = Literal["unknown", "ready", "editing", "running"]


class TerminalCreateInput(RevisedInput, frozen=True, kw_only=True):
    """The folder to start in (empty: the project's root), and the panel's title.

    `profileId` must be the approved one.
    """

    cwd_relative: RelativeDirectory
    profile_id: Id | None = None
    title: Annotated[str, text(256, shortest=1)]


class TerminalCreated(Result, frozen=True, kw_only=True, tag_field="kind", tag="terminal"):
    """A new terminal. `ready` says that its prompt was observed; `leaseId` is filled in when the receipt is read."""

    workspace_id: str
    panel_id: str
    terminal_session_id: str
    lease_id: str | None
    ready: bool


class TerminalReadInput(PanelInput, frozen=True, kw_only=True):
    """`command` needs `operationId`; `minimumParsedSequence` is for `screen` only. Cursors belong to their mode."""

    terminal_session_id: Id
    mode: Literal["output", "command", "screen", "raw"] = "output"
    cursor: Decimal | None = None
    max_bytes: Annotated[int, number(1, 65_536)] = 16_384
    operation_id: Id | None = None
    minimum_parsed_sequence: (
        Annotated[str, text(20, pattern="[0-9]+", code=ErrorCode.REVISION_CONFLICT, shown=False)] | None
    ) = None


class CommandObservation(Model, frozen=True, kw_only=True):
    """What the shell's marks said of one command. Cursors are byte positions of the text ring."""

    operation_id: str
    started_observed: bool
    completed: bool
    exit_code: int | None
    source: Literal["shell_integration", "unknown"]
    start_cursor: str
    end_cursor: str | None


class TerminalOutput(Data, frozen=True, kw_only=True, tag_field="kind", tag="terminal_output"):
    """Text output with control sequences removed; `gap` says that bytes before `availableFrom` are gone."""

    mode: Literal["output", "command"]
    workspace_id: str
    panel_id: str
    terminal_session_id: str
    text: str
    next_cursor: str
    available_from: str
    gap: bool
    prompt: Prompt
    lease_id: str | None
    command: CommandObservation | None
    exited: bool
    shell_exit_code: int | None
    next_input_sequence: str
    stream_sequence: str
    parsed_sequence: str


class TerminalRaw(Data, frozen=True, kw_only=True, tag_field="kind", tag="terminal_raw"):
    """Raw bytes as they came from the terminal."""

    workspace_id: str
    panel_id: str
    terminal_session_id: str
    base64: str
    next_cursor: str
    available_from: str
    gap: bool
    stream_sequence: str


class TerminalScreen(Data, frozen=True, kw_only=True, tag_field="kind", tag="terminal_screen"):
    """The rendered screen."""

    workspace_id: str
    panel_id: str
    terminal_session_id: str
    columns: int
    rows: int
    cursor_column: int
    cursor_row: int
    cursor_visible: bool
    viewport_offset: int
    buffer: Literal["normal", "alternate"]
    text: str
    truncated: bool
    parsed_sequence: str
    stream_sequence: str
    parser_pending: bool


class TerminalRunInput(PanelKeyed, frozen=True, kw_only=True):
    """One line to run at an idle prompt."""

    terminal_session_id: Id
    lease_id: Id
    command: Annotated[str, text(most_bytes=16_384, shortest=1, pattern=LINE)]


class TerminalCommand(Result, frozen=True, kw_only=True, tag_field="kind", tag="terminal_command"):
    """What became of the command."""

    workspace_id: str
    panel_id: str
    terminal_session_id: str
    observation: CommandObservation


class TypeText(Model, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Text as it would be pasted."""

    text: Annotated[str, text(most_bytes=65_536, shortest=1, pattern=NO_NUL)]


class TypeKey(Model, frozen=True, kw_only=True, tag_field="type", tag="key"):
    """One key."""

    key: Literal["enter", "tab", "escape", "backspace", "ctrl_c", "ctrl_d"]


class TerminalInputInput(PanelInput, frozen=True, kw_only=True):
    """One ordered piece of input."""

    terminal_session_id: Id
    lease_id: Id
    input_sequence: Annotated[Sequence, says("last + 1, from 1")]
    input: TypeText | TypeKey
    wait_ms: WaitMs = 2000


class TerminalInputAck(Data, frozen=True, kw_only=True, tag_field="kind", tag="terminal_input_ack"):
    """Whether the bytes were written."""

    workspace_id: str
    panel_id: str
    terminal_session_id: str
    input_sequence: str
    dispatch: Literal["pending", "dispatched", "outcome_unknown"]


class TerminalInterruptInput(PanelKeyed, frozen=True, kw_only=True):
    """The run to interrupt, by its operation."""

    terminal_session_id: Id
    lease_id: Id
    operation_id: Id


class TerminalInterrupt(Result, frozen=True, kw_only=True, tag_field="kind", tag="terminal_interrupt"):
    """A Ctrl+C that was sent; no proof that the command ended."""

    workspace_id: str
    panel_id: str
    terminal_session_id: str
    target_operation_id: str
    dispatched: bool


def _read_rule(given: TerminalReadInput) -> None:
    if given.mode == "command" and given.operation_id is None:
        raise OutOfBounds("/operationId", "field_needed")
    if given.mode in ("raw", "screen") and given.operation_id is not None:
        raise OutOfBounds("/operationId", "variant_unclear")
    if given.mode != "screen" and given.minimum_parsed_sequence is not None:
        raise OutOfBounds("/minimumParsedSequence", "variant_unclear", code=ErrorCode.REVISION_CONFLICT)


TOOLS = (
    define(
        name="lomi_terminal_create",
        family="terminal",
        purpose="Create a terminal with the approved shell profile; returns its lease.",
        input=TerminalCreateInput,
        results=(TerminalCreated,),
        scopes=("panel.create", "terminal.execute"),
        mutation=True,
        destructive=True,
        open_world=True,
        queue="none",
        notes=("Runs with the user's own rights; the folder is not a sandbox.",),
    ),
    define(
        name="lomi_terminal_read",
        family="terminal",
        purpose="Read a terminal: output, one command's output, the rendered screen, or raw bytes.",
        input=TerminalReadInput,
        results=(TerminalOutput, TerminalRaw, TerminalScreen),
        rule=_read_rule,
        scopes=("terminal.read",),
        deadline_s=2.0,
        queue="none",
        notes=("Only terminals that this session created or claimed.", "Text ends at a UTF-8 boundary."),
    ),
    define(
        name="lomi_terminal_run",
        family="terminal",
        purpose="Run one line at an idle prompt and follow it as an operation with its exit code.",
        input=TerminalRunInput,
        results=(TerminalCommand,),
        scopes=("terminal.execute",),
        mutation=True,
        needs_lease=True,
        destructive=True,
        open_world=True,
        deadline_s=86_400.0,
        notes=(
            "Exit 0 is succeeded/complete, another one failed/complete; a lost mark, shell or lease outcome_unknown.",
            "At most 32 run at once; the prompt must be ready within 30 s.",
        ),
    ),
    define(
        name="lomi_terminal_input",
        family="terminal",
        purpose="Type text or one key into the leased terminal.",
        input=TerminalInputInput,
        results=(TerminalInputAck,),
        scopes=("terminal.execute",),
        mutation=True,
        needs_lease=True,
        destructive=True,
        open_world=True,
        deadline_s=5.0,
        secret_fields=frozenset({"text"}),
        notes=(
            "No receipt: lease and inputSequence identify a retry, 64 answers are kept.",
            "An older one is CURSOR_EXPIRED.",
        ),
    ),
    define(
        name="lomi_terminal_interrupt",
        family="terminal",
        purpose="Send one Ctrl+C to a running command.",
        input=TerminalInterruptInput,
        results=(TerminalInterrupt,),
        scopes=("terminal.execute",),
        mutation=True,
        needs_lease=True,
        destructive=True,
        open_world=True,
        notes=("Proves dispatch only; watch the run itself.",),
    ),
)

_C = ErrorCode
REASONS = (
    Reason("no_profile", _C.HOST_UNQUALIFIED, "No shell profile is approved; ask the owner to add one to the grant."),
    Reason("profile_not_granted", _C.SCOPE_DENIED, "Leave profileId out, or give the approved one."),
    Reason("shell_unsupported", _C.HOST_UNQUALIFIED, "This shell can't be integrated; use bash or zsh."),
    Reason("no_such_folder", _C.TARGET_NOT_FOUND, "Give a folder that exists in the project."),
    Reason(
        "prompt_unknown", _C.PROMPT_STATE_UNKNOWN, "Send `enter` with lomi_terminal_input, then read until it is ready."
    ),
    Reason("prompt_busy", _C.TARGET_BUSY, "A command runs; wait for it or interrupt it."),
    Reason("prompt_editing", _C.TARGET_BUSY, "Something is typed at the prompt; finish it or send ctrl_c."),
    Reason("terminal_exited", _C.STALE_GENERATION, "The shell has ended; create another terminal."),
    Reason("not_agent_owned", _C.PROTECTED_ORIGIN_TERMINAL, "Claim that terminal first with lomi_panel_control."),
    Reason("hosts_the_agent", _C.PROTECTED_ORIGIN_TERMINAL, "That terminal hosts you; create another one."),
    Reason("mark_lost", _C.OUTCOME_UNKNOWN, "The end of the command was not observed; read the output."),
    Reason("no_such_run", _C.TARGET_NOT_FOUND, "Give the operationId of a run in this terminal that has not ended."),
    Reason(
        "answer_dropped",
        _C.CURSOR_EXPIRED,
        "That input is too old to be answered; read, then go on with the next sequence.",
    ),
    Reason("screen_late", _C.UI_NOT_READY, "The screen did not catch up in time; read it again."),
)
