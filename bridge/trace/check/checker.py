"""`trace check`: a trace against all rules.

Owns: which groups of rules look at what: one set for each ACP connection, one for the host, the
model and MCP. Rule: what a message is judged by is the state before it; a recording that was cut
off is not blamed for what was never answered. Called by `bridge.cli.trace`.
"""

from collections.abc import Iterable

from bridge.trace.check.calls import Calls
from bridge.trace.check.capabilities import Capabilities
from bridge.trace.check.context import Context
from bridge.trace.check.exchanges import Exchanges
from bridge.trace.check.finding import Checks, Finding, Report
from bridge.trace.check.hosts import Hosts
from bridge.trace.check.lifecycle import Lifecycle
from bridge.trace.check.messages import Messages
from bridge.trace.check.permissions import Permissions
from bridge.trace.check.servers import Servers
from bridge.trace.check.sessions import Sessions
from bridge.trace.check.silence import Silence
from bridge.trace.check.tools import Tools
from bridge.trace.check.turns import Turns
from bridge.trace.reader import Damage
from bridge.trace.timeline import Entry
from protocol_schemas.trace import Head

_CLOSED = "closed"


class Connection:
    """One ACP connection under all rules."""

    def __init__(self, report: Report) -> None:
        self._context = Context()
        groups = (Messages, Calls, Lifecycle, Capabilities, Sessions, Turns, Permissions, Tools)
        self._groups: list[Checks] = [group(self._context, report) for group in groups]

    def see(self, entry: Entry) -> None:
        for group in self._groups:
            group.see(entry)
        self._context.follow(entry)

    def end(self) -> None:
        for group in self._groups:
            group.end()


class Checker:
    """One trace file. `result` after the last item."""

    def __init__(self) -> None:
        self._report = Report()
        self._closed: bool | None = None
        """Whether the recording was closed; None as long as that is not said."""
        self._line = 0
        self._begin()

    def _begin(self) -> None:
        self._connections: dict[tuple[str, int | None], Connection] = {}
        self._silences: dict[str | None, Silence] = {}
        self._exchanges = Exchanges(self._report)
        self._servers = Servers(self._report)
        self._hosts = Hosts(self._report)

    def see(self, item: Entry | Head | Damage) -> None:
        """The next item of the trace."""
        if isinstance(item, Damage):
            rule = "incomplete" if item.torn else "damage"
            self._report.at_line(rule, item.line, item.reason)
        elif isinstance(item, Head):
            self._finish()
            self._begin()
            self._closed = False
        else:
            self._line = item.event.line
            self._entry(item)

    def _entry(self, entry: Entry) -> None:
        event = entry.event
        match event.ch:
            case "acp" | "client":
                key = event.ch, event.n
                if key not in self._connections:
                    self._connections[key] = Connection(self._report)
                self._connections[key].see(entry)
            case "host":
                self._hosts.see(entry)
            case "model" | "bridge":
                self._exchanges.see(entry)
            case "mcp":
                self._servers.see(entry)
            case "trace":
                if event.kind == "end":
                    self._closed = event.data.get("reason") == _CLOSED
            case _:
                pass
        if event.ch in ("acp", "stderr", "process"):
            self._silences.setdefault(event.session, Silence(self._report)).see(entry)

    def _finish(self) -> None:
        if self._closed is False:
            if self._line:
                words = "the recording was not closed; what is missing at its end is not judged"
                self._report.at_line("incomplete", self._line, words)
            return
        groups: Iterable[Checks] = (*self._connections.values(), self._hosts, self._servers)
        for group in groups:
            group.end()

    @property
    def findings(self) -> list[Finding]:
        """What has been found so far; more may come of lines that were seen already."""
        return self._report.findings

    def result(self) -> list[Finding]:
        """All findings, in the order of the lines."""
        self._finish()
        return sorted(self._report.findings, key=lambda finding: finding.line)


def check(items: Iterable[Entry | Head | Damage | None]) -> list[Finding]:
    """The findings on a whole trace."""
    checker = Checker()
    for item in items:
        if item is not None:
            checker.see(item)
    return checker.result()
