"""The Responses wire of the scripted model: bodies into turns, plans into answers."""

from collections.abc import Iterator
from typing import Any

from bridge.scripted.chat import error as error
from bridge.scripted.plan import Plan, Tool, Turn, objects, texts
from bridge.wire import codec

PATH = "/responses"
USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 14,
}

# What an item looks like before its content has come.
_BLANK: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
}


def turns(body: dict[str, Any]) -> list[Turn]:
    given = body.get("input")
    if isinstance(given, str):
        return [Turn("user", given)]
    found: list[Turn] = []
    for item in objects(given):
        kind, role = item.get("type", "message"), item.get("role")
        if kind.endswith("_output"):
            output = item.get("output")
            found.append(Turn("tool", "".join(texts(output))))
        elif kind == "message" and role == "user":
            found += [Turn("user", text) for text in texts(item.get("content"))]
        elif kind == "message" and role == "assistant":
            found.append(Turn("assistant", "".join(texts(item.get("content")))))
    return found


def tools(body: dict[str, Any]) -> list[Tool]:
    found: list[Tool] = []
    for tool in objects(body.get("tools")):
        kind, space = tool.get("type"), None
        inner = objects(tool.get("tools")) if kind == "namespace" else [tool]
        if kind == "namespace":
            space = tool.get("name")
        found += [
            Tool(one["name"], one.get("parameters") or {}, one.get("type") == "custom", space)
            for one in inner
            if one.get("type") in ("function", "custom") and one.get("name")
        ]
    return found


def _items(plan: Plan, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if plan.reason:
        summary = [{"type": "summary_text", "text": plan.reason}]
        items.append({"type": "reasoning", "id": f"rs_{number}", "summary": summary})
    if plan.whole is not None:
        part: dict[str, Any] = {"type": "output_text", "text": plan.whole, "annotations": []}
        items.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    for index, call in enumerate(plan.calls):
        item: dict[str, Any] = {
            "type": "custom_tool_call" if call.tool.custom else "function_call",
            "id": f"fc_{number}_{index}",
            "call_id": f"call_{number}_{index}",
            "name": call.tool.name,
            "status": "completed",
            "input" if call.tool.custom else "arguments": call.arguments,
        }
        items.append(item | ({"namespace": call.tool.namespace} if call.tool.namespace else {}))
    return items


def _response(body: dict[str, Any], number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": body.get("model", "scripted"),
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1,
        **more,
    }


def answer(plan: Plan, body: dict[str, Any], number: int) -> dict[str, Any]:
    """The whole answer; `number` makes its ids unlike those of any other answer."""
    output = _items(plan, number)
    return _response(body, number, status="completed", output=output, usage=USAGE)


def events(plan: Plan, body: dict[str, Any], number: int) -> Iterator[bytes | float]:
    """The answer as server-sent events; a number is a pause in seconds."""
    sequence = 0

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal sequence
        data = codec.encode({"type": kind, "sequence_number": sequence, **fields})
        sequence += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)

    items = _items(plan, number)
    begun = _response(body, number, status="in_progress", output=[], usage=None)
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        kind = item["type"]
        blank = _BLANK.get(kind, {})
        added = item | blank | ({} if kind == "reasoning" else {"status": "in_progress"})
        yield event("response.output_item.added", output_index=index, item=added)
        if kind == "message":
            part = item["content"][0]
            at = place | {"content_index": 0}
            empty = part | {"text": ""}
            yield event("response.content_part.added", **at, part=empty)
            for word in plan.words:
                yield event("response.output_text.delta", **at, delta=word)
                yield plan.pause
            if plan.text:
                yield event("response.output_text.delta", **at, delta=plan.text)
            yield event("response.output_text.done", **at, text=part["text"])
            yield event("response.content_part.done", **at, part=part)
        elif kind == "function_call":
            given = item["arguments"]
            yield event("response.function_call_arguments.delta", **place, delta=given)
            yield event("response.function_call_arguments.done", **place, arguments=given)
        elif kind == "reasoning":
            at, part = place | {"summary_index": 0}, item["summary"][0]
            yield event("response.reasoning_summary_part.added", **at, part=part | {"text": ""})
            yield event("response.reasoning_summary_text.delta", **at, delta=part["text"])
            yield event("response.reasoning_summary_text.done", **at, text=part["text"])
            yield event("response.reasoning_summary_part.done", **at, part=part)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=answer(plan, body, number))
