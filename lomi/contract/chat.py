"""Chat tools on explicitly shared conversations: list, read, open, draft, send, stop, export."""

from typing import Annotated, Literal

from lomi.contract.bounds import NO_CONTROL, NO_NUL, Hex64, Id, OutOfBounds, SafeDecimal, number, says, text
from lomi.contract.codes import ErrorCode, Reason
from lomi.contract.definition import define
from lomi.contract.model import Data, KeyedInput, Model, PanelRevised, Result, RevisedInput, WorkspaceInput

ChatId = Annotated[str, text(100, shortest=1, pattern="[A-Za-z0-9_-]+", shown=False)]
ChatOffset = Annotated[int, number(0, 4_194_304)]
ChatChars = Annotated[int, number(2, 8192)]
ExportFormat = Literal["markdown", "json"]
RequestStatus = Literal["active", "completed", "cancelled", "failed", "interrupted"]
DraftText = Annotated[str, text(most_bytes=32_768, pattern=NO_NUL)]


class ChatListInput(WorkspaceInput, frozen=True, kw_only=True):
    """A page of the list; past the first page its revision is needed."""

    offset: Annotated[int, number(0, 64)] = 0
    limit: Annotated[int, number(1, 64)] = 20
    expected_revision: Hex64 | None = None


class ConversationView(Model, frozen=True, kw_only=True):
    """One shared conversation."""

    conversation_id: str
    title: str
    conversation_revision: str
    latest_message_id: str | None
    updated_at_millis: int


class ChatList(Data, frozen=True, kw_only=True, tag_field="kind", tag="chat_list"):
    """A page of conversations."""

    workspace_id: str
    revision: str
    items: tuple[ConversationView, ...]
    total: int
    offset: int
    next_offset: int | None


class DraftPart(Model, frozen=True, kw_only=True, tag_field="type", tag="draft"):
    """The saved draft."""


class MessagePart(Model, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """One saved message; null is the latest."""

    message_id: ChatId | None = None


ChatPart = DraftPart | MessagePart


class ChatReadInput(WorkspaceInput, frozen=True, kw_only=True):
    """A page of one part; past the first page its revision is needed."""

    conversation_id: ChatId
    part: ChatPart
    start_utf16: ChatOffset = 0
    max_chars: ChatChars = 8192
    expected_revision: Id | None = None
    include_send_target: bool = False


class SendTarget(Model, frozen=True, kw_only=True):
    """What lomi_chat_send would send to."""

    connection_id: str
    model: str
    max_output_tokens: int


class ChatRequest(Model, frozen=True, kw_only=True):
    """One request to a provider."""

    request_id: str
    assistant_id: str
    status: RequestStatus


class ChatRead(Data, frozen=True, kw_only=True, tag_field="kind", tag="chat_read"):
    """A page of saved text; unsaved typing is not seen, attachments are only counted."""

    workspace_id: str
    conversation: ConversationView
    source: Literal["persisted_checkpoint"] = "persisted_checkpoint"
    part: ChatPart
    revision: str
    draft_revision: str | None
    parent_message_id: str | None
    role: Literal["user", "assistant"] | None
    status: str | None
    content: str
    start_utf16: int
    total_utf16: int
    next_utf16: int | None
    attachments_omitted: int
    non_text_parts_omitted: int
    send_target: SendTarget | None
    request: ChatRequest | None


class ExistingChat(Model, frozen=True, kw_only=True, tag_field="type", tag="existing"):
    """A conversation of the grant."""

    conversation_id: ChatId


class NewChat(Model, frozen=True, kw_only=True, tag_field="type", tag="new"):
    """A new conversation, which joins the grant."""


class ChatOpenInput(RevisedInput, frozen=True, kw_only=True):
    """Which conversation."""

    target: ExistingChat | NewChat


class ChatOpened(Result, frozen=True, kw_only=True, tag_field="kind", tag="chat_opened"):
    """A panel with the conversation."""

    workspace_id: str
    panel_id: str
    conversation_id: str
    created: bool


class ConversationRevised(PanelRevised, frozen=True, kw_only=True):
    """A change of one conversation at the revisions of its draft and of itself."""

    conversation_id: ChatId
    expected_draft_revision: SafeDecimal
    expected_conversation_revision: SafeDecimal


class ChatDraftInput(ConversationRevised, frozen=True, kw_only=True):
    """The whole new draft."""

    text: DraftText


class ChatDraftUpdated(Result, frozen=True, kw_only=True, tag_field="kind", tag="chat_draft_updated"):
    """The draft that is saved now."""

    workspace_id: str
    panel_id: str
    conversation_id: str
    draft_revision: str
    conversation_revision: str
    text_sha256: str
    total_utf16: int


class ChatSendInput(ConversationRevised, frozen=True, kw_only=True):
    """Where the saved draft is sent."""

    connection_id: ChatId
    model: Annotated[str, text(200, shortest=1, pattern=NO_CONTROL)]


class ChatSent(Result, frozen=True, kw_only=True, tag_field="kind", tag="chat_sent"):
    """A request that was started; a null `draftRevision` says that ids were only reserved."""

    workspace_id: str
    panel_id: str
    conversation_id: str
    request_id: str
    user_id: str
    assistant_id: str
    connection_id: str
    model: str
    draft_revision: str | None
    rejection: ErrorCode | None


class ChatStopInput(KeyedInput, frozen=True, kw_only=True):
    """The request to stop."""

    conversation_id: ChatId
    request_id: ChatId


class ChatStopped(Result, frozen=True, kw_only=True, tag_field="kind", tag="chat_stopped"):
    """The request as it is now."""

    workspace_id: str
    conversation_id: str
    request: ChatRequest
    already_finished: bool


class ChatExportInput(WorkspaceInput, frozen=True, kw_only=True):
    """A page of the document; past the first page its SHA-256 is needed."""

    conversation_id: ChatId
    format: ExportFormat
    start_utf16: ChatOffset = 0
    max_chars: ChatChars = 8192
    expected_revision: Annotated[Hex64, says("revision of the first page")] | None = None


class ChatExport(Data, frozen=True, kw_only=True, tag_field="kind", tag="chat_export"):
    """A page of the document; `revision` is the SHA-256 of the whole."""

    workspace_id: str
    conversation_id: str
    format: ExportFormat
    revision: str
    total_bytes: int
    message_count: int
    content: str
    start_utf16: int
    total_utf16: int
    next_utf16: int | None
    attachments_omitted: int
    non_text_parts_omitted: int


def _list_rule(given: ChatListInput) -> None:
    if given.offset > 0 and given.expected_revision is None:
        raise OutOfBounds("/expectedRevision", "field_needed")


def _page_rule(given: ChatReadInput | ChatExportInput) -> None:
    if given.start_utf16 > 0 and given.expected_revision is None:
        raise OutOfBounds("/expectedRevision", "field_needed")


def _read_scopes(given: ChatReadInput) -> tuple[str, ...]:
    return ("chat.send",) if given.include_send_target else ()


def _open_scopes(given: ChatOpenInput) -> tuple[str, ...]:
    return ("chat.create",) if isinstance(given.target, NewChat) else ()


TOOLS = (
    define(
        name="lomi_chat_list",
        family="chat",
        purpose="List the shared conversations of the workspace's project.",
        input=ChatListInput,
        results=(ChatList,),
        scopes=("chat.read",),
        rule=_list_rule,
        deadline_s=2.0,
        queue="none",
    ),
    define(
        name="lomi_chat_read",
        family="chat",
        purpose="Read the saved draft or one saved message of a shared conversation.",
        input=ChatReadInput,
        results=(ChatRead,),
        scopes=("chat.read",),
        more_scopes=_read_scopes,
        more_scopes_text=("includeSendTarget: chat.send",),
        rule=_page_rule,
        deadline_s=2.0,
        queue="none",
        notes=("Walk back with parentMessageId.",),
    ),
    define(
        name="lomi_chat_open",
        family="chat",
        purpose="Show a shared conversation, or a new one, in a chat panel.",
        input=ChatOpenInput,
        results=(ChatOpened,),
        scopes=("chat.read", "chat.open", "panel.create", "panel.focus"),
        more_scopes=_open_scopes,
        more_scopes_text=("new: chat.create",),
        mutation=True,
        queue="layout",
    ),
    define(
        name="lomi_chat_draft",
        family="chat",
        purpose="Replace the saved draft of a conversation that is open in a panel.",
        input=ChatDraftInput,
        results=(ChatDraftUpdated,),
        scopes=("chat.read", "chat.draft"),
        mutation=True,
        destructive=True,
        secret_fields=frozenset({"text"}),
        notes=("Typing that a person has not saved is a conflict.",),
    ),
    define(
        name="lomi_chat_send",
        family="chat",
        purpose="Send the saved draft to a provider, after a decision on each send.",
        input=ChatSendInput,
        results=(ChatSent,),
        scopes=("chat.read", "chat.send"),
        mutation=True,
        open_world=True,
        deadline_s=120.0,
        decision_s=120.0,
        notes=("Succeeded means started; read the answer with lomi_chat_read.",),
    ),
    define(
        name="lomi_chat_stop",
        family="chat",
        purpose="Stop one request to a provider.",
        input=ChatStopInput,
        results=(ChatStopped,),
        scopes=("chat.read", "chat.stop"),
        mutation=True,
        destructive=True,
        deadline_s=6.0,
    ),
    define(
        name="lomi_chat_export",
        family="chat",
        purpose="Read a page of a conversation's export document.",
        input=ChatExportInput,
        results=(ChatExport,),
        scopes=("chat.read", "chat.export"),
        rule=_page_rule,
        deadline_s=5.0,
        queue="none",
        notes=("At most 512 messages and 4 MiB; a page never splits a surrogate pair.",),
    ),
)

_C = ErrorCode
REASONS = (
    Reason("list_changed", _C.REVISION_CONFLICT, "The list changed; read it again from offset 0."),
    Reason("text_changed", _C.REVISION_CONFLICT, "The text changed; read it again from the start."),
    Reason("draft_changed", _C.REVISION_CONFLICT, "The draft changed, perhaps by a person; read it again."),
    Reason("unsaved_typing", _C.REVISION_CONFLICT, "A person is typing there; wait until they have saved."),
    Reason("conversation_changed", _C.REVISION_CONFLICT, "The conversation went on; read it again."),
    Reason("conversation_closed", _C.UI_NOT_READY, "Open the conversation in a panel first."),
    Reason("request_active", _C.TARGET_BUSY, "A request runs in this conversation; wait or stop it."),
    Reason("no_such_request", _C.TARGET_NOT_FOUND, "There is no such request in this conversation."),
    Reason("no_such_message", _C.TARGET_NOT_FOUND, "There is no such message in this conversation."),
    Reason("no_such_connection", _C.TARGET_NOT_FOUND, "See sendTarget of lomi_chat_read."),
    Reason("draft_empty", _C.UNSUPPORTED_CAPABILITY, "Save a draft first."),
    Reason("send_over_limit", _C.RESOURCE_EXHAUSTED, "Draft, context or attachments are over their bounds."),
    Reason("export_over_limit", _C.RESOURCE_EXHAUSTED, "The conversation is over 512 messages or 4 MiB."),
)
