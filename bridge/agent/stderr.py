"""How much of an agent's stderr goes on to the daemon's own: its beginning and its end. Sans-IO.

Owns: the budget. Rule: an agent that floods its stderr must not fill the host's log: a share is
passed on for the start and for each turn, the rest is held back, and of that the last is let out
where it explains a failure (hosts append the last 4000 bytes of our stderr to their errors).
Fed by `bridge.agent.supervisor`.
"""

SHARE = 256 * 1024
"""Bytes passed on before a turn, and in each turn."""
TAIL = 8 * 1024
"""Bytes of what was held back that are let out after a failure."""


class StderrShare:
    """One agent's share of the daemon's stderr."""

    def __init__(self) -> None:
        self._left = SHARE
        self._held = 0
        self._tail = bytearray()

    def feed(self, data: bytes) -> bytes:
        """What of `data` is to be passed on now."""
        passed, rest = data[: self._left], data[self._left :]
        self._left -= len(passed)
        if rest:
            self._held += len(rest)
            self._tail += rest[-TAIL:]
            del self._tail[:-TAIL]
        return passed

    def refill(self) -> None:
        """A turn begins: it has a share of its own."""
        self._left = SHARE
        self._held = 0
        self._tail.clear()

    def rest(self) -> bytes:
        """The end of what was held back, with a line that says how much was; once."""
        if not self._held:
            return b""
        note = f"\nacp-mcp-bridge: held back {self._held} bytes of the agent's stderr; the last:\n"
        tail = bytes(self._tail)
        self._held = 0
        self._tail.clear()
        return note.encode() + tail
