"""What each session has spent on models, and whether it may call again.

Owns: the counts by session. Rule: a turn counts from when it is let through, so that calls made at
once cannot all slip under a limit; one that fails is given back. Used by bridge.model.relay; the
limit that stopped a session is asked for by the session's own result.
"""

import time

from bridge.model.generations import Generations
from bridge.rules import limits as rules
from protocol_schemas.model import ModelLimits, Usage

_NAMES = 100
"""Models that are remembered by name."""


class Account:
    """One session's counts."""

    def __init__(self) -> None:
        self._turns = 0
        self._tokens = 0
        self._capped = False
        self._began: float | None = None
        self.offered_tools = False
        """Whether any call has offered tools: those that offer none are side calls then."""
        self.stopped_by: str | None = None
        """The limit that a call was refused for."""
        self.models: dict[str, None] = {}
        """The models that requests have named, in order."""
        self.generations = Generations()

    def named(self, model: str | None) -> None:
        """A request has named a model."""
        if model is not None and len(self.models) < _NAMES:
            self.models[model] = None

    def admit(self, limits: ModelLimits, *, turn: bool) -> str | None:
        """Lets a generation through, or says which limit forbids it."""
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        spent = rules.Spent(self._turns, self._tokens, self._capped, now - self._began)
        name = rules.reached(limits, spent)
        if name is not None:
            self.stopped_by = name
        elif turn:
            self._turns += 1
        return name

    def give_back(self) -> None:
        """A turn that was let through brought nothing."""
        self._turns -= 1

    def add(
        self, limits: ModelLimits, usage: Usage | None, *, cut_short: bool, counted: int = 0
    ) -> int:
        """Counts what an answer cost, of which `counted` tokens have been counted already; gives
        all its tokens.
        """
        tokens = 0 if usage is None else (usage.input or 0) + (usage.output or 0)
        self._tokens += tokens - counted
        if rules.ran_into_cap(limits, usage, cut_short):
            self._capped = True
        return tokens
