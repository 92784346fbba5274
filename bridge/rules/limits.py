"""When a session's model calls end: turns, tokens, time.

Rule: soft by one call. What a call costs is known when it has ended, so the call that reaches a
limit is finished, and the next one is refused with the limit's name. Pure; the counting is
bridge.model.ledger's.
"""

from typing import NamedTuple

from protocol_schemas.model import ModelLimits, Usage


class Spent(NamedTuple):
    """What a session has used: turns begun (those that failed not counted), tokens in and out,
    whether an answer ran into `max_turn_tokens`, seconds since its first call.
    """

    turns: int = 0
    tokens: int = 0
    capped: bool = False
    seconds: float = 0.0


def reached(limits: ModelLimits, spent: Spent) -> str | None:
    """The limit that forbids the next call, by its name in ModelLimits."""
    if limits.max_turns is not None and spent.turns >= limits.max_turns:
        return "max_turns"
    if limits.max_turn_tokens is not None and spent.capped:
        return "max_turn_tokens"
    if limits.max_total_tokens is not None and spent.tokens >= limits.max_total_tokens:
        return "max_total_tokens"
    if limits.max_seconds is not None and spent.seconds >= limits.max_seconds:
        return "max_seconds"
    return None


def words(limits: ModelLimits, name: str) -> str:
    """What a refused call is told."""
    return f"the run's limit {name} ({getattr(limits, name):g}) is reached: no more model calls"


def ran_into_cap(limits: ModelLimits, usage: Usage | None, cut_short: bool) -> bool:
    """Whether an answer used up `max_turn_tokens`: by its tokens, or since its finish reason says
    that it was `cut_short` by a cap while that was the cap.
    """
    cap = limits.max_turn_tokens
    if cap is None:
        return False
    return cut_short or (usage is not None and (usage.output or 0) >= cap)


def lowered(cap: int, asked: object) -> int | None:
    """The cap to put in place of what the request asks for; None if that is no higher. Below 0 is
    none at all, as llama.cpp and Ollama have it.
    """
    if isinstance(asked, int | float) and not isinstance(asked, bool) and 0 <= asked <= cap:
        return None
    return cap
