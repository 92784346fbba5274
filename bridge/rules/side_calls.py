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
    instructions and the first message, in lower case; `last`: the end of the history.
    """

    tools: bool = False
    one_token: bool = False
    schema: bytes = b""
    first: bytes = b""
    last: bytes = b""


class Sign(NamedTuple):
    """What one kind of side call looks like: all that is given here fits. `tools` None: either."""

    side: str
    tools: bool | None = None
    one_token: bool = False
    schema: re.Pattern[bytes] | None = None
    first: bytes = b""
    last: bytes = b""
    says: re.Pattern[bytes] | None = None
    """Of the last message, where few requests come so far: it is slower."""

    def fits(self, asked: Asked) -> bool:
        """Whether a request is of this kind."""
        return (
            (self.tools is None or self.tools == asked.tools)
            and (asked.one_token or not self.one_token)
            and (self.schema is None or self.schema.search(asked.schema) is not None)
            and self.first in asked.first
            and self.last in asked.last
            and (self.says is None or self.says.search(asked.last) is not None)
        )


_HELLO = re.compile(rb'"(?:hi|hello|warmup)"', re.IGNORECASE)
SIGNS = (
    # Claude Code and Qwen Code send the whole conversation with its tools, and this at its end. The
    # quote: a text begins with it, where a file that an agent reads may have it anywhere.
    Sign("suggestion", last=b'"[SUGGESTION MODE: Suggest what'),
    # Claude Code's adapter after a fork and a load: "Hi", one token.
    Sign("warm-up", one_token=True, says=_HELLO),
    # Claude Code's "quota", and anybody who asks whether a key works.
    Sign("probe", one_token=True),
    # codex: another model, a format with a title in it (and tools all the same).
    Sign("title", schema=re.compile(rb'"properties"\s*:\s*\{\s*"title"')),
    # opencode ("You are a title generator"), Claude Code ("a concise, sentence-case title"), ...
    Sign("title", tools=False, first=b"title"),
    Sign("summary", last=b"Your task is to create a detailed summary of"),
    # opencode ("tasked with summarizing conversations"), ...
    Sign("summary", tools=False, first=b"summariz"),
)
_AGAIN_WORDS = (b"left off.", b"no visible output.")
_AGAIN = re.compile(
    rb"(?:"
    rb"Please continue from where you left off\."  # Copilot, after an answer without text
    rb"|\[Your previous response had no visible output\.[^\"\\]*\]"  # Claude Code
    rb')(?:\\n)*"(?:\s*,\s*"cache_control"\s*:\s*\{[^{}]*\})?[\s}]*'
    # It is the last thing that is said, as histories keep it; a system message may follow.
    rb'(?:\](?:(?!"role"\s*:\s*"(?:user|assistant)").)*)?\Z',
    re.DOTALL,
)


def side(asked: Asked) -> str | None:
    """The kind of side call that a request is, None for one that looks like a turn's."""
    return next((sign.side for sign in SIGNS if sign.fits(asked)), None)


def again(asked: Asked) -> bool:
    """Whether the agent asks for more by itself: a turn's call, though nobody's prompt."""
    said = any(words in asked.last for words in _AGAIN_WORDS)
    return said and _AGAIN.search(asked.last) is not None
