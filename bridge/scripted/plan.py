"""What a scripted model answers, decided from the conversation alone: directives in the prompt.

The newest user text that holds a directive decides; anything else gets `pong`. Pure: the wires
(chat, responses, anthropic, gemini) read their bodies into `Turn`s and write the `Plan` out again.

    SAY text                      that text; PLAIN: pong
    USE_TOOL name {json}          calls the first tool whose name contains `name`; once its result
                                  is there, `the tool said: ...`
    USE_TOOL_TEXT, PARALLEL       the same after a text part; two calls at once
    REASON text                   a reasoning part, then pong
    REPLY_EMPTY, REPLY_WS, REPLY_NULL     no text, white space only, null
    SLOW seconds                  a word every quarter of a second for so long, then pong
    FAIL status                   that HTTP status, once for each such prompt; then pong
"""

import re
from dataclasses import dataclass
from typing import Any, Literal, cast

from bridge.wire import codec

PAUSE = 0.25
_DIRECTIVE = re.compile(
    r"\b(SAY|PLAIN|USE_TOOL_TEXT|USE_TOOL|PARALLEL|REASON|REPLY_EMPTY|REPLY_WS|REPLY_NULL|SLOW|FAIL)"
    r"\b[ \t]*([^\n]*)"
)


@dataclass(frozen=True)
class Turn:
    """One part of a conversation: what a user said, a model said, or a tool returned."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""


@dataclass(frozen=True)
class Tool:
    """A tool that a request offers."""

    name: str
    schema: dict[str, Any]
    custom: bool = False
    namespace: str | None = None


@dataclass(frozen=True)
class Call:
    """A tool call the model makes: its arguments as JSON text."""

    tool: Tool
    arguments: str


@dataclass(frozen=True)
class Plan:
    """One answer. `words` come one by one, `pause` seconds after each, before `text`."""

    text: str | None = "pong"
    reason: str = ""
    calls: tuple[Call, ...] = ()
    words: tuple[str, ...] = ()
    status: int = 200
    pause: float = PAUSE

    @property
    def whole(self) -> str | None:
        """All of the text, for an answer that is not streamed."""
        return "".join((*self.words, self.text or "")) if self.words else self.text


def decide(turns: list[Turn], tools: list[Tool], failed: set[int]) -> Plan:
    """The answer to a conversation; `failed` holds the places of failures already shown."""
    found = _newest_directive(turns)
    if found is None:
        return Plan()
    place, verb, rest = found
    later = turns[place + 1 :]
    if verb in ("USE_TOOL", "USE_TOOL_TEXT", "PARALLEL"):
        results = [turn.text for turn in later if turn.role == "tool"]
        if results:
            return Plan(text=f"the tool said: {results[-1]}")
        return _tool_plan(verb, rest, tools)
    if any(turn.role == "assistant" for turn in later):
        return Plan()
    if verb == "FAIL":
        if place in failed:
            return Plan()
        failed.add(place)
        return Plan(status=int(rest.split()[0]))
    return _text_plan(verb, rest)


def _newest_directive(turns: list[Turn]) -> tuple[int, str, str] | None:
    for place in range(len(turns) - 1, -1, -1):
        if turns[place].role == "user" and (all_ := _DIRECTIVE.findall(turns[place].text)):
            verb, rest = all_[-1]
            return place, verb, rest.strip()
    return None


def _text_plan(verb: str, rest: str) -> Plan:
    if verb == "SAY":
        return Plan(text=rest)
    if verb == "REASON":
        return Plan(reason=rest or "thinking about it")
    if verb == "SLOW":
        count = max(1, int(float(rest.split()[0] if rest else 10) / PAUSE))
        return Plan(words=tuple(f"w{index} " for index in range(count)))
    return Plan(text={"REPLY_EMPTY": "", "REPLY_WS": "\n\n", "REPLY_NULL": None}.get(verb, "pong"))


def _tool_plan(verb: str, rest: str, tools: list[Tool]) -> Plan:
    name, _, arguments = rest.partition(" ")
    tool = next((tool for tool in tools if _plain(name) in _plain(_full_name(tool))), None)
    if tool is None:
        return Plan(text=f"no tool like {name!r} among {len(tools)}")
    start, end = arguments.find("{"), arguments.rfind("}")
    given = arguments[start : end + 1] if start >= 0 else _least(tool.schema)
    count = 2 if verb == "PARALLEL" else 1
    text = "calling it" if verb == "USE_TOOL_TEXT" else None
    return Plan(text=text, calls=(Call(tool, given),) * count)


def _plain(name: str) -> str:
    """Agents rename tools: case and hyphens do not count."""
    return name.lower().replace("-", "_")


def _full_name(tool: Tool) -> str:
    return f"{tool.namespace or ''}{tool.name}"


def _least(schema: dict[str, Any]) -> str:
    """The smallest arguments that a schema lets pass."""
    values: dict[str, Any] = {
        "number": 1,
        "integer": 1,
        "boolean": False,
        "array": [],
        "object": {},
    }
    properties: dict[str, Any] = schema.get("properties") or {}
    required: list[str] = schema.get("required") or []
    chosen = {name: values.get(properties.get(name, {}).get("type", ""), "x") for name in required}
    return codec.encode(chosen).decode()


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of what should be a list of them; bodies come from strangers."""
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[Any]", value) if isinstance(item, dict)]


def texts(content: Any) -> list[str]:
    """The texts of a message's content: a string, null, or a list of parts."""
    if isinstance(content, str):
        return [content]
    found = [part.get("text") for part in objects(content)]
    return [text for text in found if isinstance(text, str)]
