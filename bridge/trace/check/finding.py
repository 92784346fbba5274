"""A finding, and the way rules report one. Used by every module of `bridge.trace.check`."""

from typing import Protocol

import msgspec

from bridge.trace.check.rules import Severity, rules
from bridge.trace.timeline import Entry


class Finding(msgspec.Struct):
    """A breach: the line of the trace it is seen on, the rule, and what is wrong there."""

    line: int
    rule: str
    severity: Severity
    words: str
    spec: str
    channel: str = ""
    session: str | None = None
    method: str = ""
    t: float = 0.0


class Report:
    """Collects findings."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def say(self, rule: str, entry: Entry, words: str) -> None:
        """Notes that `entry` breaks `rule`."""
        known = rules()[rule]
        event = entry.event
        method = entry.update or entry.method
        self.findings.append(
            Finding(
                event.line, rule, known.severity, words, known.spec,
                event.ch, event.session, method, event.t,
            )
        )  # fmt: skip

    def at_line(self, rule: str, line: int, words: str) -> None:
        """Notes a breach by the file itself."""
        known = rules()[rule]
        self.findings.append(Finding(line, rule, known.severity, words, known.spec))


class Checks(Protocol):
    """A group of rules over one connection or one trace."""

    def see(self, entry: Entry) -> None:
        """The next entry."""
        ...

    def end(self) -> None:
        """There are no more."""
        ...
