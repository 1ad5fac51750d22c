"""What a model was asked and answered, kept as JSON for whoever wonders why a task failed."""

import json
from collections.abc import Sequence
from pathlib import Path

from agent_gate.drive import Course
from agent_gate.endpoint import without_key
from agent_gate.talk import Entry, ToolResult, Turn


def write_transcript(path: Path, title: str, course: Course, reasons: Sequence[str], key: str) -> None:
    """Write it; the key stands nowhere in it, and of pictures only their size."""
    whole = {
        "title": title,
        "passed": not reasons,
        "reasons": reasons,
        "calls": course.calls,
        "inputTokens": course.input_tokens,
        "outputTokens": course.output_tokens,
        "conversation": [_entry(entry) for entry in course.conversation],
    }
    text = json.dumps(_redacted(whole, key), ensure_ascii=False, indent=1)
    path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")


def _redacted(value: object, key: str) -> object:
    if isinstance(value, str):
        return without_key(value, key)
    if isinstance(value, dict):
        return {without_key(str(name), key): _redacted(one, key) for name, one in value.items()}
    return [_redacted(one, key) for one in value] if isinstance(value, (list, tuple)) else value


def _entry(entry: Entry) -> object:
    if isinstance(entry, str):
        return {"user": entry}
    if isinstance(entry, Turn):
        calls = [{"id": call.call_id, "tool": call.name, "arguments": call.arguments} for call in entry.calls]
        return {
            "model": entry.text,
            "calls": calls,
            "stopped": entry.stopped,
            "tokens": [entry.input_tokens, entry.output_tokens],
        }
    return {"results": [_result(result) for result in entry]}


def _result(result: ToolResult) -> object:
    pictures = [f"{picture.media_type}, {len(picture.base64) * 3 // 4} bytes" for picture in result.pictures]
    return {"id": result.call_id, "text": result.text, "isError": result.is_error, "pictures": pictures}
