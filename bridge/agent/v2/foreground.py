"""Whose work an agent does, and when a turn of it is over: version 2's `state_update`.

Owns: one session's foreground state. Rules:
- A prompt's turn ends with the `idle` that follows work after its insertion; its insertion is told
  by the response or by the echo of the user's message, whichever is first.
- An `idle` from before can be of work that crossed the prompt on the wire, or all that a careless
  agent says: it is doubtful, and stands if nothing contradicts it for a while.
- Work that begins with no prompt under way is a turn of the agent's own.
- Repeated states are no news.

Sans-IO: an event in, a `Step` out. Used by `bridge.agent.v2.session`.
"""

from typing import Literal

Step = Literal["begin", "end", "doubt", "anew"] | None
"""What an event means: the agent begins a turn of its own; the turn is over; it may be over (until
`anew`, or until the doubt is settled by who waits); it goes on, and what came before its insertion
was not of it."""


class Foreground:
    """The states of a session, from its agent's updates and the client's prompts."""

    def __init__(self) -> None:
        self.running = False
        """Whether a turn runs, the host's or the agent's."""
        self._busy = False
        """The last state: work is being done, or waits for the user."""
        self._open = False
        self._ours = False
        self._inserted = False
        self._worked = False
        """Whether work was seen since the prompt was sent."""
        self._doubtful = False
        self._cancelled = False

    def open(self) -> Step:
        """The session is there: what was told before (a replay's state) may be a turn that runs."""
        self._open = True
        return self._begin() if self._busy else None

    def sent(self) -> None:
        """A prompt was sent; no turn was running."""
        self.running = self._ours = True
        self._inserted = self._worked = self._doubtful = self._cancelled = False

    def echoed(self) -> Step:
        """The agent tells of a user's message: the prompt's, if it was not inserted yet."""
        if not self._ours or self._inserted:
            return None
        self._inserted, self._worked = True, self._busy
        return self._withdraw()

    def accepted(self) -> None:
        """The prompt's response, not an error."""
        if self._ours and not self._inserted:
            self._inserted = True
            self._worked = self._busy and not self._doubtful

    def cancelled(self) -> Step:
        """We asked for an end: nothing is doubtful any more."""
        self._cancelled = True
        return self.over() if self._doubtful else None

    def works(self) -> Step:
        """A state that is not idle: running, requires_action, or one we do not know."""
        fresh, self._busy = not self._busy, True
        if self._ours:
            self._worked = True
            return self._withdraw()
        if fresh and self._open and not self.running:
            return self._begin()
        return None

    def idles(self, *, reason: bool) -> Step:
        """The state idle; `reason`: it says why the work has stopped."""
        self._busy = False
        if not self.running:
            return None
        if not self._ours or self._cancelled or (self._inserted and self._worked):
            return self.over()
        if reason or self._worked:
            self._doubtful, self._worked = True, False
            return "doubt"
        return None

    def over(self) -> Step:
        """The turn is over, by whatever ended it."""
        self.running = self._ours = self._doubtful = False
        return "end"

    def _begin(self) -> Step:
        self.running = True
        self._cancelled = False
        return "begin"

    def _withdraw(self) -> Step:
        doubtful, self._doubtful = self._doubtful, False
        return "anew" if doubtful else None
