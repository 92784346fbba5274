"""Which of an agent's model calls are none of its turns': titles, suggestions, summaries, probes.

Rule: known by what stands in the request, never by which agent it is from; a table of signs, the
first that fits counts. What no sign fits may still be a side call: one that offers no tools while
the agent's turns do (bridge.model.dialects). Pure.
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


ENDS = (
    # Claude Code and Qwen Code send the whole conversation with its tools, and this at its end. The
    # quote: a text begins with it, where a file that an agent reads may have it anywhere.
    (b'"[SUGGESTION MODE: Suggest what', "suggestion"),
    # Claude Code, when a conversation becomes too long.
    (b"Your task is to create a detailed summary of", "summary"),
)
"""What side calls say at the end of the history, with tools or without."""
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
_AGAIN = re.compile(
    rb"(?:"
    rb"Please continue from where you left off\."  # Copilot, after an answer without text
    rb"|\[Your previous response had no visible output\.[^\"\\]*\]"  # Claude Code
    rb')(?:\\n)*"(?:\s*,\s*"cache_control"\s*:\s*\{[^{}]*\})?[\s}]*'
    # It is the last thing that is said, as histories keep it; a system message may follow.
    rb'(?:\](?:(?!"role"\s*:\s*"(?:user|assistant)").)*)?\Z',
    re.DOTALL,
)


_AGAIN_GEMINI = re.compile(
    rb'\[System: You previously returned an empty response[^"\\]*\]"\s*\}\s*\]'
    rb'(?:\s*,\s*"role"\s*:\s*"user")?\s*\}\s*\]?\s*\Z'
)
"""Gemini CLI adds it to the user's own message, as its last part."""


def side(asked: Asked) -> str | None:
    """The kind of side call that a request is, None for one that looks like a turn's."""
    for words, kind in ENDS:
        if words in asked.last:
            return kind
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
    last = asked.last
    if b"left off." in last or b"no visible output." in last:
        return bool(_AGAIN.search(last))
    return b"returned an empty response" in last and bool(_AGAIN_GEMINI.search(last))
