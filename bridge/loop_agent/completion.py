"""One model answer, put together from its chunks: text, thoughts, tool calls, why it ended.

Owns: the rules by which deltas add up. Rules: no I/O; an answer that did not end properly is an
error, never an empty reply; the message for the history never has null content.
Fed by `bridge.loop_agent.model`, read by `bridge.loop_agent.turn`.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from bridge.wire import codec
from protocol_schemas.chat import Chunk, Delta, TokenUsage, ToolCallDelta

Kind = Literal["text", "thought"]


class BadAnswer(Exception):
    """The model server's answer is none: it broke off, or says that it failed."""


@dataclass
class ToolCall:
    """A call as the model made it; `arguments` is its JSON text, as yet unread."""

    id: str
    name: str = ""
    arguments: str = ""
    extra: Any = None

    def as_message(self) -> dict[str, Any]:
        call: dict[str, Any] = {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }
        if self.extra is not None:
            call["extra_content"] = self.extra
        return call


class Completion:
    """Takes chunks in order; `finish` checks that the answer is whole."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._thought_field = "reasoning_content"
        self._calls: list[ToolCall] = []
        self._arguments: list[list[str]] = []
        self._at: dict[int, int] = {}
        self._numbers: list[int | None] = []
        self._told: list[str | None] = []
        self._refused = False
        self._finish_reason: str | None = None
        self.usage: TokenUsage | None = None
        self.complete = False
        """Whether `finish` found the answer whole."""

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def thoughts(self) -> str:
        return "".join(self._thoughts)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """In the order of their numbers; in the order they came in where some have none."""
        for call, pieces in zip(self._calls, self._arguments, strict=True):
            call.arguments = "".join(pieces)
        numbers = [number for number in self._numbers if number is not None]
        if len(numbers) < len(self._calls):
            return list(self._calls)
        places = sorted(range(len(numbers)), key=numbers.__getitem__)
        return [self._calls[place] for place in places]

    @property
    def ended_by(self) -> str:
        """`stop`, `length` or `refusal`: what of the finish reason matters to a turn."""
        if self._refused or self._finish_reason == "content_filter":
            return "refusal"
        return "length" if self._finish_reason == "length" else "stop"

    def add(self, chunk: Chunk) -> list[tuple[Kind, str]]:
        """Takes one chunk (or a whole answer); gives what it adds to be shown. Raises BadAnswer."""
        if chunk.error is not None:
            raise BadAnswer(error_words(chunk.error))
        self.usage = _usage(chunk.usage) or self.usage
        if not chunk.choices:
            return []
        choice = chunk.choices[0]
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        delta = choice.delta or choice.message
        return [] if delta is None else self._add(delta)

    def _add(self, delta: Delta) -> list[tuple[Kind, str]]:
        shown: list[tuple[Kind, str]] = []
        if thought := delta.reasoning_content or delta.reasoning:
            self._thought_field = "reasoning_content" if delta.reasoning_content else "reasoning"
            self._thoughts.append(thought)
            shown.append(("thought", thought))
        for kind, words in _parts(delta.content):
            (self._text if kind == "text" else self._thoughts).append(words)
            shown.append((kind, words))
        if delta.refusal:
            self._text.append(delta.refusal)
            shown.append(("text", delta.refusal))
        self._refused = self._refused or bool(delta.refusal)
        for call in delta.tool_calls or ():
            self._add_call(call)
        return shown

    def _add_call(self, delta: ToolCallDelta) -> None:
        function = delta.function
        name = function.name if function is not None else None
        place = self._place(delta, name)
        call = self._calls[place]
        if delta.id and self._told[place] is None:
            self._told[place] = delta.id
            call.id = self._fresh_id(delta.id)
        if name and not self._arguments[place]:
            # Whole, whole again, or in pieces: each server has its way.
            call.name = name if name.startswith(call.name) else call.name + name
        elif name and not call.name:
            call.name = name
        if delta.extra_content is not None:
            call.extra = delta.extra_content
        if function is not None and function.arguments not in (None, ""):
            piece = function.arguments
            self._arguments[place].append(
                piece if isinstance(piece, str) else codec.encode(piece).decode()
            )

    def _place(self, delta: ToolCallDelta, name: str | None) -> int:
        """Which call a delta belongs to. Some servers give no index, some number every call 0: a
        new id together with a name is a new call whatever its number, unless the call with that
        number has neither as yet."""
        index = delta.index
        place = self._unnumbered(delta.id, name) if index is None else self._at.get(index)
        if place is not None:
            begun = self._told[place] or self._calls[place].name
            other = delta.id and begun and delta.id != self._told[place]
            if not (name and other):
                return place
        self._calls.append(ToolCall(f"call_{uuid.uuid4().hex}"))
        self._arguments.append([])
        self._numbers.append(index)
        self._told.append(None)
        place = len(self._calls) - 1
        if index is not None:
            self._at[index] = place
        return place

    def _unnumbered(self, ident: str | None, name: str | None) -> int | None:
        """The call that a delta without index goes on with; None if it begins one."""
        last = len(self._calls) - 1
        if ident:
            places = [place for place, told in enumerate(self._told) if told == ident]
            if not places:
                return (
                    last if last >= 0 and not (self._told[last] or self._calls[last].name) else None
                )
            # The same id again with a name: more of the call, or another call with a doubled id?
            return None if name and self._is_whole(places[-1]) else places[-1]
        if not name:
            return last if last >= 0 else None
        if last < 0 or not self._calls[last].name:
            return last if last >= 0 else None
        goes_on = self._arguments[last] and not self._is_whole(last)
        return last if name == self._calls[last].name and goes_on else None

    def _is_whole(self, place: int) -> bool:
        """Whether a call's arguments are JSON as they are."""
        try:
            codec.decode("".join(self._arguments[place]).encode(errors="surrogatepass"))
        except codec.JSONError:
            return False
        return True

    def _fresh_id(self, ident: str | None) -> str:
        """The model's id, or one of ours where it gave none or gave it twice."""
        if ident and all(call.id != ident for call in self._calls):
            return ident
        return f"call_{uuid.uuid4().hex}"

    def finish(self, *, announced: bool) -> None:
        """The answer is over. `announced`: it said so itself (`[DONE]`). Raises BadAnswer."""
        if self._finish_reason is None and not announced:
            raise BadAnswer("the stream ended before the answer was complete")
        if self._finish_reason is None and not (self._text or self._thoughts or self._calls):
            raise BadAnswer("the answer holds neither text nor tool calls nor a finish reason")
        if self._finish_reason == "error":
            raise BadAnswer('the provider ended the answer with finish_reason "error"')
        self.complete = True

    def message(self, *, with_calls: bool) -> dict[str, Any]:
        """The assistant message for the history. Thoughts go back only beside tool calls, where
        thinking models ask for them."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if with_calls and self._calls:
            if self._thoughts:
                message[self._thought_field] = self.thoughts
            message["tool_calls"] = [call.as_message() for call in self.tool_calls]
        return message


def _parts(content: Any) -> Iterator[tuple[Kind, str]]:
    """What a delta's content says, but for what is empty: a text, or (Mistral's reasoning models)
    a list of parts."""
    if isinstance(content, str) and content:
        yield "text", content
    elif isinstance(content, list):
        for part in cast(list[Any], content):
            fields = codec.mapping(part) or {}
            yield from _parts(fields.get("text"))
            for _, thought in _parts(fields.get("thinking")):
                yield "thought", thought


def _usage(value: Any) -> TokenUsage | None:
    """The tokens that were spent; None for what makes no sense, since no turn fails of counting."""
    if value is None:
        return None
    try:
        usage = codec.convert(value, TokenUsage)
    except codec.JSONError:
        return None
    if min(usage.prompt_tokens or 0, usage.completion_tokens or 0) < 0:
        return None
    return usage


def error_words(error: Any) -> str:
    """The provider's words in an `error` value: an object with a message, a string, anything."""
    fields = codec.mapping(error)
    if fields is None:
        return error if isinstance(error, str) else codec.encode(error).decode()
    message = fields.get("message") or fields.get("detail")
    if isinstance(message, str) and message:
        return message
    return codec.encode(error).decode()
