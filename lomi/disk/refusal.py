"""Why a name was not opened: one exception, one closed list of reasons."""

import enum


class Reason(enum.StrEnum):
    """Closed list of refusals; the value is what `reason` says on the wire."""

    NOT_ABSOLUTE = "path_not_absolute"
    NOT_RELATIVE = "path_not_relative"
    NAME_INVALID = "name_invalid"
    NAME_TOO_LONG = "name_too_long"
    RESERVED_NAME = "secret_name"
    PROTECTED = "protected_place"
    NOT_FOUND = "not_found"
    SYMLINK = "symlink"
    HARD_LINK = "hard_link"
    NOT_REGULAR = "not_a_regular_file"
    NOT_DIRECTORY = "not_a_directory"
    FOREIGN_OWNER = "foreign_owner"
    MODE = "mode_not_private"
    TOO_LARGE = "too_large"
    EXISTS = "already_exists"
    CHANGED = "changed_during_call"
    LENGTH = "length_mismatch"
    HASH = "sha256_mismatch"
    DENIED = "permission_denied"


_TEXT = {
    Reason.NOT_ABSOLUTE: "the path is not absolute",
    Reason.NOT_RELATIVE: "the path is not relative to its root",
    Reason.NAME_INVALID: "the path holds a name that is never opened",
    Reason.NAME_TOO_LONG: "the path or one of its names is too long",
    Reason.RESERVED_NAME: "the path holds a name reserved for secrets",
    Reason.PROTECTED: "the path leads into a protected place",
    Reason.NOT_FOUND: "there is nothing of that name",
    Reason.SYMLINK: "the path holds a symbolic link",
    Reason.HARD_LINK: "the file has more than one name",
    Reason.NOT_REGULAR: "the name is not a regular file",
    Reason.NOT_DIRECTORY: "the name is not a directory",
    Reason.FOREIGN_OWNER: "the name belongs to another user",
    Reason.MODE: "the mode lets others in",
    Reason.TOO_LARGE: "there are more bytes than the limit",
    Reason.EXISTS: "the name is already taken",
    Reason.CHANGED: "the file changed during the call",
    Reason.LENGTH: "the length differs from the expected one",
    Reason.HASH: "the content differs from the expected hash",
    Reason.DENIED: "the system denies access",
}


class DiskRefusedError(Exception):
    """A name was refused; `reason` says why. The text never holds a path, so it may go into replies and logs."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(_TEXT[reason])
        self.reason = reason
