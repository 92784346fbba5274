"""What a session's agent is peculiar about, by its profile; nothing where a command started it.

Pure; asked by `bridge.session.session`, `attendance`, `operations` and `bridge.once`.
"""

from typing import TYPE_CHECKING

from protocol_schemas.host import Config

if TYPE_CHECKING:
    from bridge.session.session import Session
    from protocol_schemas.profile import Quirks


def told(session: "Session") -> str | None:
    """The system prompt that the agent was told when the session was made."""
    return None if session.opened is None else session.opened.told


def settle(session: "Session") -> float:
    """Seconds after a turn's response in which the agent still tells something of it."""
    quirks = _quirks(session)
    return 0.0 if quirks is None else quirks.settle


def allows_empty(session: "Session", config: Config) -> bool:
    """Whether a prompt with this config may end without text behind its tool calls."""
    for given in (config.allow_empty_tool_reply, session.config.allow_empty_tool_reply):
        if given is not None:
            return given
    quirks = _quirks(session)
    return quirks is not None and quirks.allow_empty_tool_reply


def _quirks(session: "Session") -> "Quirks | None":
    opened = session.opened
    return None if opened is None or opened.profile is None else opened.profile.quirks
