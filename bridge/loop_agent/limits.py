"""The bounds of a turn, as the command line gives them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """`model_requests`: in one turn; `context_window`: tokens, told to clients in usage updates."""

    model_requests: int = 200
    context_window: int = 128_000
