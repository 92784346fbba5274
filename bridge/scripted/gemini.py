"""The Gemini wire of the scripted model: bodies into turns, plans into answers.

What is asked stands in the path here (`models/NAME:streamGenerateContent`), not in the body.
"""

from collections.abc import Iterator
from typing import Any

from bridge.scripted.plan import Plan, Tool, Turn, objects
from bridge.wire import codec

PATH = ":generateContent"
STREAMED = ":streamGenerateContent"
USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 3, "totalTokenCount": 14}


def turns(body: dict[str, Any]) -> list[Turn]:
    found: list[Turn] = []
    for content in objects(body.get("contents")):
        parts = objects(content.get("parts"))
        if content.get("role") == "model":
            spoken = (part.get("text") for part in parts if not part.get("thought"))
            found.append(Turn("assistant", "".join(filter(None, spoken))))
            continue
        for part in parts:
            if "functionResponse" in part:
                found.append(Turn("tool", _returned(part["functionResponse"])))
            elif isinstance(part.get("text"), str):
                found.append(Turn("user", part["text"]))
    return found


def _returned(response: Any) -> str:
    """What a tool returned: agents wrap it as `output`, or in MCP's own blocks."""
    given = objects([response])[0].get("response") if objects([response]) else None
    for value in objects([given]):
        found = value.get("output", value.get("content", value))
        return found if isinstance(found, str) else codec.encode(found).decode()
    return ""


def tools(body: dict[str, Any]) -> list[Tool]:
    return [
        Tool(tool["name"], tool.get("parametersJsonSchema") or tool.get("parameters") or {})
        for group in objects(body.get("tools"))
        for tool in objects(group.get("functionDeclarations"))
        if tool.get("name")
    ]


def error(status: int, words: str) -> dict[str, Any]:
    kind = "INVALID_ARGUMENT" if status < 500 else "INTERNAL"
    return {"error": {"code": status, "message": words, "status": kind}}


def _answer(body: dict[str, Any], parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = "STOP"
    model = body.get("model", "scripted")
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": model}


def _calls(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "functionCall": {
                "name": call.tool.name,
                "args": codec.decode(call.arguments.encode()),
            }
        }
        for call in plan.calls
    ]


def _parts(plan: Plan, text: str | None) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if plan.reason:
        parts.append({"text": plan.reason, "thought": True})
    if text:  # this wire has no empty part
        parts.append({"text": text})
    return parts + _calls(plan)


def answer(plan: Plan, body: dict[str, Any], number: int) -> dict[str, Any]:
    """The whole answer."""
    return _answer(body, _parts(plan, plan.whole), last=True)


def events(plan: Plan, body: dict[str, Any], number: int) -> Iterator[bytes | float]:
    """The answer as server-sent events; a number is a pause in seconds."""

    def event(parts: list[dict[str, Any]], *, last: bool = False) -> bytes:
        return b"data: %b\n\n" % codec.encode(_answer(body, parts, last=last))

    for word in plan.words:
        yield event([{"text": word}])
        yield plan.pause
    yield event(_parts(plan, plan.text), last=True)
