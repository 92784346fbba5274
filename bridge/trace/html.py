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
from bridge.trace.traffic import Span, Traffic
from bridge.wire import codec

CONTENT = 1 << 18
"""Characters of one message that the page holds."""
_SCRIPTS = ("filter.js", "page.js")


def page(title: str, entries: list[Entry], findings: list[Finding], *, live: bool = False) -> bytes:
    """The page's bytes. A `live` one asks where it came from for what is new."""
    parts = {name: _part(name) for name in ("page.html", "page.css", *_SCRIPTS)}
    # In a script element only `<` could end the data.
    text = codec.encode(data(entries, findings)).replace(b"<", b"\\u003c").decode(errors="replace")
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


def data(
    entries: list[Entry], findings: list[Finding], whole: list[Entry] | None = None
) -> dict[str, Any]:
    """What the page's script takes: rows and findings. `whole`: the trace so far, where `entries`
    are but its end."""
    return {"rows": _rows(entries, entries if whole is None else whole), "findings": findings}


def _part(name: str) -> str:
    return (resources.files("bridge.trace.page") / name).read_text()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def _rows(entries: list[Entry], whole: list[Entry]) -> list[list[Any]]:
    """One list an event; page.js has the names of its members."""
    runs = _runs(whole)
    turns = _turns(whole)
    return [_row(entry, runs.get(id(entry), -1), turns.get(id(entry), -1)) for entry in entries]


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


def _runs(entries: list[Entry]) -> dict[int, int]:
    """The number of the run an entry belongs to."""
    found: dict[int, int] = {}
    runs = Runs()
    for number, entry in enumerate(entries):
        runs.add(entry)
        if (first := runs.run_of(entry)) is not None:
            found[id(entry)] = found.get(id(first), number)
    return found


def _turns(entries: list[Entry]) -> dict[int, int]:
    """The number of the turn that runs when an entry happens."""
    found: dict[int, int] = {}
    waiting = list(enumerate(Traffic(entries).turns))[::-1]
    running: list[tuple[int, Span]] = []
    for entry in entries:
        line = entry.event.line
        while waiting and waiting[-1][1].entry.event.line <= line:
            running.append(waiting.pop())
        running = [(n, turn) for n, turn in running if not _over(turn, line)]
        for number, turn in running:
            if entry.event.session in (None, turn.entry.event.session):
                found[id(entry)] = number
                break
    return found


def _over(turn: Span, line: int) -> bool:
    return turn.last is not None and turn.last.event.line < line
