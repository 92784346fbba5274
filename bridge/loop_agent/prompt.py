"""What a prompt says to the model: ACP content blocks as chat content.

Rule: every block goes to the model in its place or the prompt is refused by name; nothing is
dropped. Images become data URLs, resources are quoted with their address.
Called by `bridge.loop_agent.sessions`.
"""

from typing import Any

from bridge.loop_agent.failures import invalid_params

Content = str | list[dict[str, Any]]


def chat_content(blocks: list[dict[str, Any]]) -> Content:
    """The content of the user message: plain text if there is one text, else a list of parts.

    Raises RequestFailed (-32602) for a block that has no place in a chat message.
    """
    if not blocks:
        raise invalid_params("prompt is empty: give at least one content block")
    parts = [_part(f"prompt[{index}]", block) for index, block in enumerate(blocks)]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def system_text(blocks: list[dict[str, Any]]) -> str:
    """A system prompt's text; raises RequestFailed for anything but text blocks."""
    texts: list[str] = []
    for index, block in enumerate(blocks):
        if block.get("type") != "text":
            raise invalid_params(f"systemPrompt.content[{index}] is not a text block")
        texts.append(_string(f"systemPrompt.content[{index}]", block, "text"))
    if not texts:
        raise invalid_params("systemPrompt.content is empty")
    return "\n\n".join(texts)


def title_of(blocks: list[dict[str, Any]], limit: int = 80) -> str:
    """The first line of the first text, for lists of sessions."""
    for block in blocks:
        text = block.get("text")
        if isinstance(text, str) and text.strip():
            line = text.strip().splitlines()[0].rstrip()
            return line if len(line) <= limit else line[: limit - 1] + "…"
    return "(no text)"


def _part(place: str, block: dict[str, Any]) -> dict[str, Any]:
    match block.get("type"):
        case "text":
            return _text(_string(place, block, "text"))
        case "image":
            return _image(_string(place, block, "mimeType"), _string(place, block, "data"))
        case "resource_link":
            return _text(f"[{_string(place, block, 'name')}]({_string(place, block, 'uri')})")
        case "resource":
            return _resource(place, block.get("resource"))
        case "audio":
            raise invalid_params(f"{place} is audio, which this agent cannot take")
        case other:
            raise invalid_params(f"{place} has the unknown type {other!r}")


def _resource(place: str, resource: Any) -> dict[str, Any]:
    if not isinstance(resource, dict):
        raise invalid_params(f"{place}.resource is not an object")
    fields: dict[str, Any] = resource  # pyright: ignore[reportUnknownVariableType]
    uri = _string(f"{place}.resource", fields, "uri")
    text = fields.get("text")
    if isinstance(text, str):
        return _text(f'<resource uri="{uri}">\n{text}\n</resource>')
    kind = fields.get("mimeType")
    if isinstance(kind, str) and kind.startswith("image/"):
        return _image(kind, _string(f"{place}.resource", fields, "blob"))
    raise invalid_params(f"{place} is a binary resource ({kind or 'of no stated type'}): {uri}")


def _string(place: str, block: dict[str, Any], key: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise invalid_params(f"{place}.{key} must be a string")
    return value


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image(mime: str, data: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}
