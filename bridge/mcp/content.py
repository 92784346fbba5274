"""Tool results as chat messages carry them: MCP content blocks in, a string or content parts out.

Rule: what comes out is never null and never an empty list, and base64 never travels as text.
Called by the embedded agent, outside of any retry: a result is converted once it is an answer.
"""

from collections.abc import Sequence
from typing import Any

from bridge.wire import codec

_NO_TYPE = "application/octet-stream"


def chat_content(
    blocks: Sequence[Any] | None, structured: Any = None
) -> str | list[dict[str, Any]]:
    """The content of a chat completion's tool message, for the blocks of a `CallToolResult`.

    All text (or nothing at all): their texts joined by newlines. Otherwise a list of parts, in
    order: `{"type":"text"}` and, for images, `{"type":"image_url"}` with a data URL.
    `structured` (the result's `structuredContent`) speaks only where the blocks say nothing.
    Blocks that are not what MCP says (no dict, no text, no data) become text; nothing raises.
    """
    blocks = blocks or ()
    if all(_is_text(block) for block in blocks):
        text = "\n".join(block["text"] for block in blocks)
        return text if text or structured is None else _json(structured)
    return [_part(block) for block in blocks]


def _is_text(block: Any) -> bool:
    fields = codec.mapping(block)
    return (
        fields is not None and fields.get("type") == "text" and isinstance(fields.get("text"), str)
    )


def _part(block: Any) -> dict[str, Any]:
    """One block as one content part."""
    fields = codec.mapping(block)
    if fields is None:
        return _text(block if isinstance(block, str) else _json(block))
    kind = fields.get("type")
    if _is_text(block):
        return _text(fields["text"])
    if kind == "image" and isinstance(fields.get("data"), str):
        return _image(fields, fields["data"])
    if kind == "audio" and isinstance(fields.get("data"), str):
        return _text(_note("audio", fields, fields["data"]))
    if kind == "resource" and (resource := codec.mapping(fields.get("resource"))) is not None:
        return _resource(fields, resource)
    if kind == "resource_link" and isinstance(fields.get("uri"), str):
        return _text(_link(fields))
    return _text(_json(block))


def _resource(block: dict[str, Any], resource: dict[str, Any]) -> dict[str, Any]:
    """An embedded resource: its text, its picture, or a note of what it is."""
    if isinstance(resource.get("text"), str):
        return _text(resource["text"])
    blob = resource.get("blob")
    if not isinstance(blob, str):
        return _text(_json(block))
    if str(resource.get("mimeType", "")).startswith("image/"):
        return _image(resource, blob)
    return _text(_note(f"resource {resource.get('uri', '')}".rstrip(), resource, blob))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(fields: dict[str, Any], data: str) -> dict[str, Any]:
    mime = fields.get("mimeType")
    mime = mime if isinstance(mime, str) and mime else "image/png"
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


def _note(what: str, fields: dict[str, Any], data: str) -> str:
    """A stand-in for bytes no chat message can hold."""
    mime = fields.get("mimeType")
    mime = mime if isinstance(mime, str) and mime else _NO_TYPE
    return f"[{what}: {mime}, {len(data.rstrip('=')) * 3 // 4} bytes]"


def _link(fields: dict[str, Any]) -> str:
    """A resource's address, with the words that come with it."""
    words = [fields.get(key) for key in ("title", "name", "description")]
    said = dict.fromkeys(word for word in words if isinstance(word, str) and word)
    return " - ".join([fields["uri"], *said])


def _json(value: Any) -> str:
    return codec.encode(value).decode(errors="replace")
