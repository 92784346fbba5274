"""The lines of a trace file (docs/trace-format.md): what was recorded, when, of which channel.

Rule: of `msg`, `text` and `b64` a record has one at most; it gives back the recorded bytes exactly,
masked secrets apart. Written by `bridge.trace.ledger`, read by `bridge.trace.reader`.
"""

from typing import Annotated, Any, Literal

import msgspec

FORMAT = 1
UNSET = msgspec.UNSET
Nanoseconds = Annotated[int, msgspec.Meta(ge=0)]

Direction = Literal["in", "out"]
"""As the bridge sees it: `in` came to it, `out` left it."""


class Head(msgspec.Struct, omit_defaults=True):
    """The first line of a recording, and of each later one that was appended to the same file.

    `t` and `wall` name one instant on the monotonic clock and on the wall (UTC, ISO 8601).
    `secrets`: whether known secrets were masked.
    """

    trace: Annotated[int, msgspec.Meta(ge=1)]
    t: Nanoseconds
    wall: str
    program: str = ""
    command: list[str] = []
    pid: int | None = None
    secrets: Literal["masked", "kept"] = "masked"


class Record(msgspec.Struct, omit_defaults=True, gc=False):
    """One thing that happened.

    `t`: nanoseconds on the system's monotonic clock, never less than on the line before.
    `ch`: `host` (packets), `acp` (the agent's pipes), `client` (the ACP client's pipes, in an
    active relay), `conductor` (the pipes of a component of a chain), `stderr`,
    `mcp`, `model`, `bridge` (decisions), `process`, `trace`.
    `session`: the host's name for it. `n`: which agent, call or exchange of its channel.
    `kind` and `data`: what an event was and its particulars.
    `msg`: a JSON text, byte for byte; `text`: any other UTF-8; `b64`: any other bytes.
    `end`: how the line ended, where not by a bare line feed (an empty string: not at all).
    """

    t: Nanoseconds
    ch: str
    dir: Direction | None = None
    session: str | None = None
    n: int | None = None
    kind: str | None = None
    data: dict[str, Any] = {}
    end: str | None = None
    msg: msgspec.Raw | msgspec.UnsetType = UNSET
    text: str | None = None
    b64: str | None = None
