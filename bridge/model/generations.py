"""A session's generations in the turn that runs: which failed, and what went well after that.

Rule: to a turn belong those that began between its start and its end, side calls told apart. What
the agent itself broke off, and what a limit refused, is no fault of the model's. An agent that has
the status or the last event of an answer may end its turn before the answer's last byte: what is
under way then counts by its status. An account's part, fed by bridge.model.relay; the session layer
says when a turn begins and asks at its end.
"""

from typing import NamedTuple

from protocol_schemas.model import ModelError, ModelEvent, ModelTurn

_GENERATING = ("turn", "side")


class _Failure(NamedTuple):
    error: ModelError
    before: int
    """The newest exchange when it failed: one after that is another try."""


class Generations:
    """One session's. Exchanges are numbered in the order in which they begin."""

    def __init__(self) -> None:
        self._newest = 0
        self._open: dict[int, ModelEvent] = {}
        self._since: int | None = None
        """The newest exchange when the turn began; None between turns."""
        self._failures: list[_Failure] = []
        self._succeeded: dict[str, int] = {}
        self._failed = 0
        self._limited = False

    def began(self, event: ModelEvent) -> None:
        """An exchange has begun, and this is what will be told of it."""
        self._newest = event.exchange
        self._open[event.exchange] = event

    def turn_began(self) -> None:
        """What begins from now on belongs to a turn."""
        self._since = self._newest
        self._failures, self._succeeded = [], {}
        self._failed, self._limited = 0, False

    def ended(self, event: ModelEvent) -> None:
        """An exchange has ended, and this is what came of it."""
        self._open.pop(event.exchange, None)
        good = event.outcome == "complete" or event.finish_reason is not None
        self._count(event, failed=failed(event), succeeded=good)

    def _count(self, event: ModelEvent, *, failed: bool, succeeded: bool) -> None:
        """Counts an exchange, if it is a generation of the turn."""
        if self._since is None or event.exchange <= self._since or event.purpose not in _GENERATING:
            return
        if event.limit is not None:
            self._limited = True
        elif failed:
            words = event.error or f"status {event.status}"
            error = ModelError(event.exchange, event.status, words, event.purpose, event.side)
            self._failures.append(_Failure(error, self._newest))
            if event.purpose == "turn":
                self._failed = max(self._failed, event.exchange)
        elif succeeded:
            before = self._succeeded.get(event.purpose, 0)
            self._succeeded[event.purpose] = max(before, event.exchange)

    def turn_ended(self) -> ModelTurn:
        """What the turn's calls came to."""
        for event in self._open.values():
            if (status := event.status) is not None:
                self._count(event, failed=status >= 400, succeeded=status < 300)
        self._since = None
        for error, before in self._failures:
            error.recovered = self._succeeded.get(error.purpose, 0) > before
        errors = [error for error, _ in self._failures]
        succeeded = self._succeeded.get("turn", 0)
        if self._limited or succeeded == self._failed == 0:
            return ModelTurn(errors)
        return ModelTurn(errors, "answered" if succeeded > self._failed else "failed")


def failed(event: ModelEvent) -> bool:
    """Whether an exchange failed: by its status, by breaking off, by an error in its answer."""
    if event.outcome == "gone":
        return event.status is not None and event.status >= 400
    return event.outcome != "complete" or (event.status or 0) >= 400 or event.error is not None
