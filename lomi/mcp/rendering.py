"""The large parts of an answer as JSON bytes: tools with their schemas, content blocks, structured content."""

import base64
import hashlib

import msgspec

from lomi.core.backend import ListedTool, ToolList, ToolReply
from lomi.core.port import Picture

_KEPT_LISTS = 16
_rendered: dict[str, msgspec.Raw] = {}


def list_parts(listed: ToolList) -> dict[str, msgspec.Raw]:
    """The `tools` member; rendered once per content, the last few selections are kept."""
    rendered = _rendered.get(listed.digest)
    if rendered is None:
        rendered = msgspec.Raw(msgspec.json.encode([_tool(tool) for tool in listed.tools]))
        while len(_rendered) >= _KEPT_LISTS:
            del _rendered[next(iter(_rendered))]
        _rendered[listed.digest] = rendered
    return {"tools": rendered}


def call_parts(reply: ToolReply) -> dict[str, msgspec.Raw]:
    """The `content` (short text, then images, other bytes as resources) and `structuredContent` members."""
    blocks = [msgspec.json.encode({"type": "text", "text": _encodable(reply.text)})]
    blocks += [_block(picture) for picture in reply.pictures]
    content = b"".join((b"[", b",".join(blocks), b"]"))
    return {"content": msgspec.Raw(content), "structuredContent": msgspec.Raw(_one_line(reply.structured))}


def _block(picture: Picture) -> bytes:
    """An image as one; other bytes as a resource that is named by their hash."""
    content = base64.b64encode(picture.content)
    if picture.media_type.startswith("image/"):
        head = msgspec.json.encode({"type": "image", "mimeType": picture.media_type})[:-1]
        return b"".join((head, b',"data":"', content, b'"}'))
    name = f"urn:sha256:{hashlib.sha256(picture.content).hexdigest()}"
    head = msgspec.json.encode({"uri": name, "mimeType": picture.media_type})[:-1]
    return b"".join((b'{"type":"resource","resource":', head, b',"blob":"', content, b'"}}'))


def _tool(tool: ListedTool) -> dict[str, object]:
    shown: dict[str, object] = {"name": tool.name}
    if tool.title is not None:
        shown["title"] = tool.title
    return shown | {
        "description": tool.description,
        "inputSchema": msgspec.Raw(_one_line(tool.input_schema)),
        "outputSchema": msgspec.Raw(_one_line(tool.output_schema)),
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": tool.open_world,
        },
    }


def _one_line(text: bytes) -> bytes:
    """JSON text without line ends; between its tokens they are only space, within strings they can't stand."""
    if b"\n" in text or b"\r" in text:
        return text.replace(b"\n", b" ").replace(b"\r", b" ")
    return text


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced; JSON in UTF-8 can't carry them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text
