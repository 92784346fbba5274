"""What the daemon tells whoever records it, as plain callables.

Rule: nothing here knows a recorder; a daemon that is not recorded calls what does nothing. Made by
`bridge.app`, handed down by `bridge.session.daemon`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from bridge.rpc.connection import Tap, Taps

ExchangeTap = Callable[[str, str, int, Any, dict[str, Any], Any], None]
"""As `bridge.model.record.Tap`."""


class Note(Protocol):
    """Takes down what happened: a channel, what it was, its particulars."""

    def __call__(
        self, channel: str, kind: str, data: Mapping[str, Any], /, *, session: str | None = None
    ) -> None: ...


def unnoted(
    channel: str, kind: str, data: Mapping[str, Any], /, *, session: str | None = None
) -> None:
    """The Note of a daemon that is not recorded."""


class Observers(NamedTuple):
    """`taps` see agents' pipes, `exchanges`, `mcp` and `mcp_heads` the proxies' traffic; `note`
    hears of events, `secret` of values (by name) that must not be shown."""

    taps: Taps | None = None
    note: Note = unnoted
    exchanges: ExchangeTap | None = None
    secret: Callable[[str, str], None] | None = None
    mcp: Tap | None = None
    mcp_heads: Callable[[dict[str, Any]], None] | None = None


UNOBSERVED = Observers()
