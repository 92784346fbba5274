"""Which of an agent's model calls are none of its turns': titles, suggestions, summaries, probes.

Rule: known by what stands in the request, never by which agent it is from; a table of signs, the
first that fits counts. What no sign fits may still be a side call: one that offers no tools while
the agent's turns do (bridge.model.facts). Pure.
"""

import re
from typing import NamedTuple

SHOWN = 2000
"""Bytes of a system prompt, a first message and a format that are looked at, from the first on."""
LAST = 1 << 15
"""Bytes of the history that are looked at, from its end: where a call says what it is for."""


class Asked(NamedTuple):
    """A generation's request. `schema`: of the format that the answer must have; `first`: the
    instructions and the first message; `last`: the end of the history.
    """

    tools: bool = False
    one_token: bool = False
    schema: bytes = b""
    first: bytes = b""
    last: bytes = b""


OPENINGS = (
    # Qwen Code after each turn, on the whole conversation and with tools of its own.
    (b"You are now acting as the managed memory extraction", "memory"),
    (b"You are performing a managed memory dream", "memory"),
    (b"You are selecting memories that will be useful to an AI coding assistant", "memory"),
)
"""What a text in a side call's instructions begins with, with tools or without."""
ENDINGS = (
    # Claude Code and Qwen Code send the whole conversation with its tools, and this at its end.
    (b"[SUGGESTION MODE: Suggest what", "suggestion"),
)
"""What a text at the end of a side call's history begins with, with tools or without."""
_SUMMARY = re.compile(
    rb"Your task is to create a detailed summary of (?:"
    rb"the conversation so far, paying close attention|the RECENT portion of the conversation"
    rb"|this conversation\. This summary will be placed)"
)
"""Claude Code, when a conversation becomes too long: other words stand before it."""
HELLO = re.compile(rb'"(?:hi|hello|warmup)"', re.IGNORECASE)
"""What a warm-up says: Claude Code's adapter after a fork and a load."""
FORMATS = (
    # codex: of another model.
    (re.compile(rb'"properties"\s*:\s*\{\s*"title"'), "title"),
)
"""The formats that side calls want their answer in."""
BEGINNINGS = (
    # opencode ("You are a title generator"), Claude Code ("a concise, sentence-case title"), ...
    (b"title", "title"),
    # opencode ("tasked with summarizing conversations"), ...
    (b"summariz", "summary"),
)
"""What side calls without tools say in their instructions or their first message."""
_LAST_SAID = re.compile(
    rb"(?:"
    rb"Please continue from where you left off\."  # Copilot, after an answer without text
    rb"|\[Your previous response had no visible output\.[^\"\\]*\]"  # Claude Code
    rb')(?:\\n)*"(?:\s*,\s*"cache_control"\s*:\s*\{[^{}]*\})?[\s}]*'
    # It is the last thing that is said, as histories keep it; a system message may follow.
    rb'(?:\](?:(?!"role"\s*:\s*"(?:user|assistant)").)*)?\Z',
    re.DOTALL,
)
# Gemini CLI adds it to the user's own message, as its last part.
_LAST_PART = re.compile(
    rb'\[System: You previously returned an empty response[^"\\]*\]"\s*\}\s*\]'
    rb'(?:\s*,\s*"role"\s*:\s*"user")?\s*\}\s*\]?\s*\Z'
)
# What stands between the texts of two user messages, in any API, and behind the last one.
_BOUNDS = (
    rb"(?:[\s\[\]{},:]"
    rb'|"(?:role|user|type|message|content|text|input_text|cache_control|ephemeral)")*'
)
_CONTEXT = _BOUNDS + rb'"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>'
# OpenClaw, under the time of day; its internal context is a message of its own behind it.
_BEFORE_CONTEXT = re.compile(
    rb'(?<!\\)"(?:\[[^\[\]"\\]{1,60}\] )?The previous (?:attempt|assistant turn) [^"\\.]*'
    rb'user-visible answer\. Continue from [^"\\]*"'
    rb'(?:%b(?:[^"\\]++|\\.)*+")?%b\Z' % (_CONTEXT, _BOUNDS)
)
AGAIN = (
    (b"left off.", _LAST_SAID),
    (b"no visible output.", _LAST_SAID),
    (b"returned an empty response", _LAST_PART),
    (b"user-visible answer. Continue from", _BEFORE_CONTEXT),
)
"""What agents say by themselves after an answer without text: words of it, and all of it."""
_is_context = re.compile(_CONTEXT).match


def side(asked: Asked) -> str | None:
    """The kind of side call that a request is, None for one that looks like a turn's."""
    if (kind := _begun(OPENINGS, asked.first) or _begun(ENDINGS, asked.last)) is not None:
        return kind
    if b"create a detailed summary" in asked.last and _SUMMARY.search(asked.last):
        return "summary"
    if asked.one_token:
        return "warm-up" if HELLO.search(asked.last) else "probe"
    if asked.schema:
        for pattern, kind in FORMATS:
            if pattern.search(asked.schema):
                return kind
    if not asked.tools:
        first = asked.first.lower()
        for words, kind in BEGINNINGS:
            if words in first:
                return kind
    return None


def again(asked: Asked) -> bool:
    """Whether the agent asks for more by itself: a turn's call, though nobody's prompt."""
    return any(words in asked.last and pattern.search(asked.last) for words, pattern in AGAIN)


def is_context(content: bytes | memoryview) -> bool:
    """Whether a message's content is an agent's own note that ends each of its requests: what is
    said stands before it.
    """
    return _is_context(content) is not None


def _begun(signs: tuple[tuple[bytes, str], ...], text: bytes) -> str | None:
    """The first sign whose words a string in the JSON text begins with. A quote that is escaped is
    a part of one: a file that an agent reads may have the words anywhere.
    """
    for words, kind in signs:
        if words in text and re.search(rb'(?<!\\)"' + re.escape(words), text):
            return kind
    return None
