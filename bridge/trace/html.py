"""A trace as one page that needs nothing else: `trace html`.

Owns: the data of the page and its assembly from the parts in `bridge/trace/page`. Rules: nothing is
loaded from anywhere (a content security policy says so); whatever stands in a trace is data and
never becomes markup; findings of `trace check` are marked on their lines. Called by
`bridge.cli.trace`.
"""

from importlib import resources
from typing import Any

from bridge.trace.check.finding import Finding
from bridge.trace.filter import tool_of
from bridge.trace.render import flow
from bridge.trace.runs import Runs
from bridge.trace.summary import summarise
from bridge.trace.timeline import Entry
from bridge.wire import codec

CONTENT = 1 << 18
"""Characters of one message that the page holds."""
_SCRIPTS = ("filter.js", "page.js")


Place = tuple[int, int]
"""The number of the run and of the turn that an entry belongs to; -1 for none."""


def page(title: str, entries: list[Entry], findings: list[Finding], *, live: bool = False) -> bytes:
    """The page's bytes. A `live` one asks where it came from for what is new."""
    parts = {name: _part(name) for name in ("page.html", "page.css", *_SCRIPTS)}
    places = Places()
    rows = data(entries, [places.of(entry) for entry in entries], findings)
    # In a script element only `<` could end the data.
    text = codec.encode(rows).replace(b"<", b"\\u003c").decode(errors="replace")
    html = parts["page.html"]
    for name, value in (
        ("connect", "'self'" if live else "'none'"),
        ("live", " data-live" if live else ""),
        ("css", parts["page.css"]),
        ("script", "\n".join(parts[name] for name in _SCRIPTS)),
        ("title", _escaped(title)),
        ("data", text),
    ):
        html = html.replace("{" + name + "}", value)
    return html.encode(errors="replace")


def data(entries: list[Entry], places: list[Place], findings: list[Finding]) -> dict[str, Any]:
    """What the page's script takes: rows, one list an event (page.js has the names of its
    members), and findings."""
    rows = [_row(entry, *place) for entry, place in zip(entries, places, strict=True)]
    return {"rows": rows, "findings": findings}


def _part(name: str) -> str:
    return (resources.files("bridge.trace.page") / name).read_text()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _row(entry: Entry, run: int, turn: int) -> list[Any]:
    event = entry.event
    content = b"" if event.content is None else event.content
    if event.content is None and event.data:
        content = codec.encode(event.data)
    text = content.decode(errors="replace")
    if len(text) > CONTENT:
        text = f"{text[:CONTENT]}… ({len(content)} bytes; trace show has the rest)"
    partner = entry.partner.event.line if entry.partner is not None else None
    return [
        event.line, round(event.t, 6), event.ch, event.dir, event.session, event.n, event.kind,
        entry.role, entry.method, entry.id, entry.update, entry.failed, partner, entry.latency,
        entry.session_id, tool_of(entry), summarise(entry), text, len(event.content or b""),
        run, turn, flow(entry),
    ]  # fmt: skip


class Places:
    """Where entries belong, told of one after the other."""

    def __init__(self) -> None:
        self._runs = Runs()
        self._firsts: dict[int, int] = {}
        """The numbers of runs, by their first entries (which the caller keeps)."""
        self._turns = 0
        self._running: list[tuple[int, Entry]] = []

    def of(self, entry: Entry) -> Place:
        """The next entry's run, and the turn that runs when it happens."""
        self._runs.add(entry)
        first = self._runs.run_of(entry)
        run = -1 if first is None else self._firsts.setdefault(id(first), len(self._firsts))
        return run, self._turn(entry)

    def _turn(self, entry: Entry) -> int:
        event = entry.event
        if event.ch == "acp" and entry.role == "request" and entry.method == "session/prompt":
            self._running.append((self._turns, entry))
            self._turns += 1
        self._running = [(n, turn) for n, turn in self._running if not _over(turn, event.line)]
        for number, turn in self._running:
            if event.session in (None, turn.event.session):
                return number
        return -1


def _over(turn: Entry, line: int) -> bool:
    return turn.partner is not None and turn.partner.event.line < line
