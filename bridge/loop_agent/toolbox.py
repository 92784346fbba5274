"""The tools a session's model can call, and what every tool is.

Owns: names, and the reading of what the model wrote. Rule: a model's mistake (an unknown tool,
arguments that are no JSON object, arguments a tool cannot take) is a ToolError whose words go back
to the model; it never ends the turn. Filled by `bridge.loop_agent.sessions`, used by
`bridge.loop_agent.turn`.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from bridge.loop_agent.prompt import Content
from bridge.wire import codec

Json = dict[str, Any]


class ToolError(Exception):
    """The call failed in a way that the model can read about and act on."""


class DuplicateTool(Exception):
    """Two tools have one name; the text names it and both owners."""


@dataclass
class Result:
    """What a call gave. `content`: for the model; `shown`: ACP tool call content for the client."""

    content: Content
    shown: list[Json]
    raw: Any = None
    failed: bool = False


@dataclass
class Plan:
    """A call whose arguments are understood, not yet made. `preview`: what it would do, to be shown
    while permission is asked."""

    title: str
    kind: str
    run: Callable[[], Awaitable[Result]]
    locations: list[Json] = field(default_factory=list[Json])
    preview: list[Json] = field(default_factory=list[Json])


@dataclass(frozen=True)
class Spec:
    """What the model is told. `parameters` is the JSON Schema of the arguments; `asks`: the tool
    is used only with the user's permission."""

    name: str
    description: str
    parameters: Json
    asks: bool = False


class Tool(Protocol):
    @property
    def spec(self) -> Spec: ...

    def plan(self, arguments: Json) -> Plan:
        """What the call would be; raises ToolError for arguments it cannot take."""
        ...


class Toolbox:
    """Tools by name, in the order they were added."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._owners: dict[str, str] = {}

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def add(self, tools: Iterable[Tool], owner: str) -> None:
        """Adds an owner's tools; raises DuplicateTool."""
        for tool in tools:
            name = tool.spec.name
            if name in self._tools:
                raise DuplicateTool(
                    f"duplicate tool name {name!r}: from {self._owners[name]} and from {owner}"
                )
            self._tools[name] = tool
            self._owners[name] = owner

    def specs(self) -> list[Json]:
        """The `tools` of a model request."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.spec.name,
                    "description": tool.spec.description,
                    "parameters": tool.spec.parameters,
                },
            }
            for tool in self._tools.values()
        ]

    def find(self, name: str) -> Tool:
        """The tool of that name; raises ToolError that lists those there are."""
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            raise ToolError(f"There is no tool named {name!r}. The tools are: {known}.")
        return tool


def read_arguments(text: str) -> Json:
    """The arguments of a call as the model wrote them; raises ToolError. Nothing means `{}`."""
    if not text.strip():
        return {}
    try:
        value = codec.decode(text.encode(errors="surrogatepass"))
    except codec.JSONError as error:
        raise ToolError(
            f"The arguments are not valid JSON ({error}). "
            "Nothing was run. Resend the call with one JSON object as its arguments."
        ) from None
    arguments = codec.mapping(value)
    if arguments is None:
        raise ToolError(
            f"The arguments are JSON, but {_kind(value)} and not an object. "
            "Nothing was run. Resend the call with one JSON object as its arguments."
        )
    return arguments


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case _:
            return "an array"


def string(arguments: Json, name: str, default: str | None = None) -> str:
    """A string argument; raises ToolError if it is missing (and has no default) or no string."""
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise ToolError(f"The argument {name!r} must be a string. Resend the call with it.")
    return value


def plain(arguments: Json, name: str, default: str | None = None) -> str:
    """As `string`, for what a file or a command line can hold: no lone surrogates; raises
    ToolError."""
    value = string(arguments, name, default)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ToolError(
            f"The argument {name!r} holds half of a character (a lone surrogate), which UTF-8 has "
            "no bytes for. Nothing was run. Resend the call without it."
        ) from None
    return value


def system_string(arguments: Json, name: str, default: str | None = None) -> str:
    """As `plain`, for a path or a command: it holds no NUL either; raises ToolError."""
    value = plain(arguments, name, default)
    if "\0" in value:
        raise ToolError(f"The argument {name!r} holds a NUL character. Resend it without.")
    return value


def number(arguments: Json, name: str, default: float, most: float) -> float:
    """A positive number argument, at most `most`; raises ToolError."""
    value = arguments.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ToolError(f"The argument {name!r} must be a positive number. Resend the call.")
    return min(float(value), most)


def text_block(text: str) -> Json:
    """Text as tool call content."""
    return {"type": "content", "content": {"type": "text", "text": text}}
