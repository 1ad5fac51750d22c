"""A call in a few words, for a reader who runs an eye down the list."""

from lomi.demo.record import CallRecord

_TELLING = ("packageName", "url", "text", "relativePath", "action", "sha256")
_MOST = 90


def _subject(call: CallRecord) -> str:
    """What the call was about, from its arguments."""
    event, condition = call.arguments.get("event"), call.arguments.get("condition")
    if isinstance(event, dict):
        return " ".join(str(event[name]) for name in ("type", "text", "key") if name in event)
    if isinstance(condition, dict):
        return " ".join(str(value) for value in condition.values())
    return next((str(call.arguments[name]) for name in _TELLING if name in call.arguments), "")


def gist(call: CallRecord) -> str:
    """What it was about, and the first thing that was seen afterwards; at most 90 characters each."""
    seen = next(
        (line for line in call.observed if line.startswith(("~", "+", "-", "navigated", "popup", "window"))), ""
    )
    return "  \u2192  ".join(words[:_MOST] for words in (_subject(call), seen) if words)
