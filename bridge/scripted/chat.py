"""The chat completions wire of the scripted model: bodies into turns, plans into answers."""

from collections.abc import Iterator
from typing import Any

from bridge.scripted.plan import Plan, Tool, Turn, objects, texts
from bridge.wire import codec

PATH = "/chat/completions"
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


def turns(body: dict[str, Any]) -> list[Turn]:
    found: list[Turn] = []
    for message in objects(body.get("messages")):
        role, parts = message.get("role"), texts(message.get("content"))
        if role == "user":
            found += [Turn("user", text) for text in parts]
        elif role in ("assistant", "tool"):
            found.append(Turn(role, "".join(parts)))
    return found


def tools(body: dict[str, Any]) -> list[Tool]:
    offered = objects([tool.get("function") for tool in objects(body.get("tools"))])
    return [Tool(tool.get("name", ""), tool.get("parameters") or {}) for tool in offered]


def refusal(body: dict[str, Any], strict: str) -> dict[str, Any] | None:
    """What a strict provider answers to an assistant message without usable content.

    `null`: refuses null or absent content; `empty`: refuses an empty string beside tool calls.
    """
    for index, message in enumerate(body.get("messages") or []):
        if message.get("role") != "assistant":
            continue
        content, calls = message.get("content"), message.get("tool_calls")
        null = strict == "null" and content is None
        if null or (strict == "empty" and calls and content == ""):
            what = "got null" if null else "text content is empty"
            return error(400, f"messages[{index}].content: expected a string, {what}")
    return None


def error(status: int, words: str) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": words, "type": kind, "param": None, "code": "scripted"}}


def _calls(plan: Plan, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.tool.name, "arguments": call.arguments},
        }
        for index, call in enumerate(plan.calls)
    ]


def answer(plan: Plan, body: dict[str, Any], number: int) -> dict[str, Any]:
    """The whole answer; `number` makes its ids unlike those of any other answer."""
    message: dict[str, Any] = {"role": "assistant", "content": plan.whole}
    if plan.reason:
        message["reasoning_content"] = plan.reason
    if plan.calls:
        message["tool_calls"] = _calls(plan, number)
    reason = "tool_calls" if plan.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return _head(body, number, "chat.completion") | {"choices": [choice], "usage": USAGE}


def events(plan: Plan, body: dict[str, Any], number: int) -> Iterator[bytes | float]:
    """The answer as server-sent events; a number is a pause in seconds."""

    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event(_head(body, number, "chat.completion.chunk") | {"choices": [choice]})

    first = None if plan.text is None else ""
    yield chunk({"role": "assistant", "content": first})
    if plan.reason:
        yield chunk({"reasoning_content": plan.reason})
    for word in plan.words:
        yield chunk({"content": word})
        yield plan.pause
    if plan.text:
        yield chunk({"content": plan.text})
    for index, call in enumerate(_calls(plan, number)):
        function = call["function"]
        yield chunk(
            {"tool_calls": [call | {"index": index, "function": function | {"arguments": ""}}]}
        )
        rest = {"index": index, "function": {"arguments": function["arguments"]}}
        yield chunk({"tool_calls": [rest]})
    yield chunk({}, "tool_calls" if plan.calls else "stop")
    options: dict[str, Any] = body.get("stream_options") or {}
    if options.get("include_usage"):
        yield _event(_head(body, number, "chat.completion.chunk") | {"choices": [], "usage": USAGE})
    yield b"data: [DONE]\n\n"


def _head(body: dict[str, Any], number: int, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": 1_700_000_000,
        "model": body.get("model", "scripted"),
    }


def _event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % codec.encode(value)
