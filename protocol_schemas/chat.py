"""Chat completions, as far as the embedded agent reads them: stream chunks and whole answers.

Rule: providers send null where they mean absent, leave fields out and add their own; what is not
named here is ignored. Decoded by `bridge.loop_agent.model`.
"""

from typing import Any

import msgspec


class FunctionDelta(msgspec.Struct):
    """Part of a call. `arguments` is JSON text in pieces; some servers send the value itself."""

    name: str | None = None
    arguments: Any = None


class ToolCallDelta(msgspec.Struct):
    """Part of a tool call. `extra_content` is Google's and has to be sent back with the call."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None
    extra_content: Any = None


class Delta(msgspec.Struct):
    """What a chunk adds to the message, or (in an answer that is not streamed) the message."""

    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallDelta] | None = None


class Choice(msgspec.Struct):
    """One alternative; the agent asks for one and reads the first."""

    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class PromptDetails(msgspec.Struct):
    """Of the prompt's tokens, those read from the provider's cache."""

    cached_tokens: int | None = None


class CompletionDetails(msgspec.Struct):
    """Of the answer's tokens, those spent on reasoning."""

    reasoning_tokens: int | None = None


class TokenUsage(msgspec.Struct):
    """What one request cost, in tokens."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class Chunk(msgspec.Struct):
    """One `data:` of the stream, or the whole answer. `error`: how providers fail in mid-stream;
    `usage`: a TokenUsage, where it is right."""

    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None
