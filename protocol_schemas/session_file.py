"""The lines of a session file of the embedded agent: one JSON object each, told apart by `kind`.

Rule: a line once written is never changed; what a session is, is what its lines add up to
(`bridge.loop_agent.state`). Written and read by `bridge.loop_agent.store`.
"""

from typing import Any

import msgspec

FORMAT = 1


class Line(msgspec.Struct, tag_field="kind", omit_defaults=True):
    """All of them."""


class Head(Line, tag="session"):
    """The first line. `created` is ISO 8601 in UTC; `parent` the session this one was forked from;
    `system` the system message, "" for none."""

    id: str
    cwd: str
    created: str
    format: int = FORMAT
    parent: str = ""
    system: str = ""


class Message(Line, tag="message"):
    """One chat message as the model gets it, and the `session/update`s a replay shows for it."""

    message: dict[str, Any]
    updates: list[dict[str, Any]] = []


class Title(Line, tag="title"):
    title: str


class Mode(Line, tag="mode"):
    """The permission mode set last."""

    mode: str


class Rule(Line, tag="rule"):
    """An "always" answer to a permission request."""

    tool: str
    allow: bool


class Spent(Line, tag="usage"):
    """Tokens of one model request, to be added up."""

    input: int = 0
    output: int = 0
    thought: int = 0
    cached: int = 0


AnyLine = Head | Message | Title | Mode | Rule | Spent
