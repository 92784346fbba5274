"""What a failed attempt means: one table, from the failure to what is done next.

Owns: the decision alone, no clock and no I/O. Rule: a call that may have been executed is run
again only where its delivery mode, or the tool's own word, allows it. Source: MCP_PROXY.md
"Attempts". Called by `bridge.mcp.call` after each attempt.
"""

import re
from collections.abc import Callable
from datetime import UTC
from typing import Literal, NamedTuple

from protocol_schemas.mcp import Backoff, Delivery, Hints

Kind = Literal[
    "connect",
    "opening",
    "refused",
    "session",
    "headers",
    "lost",
    "timeout",
    "rejected",
]
"""The rows of the table:

- `connect`: refused, DNS, TLS, connect timeout
- `opening`: initialize or discover failed, or anything else before the call was written
- `refused`: 429, 503: turned away before execution
- `session`: the server does not know the session it gave us
- `headers`: -32020, the headers did not match the server's newer tool
- `lost`: the call was written, and no readable answer came
- `timeout`: the call's own timeout
- `rejected`: what another attempt would not change (401, a redirect elsewhere, a huge result)
"""

Executed = Literal["no", "maybe", "-"]
Verdict = Literal["retry", "unknown", "timeout", "failed"]
"""`retry`; or give up, because the `unknown` outcome must not be doubled, because the call's
`timeout` has passed, or because it `failed` for good."""

EXECUTED: dict[Kind, Executed] = {
    "connect": "no",
    "opening": "no",
    "refused": "no",
    "session": "no",
    "headers": "no",
    "lost": "maybe",
    "timeout": "maybe",
    "rejected": "-",
}

RETRY_AFTER_CAP = 60.0
_REFUSED = frozenset({429, 503})
_LOST = frozenset({408, 425})
NO_HINTS = Hints()
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")


class Failure(NamedTuple):
    """Why an attempt gave no answer. `detail`: in words; `retry_after`: seconds, if the server
    said; `status`: the HTTP status, if there was one."""

    kind: Kind
    detail: str
    retry_after: float | None = None
    status: int | None = None


def from_status(status: int, *, written: bool, in_session: bool) -> Kind:
    """The row for an HTTP status that came without an answer to our id.

    `written`: it answered the call itself, not what opens the session; `in_session`: the request
    carried a session id that this attempt had just been given.
    """
    if status in _REFUSED:
        return "refused"
    if status in _LOST or status >= 500 or status < 300:
        return "lost" if written else "opening"
    if in_session and status in (404, 400):
        return "session"
    return "rejected"


def effective(delivery: Delivery, hints: Hints) -> Delivery:
    """The delivery mode after the tool's own word: it can be stricter than the mode, not laxer."""
    binding = hints.destructive_hint is True or hints.idempotent_hint is False
    return "safe" if binding and delivery == "at-least-once" else delivery


def verdict(kind: Kind, delivery: Delivery, hints: Hints = NO_HINTS) -> Verdict:
    """What the table says. `delivery` is the server's or the tool's configured mode."""
    if kind == "rejected":
        return "failed"
    if kind == "timeout":
        return "timeout"
    if EXECUTED[kind] == "no":
        return "retry"
    match effective(delivery, hints):
        case "at-least-once":
            return "retry"
        case "safe" if hints.read_only_hint is True or hints.idempotent_hint is True:
            return "retry"
        case _:
            return "unknown"


def wait_before_next(
    attempt: int, backoff: Backoff, retry_after: float | None, uniform: Callable[[], float]
) -> float:
    """Seconds between attempt `attempt` (from 1) and the next one.

    min(max, initial x 2^(n-1) + U(0, min(1 s, initial x 2))), at least what the server asked for,
    of which no more than 60 s are granted. `uniform` gives a float in [0, 1).
    """
    jitter = uniform() * min(1.0, backoff.initial * 2)
    # The exponent is capped before the power: 2**5000 would not fit a float.
    wait = min(backoff.max, backoff.initial * 2.0 ** min(attempt - 1, 64) + jitter)
    return max(wait, min(retry_after or 0.0, RETRY_AFTER_CAP))


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """A `Retry-After` header in seconds from `now` (Unix time); None if absent or unreadable.

    RFC 9110 §10.2.3: a number of seconds, or a date. A date that has passed is 0.
    """
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), 1e9)
    # Loaded here: the date form is rare, and the daemon's start is not.
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
