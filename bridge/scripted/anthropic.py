"""The Anthropic Messages wire of the scripted model: bodies into turns, plans into answers."""

from collections.abc import Iterator
from typing import Any

from bridge.scripted.plan import Plan, Tool, Turn, objects, texts
from bridge.wire import codec

PATH = "/messages"
USAGE = {
    "input_tokens": 11,
    "output_tokens": 3,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}
SIGNATURE = "c2NyaXB0ZWQ="
# What a block looks like before its content has come.
_BLANK: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
}


def turns(body: dict[str, Any]) -> list[Turn]:
    found: list[Turn] = []
    for message in objects(body.get("messages")):
        role, content = message.get("role"), message.get("content")
        if role == "assistant":
            found.append(Turn("assistant", "".join(texts(content))))
        elif role == "user" and isinstance(content, str):
            found.append(Turn("user", content))
        elif role == "user":
            for block in objects(content):
                if block.get("type") == "tool_result":
                    found.append(Turn("tool", "".join(texts(block.get("content")))))
                elif block.get("type") == "text":
                    found.append(Turn("user", block.get("text", "")))
    return found


def tools(body: dict[str, Any]) -> list[Tool]:
    return [
        Tool(tool["name"], tool.get("input_schema") or {})
        for tool in objects(body.get("tools"))
        if tool.get("name")
    ]


def error(status: int, words: str) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "api_error"
    return {"type": "error", "error": {"type": kind, "message": words}}


def _blocks(plan: Plan, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if plan.reason:
        blocks.append({"type": "thinking", "thinking": plan.reason, "signature": SIGNATURE})
    if plan.whole:  # this wire has no empty text block
        blocks.append({"type": "text", "text": plan.whole})
    for index, call in enumerate(plan.calls):
        given = codec.decode(call.arguments.encode())
        name = f"toolu_{number}_{index}"
        blocks.append({"type": "tool_use", "id": name, "name": call.tool.name, "input": given})
    return blocks


def answer(plan: Plan, body: dict[str, Any], number: int) -> dict[str, Any]:
    """The whole answer; `number` makes its ids unlike those of any other answer."""
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": _blocks(plan, number),
        "stop_reason": "tool_use" if plan.calls else "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
    }


def events(plan: Plan, body: dict[str, Any], number: int) -> Iterator[bytes | float]:
    """The answer as server-sent events; a number is a pause in seconds."""

    def event(kind: str, **fields: Any) -> bytes:
        data = codec.encode({"type": kind, **fields})
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)

    def delta(index: int, kind: str, **fields: Any) -> bytes:
        return event("content_block_delta", index=index, delta={"type": kind, **fields})

    message = answer(plan, body, number)
    yield event("message_start", message=message | {"content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        kind = block["type"]
        start = block | _BLANK[kind]
        yield event("content_block_start", index=index, content_block=start)
        if kind == "text":
            for word in plan.words:
                yield delta(index, "text_delta", text=word)
                yield plan.pause
            yield delta(index, "text_delta", text=plan.text or "")
        elif kind == "thinking":
            yield delta(index, "thinking_delta", thinking=block["thinking"])
            yield delta(index, "signature_delta", signature=block["signature"])
        else:
            given = codec.encode(block["input"]).decode()
            yield delta(index, "input_json_delta", partial_json=given)
        yield event("content_block_stop", index=index)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ending, usage={"output_tokens": 3})
    yield event("message_stop")
