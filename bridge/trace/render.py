"""Rows as lines for a terminal.

Owns: the columns, the colours and how both degrade: no colour where it is not wanted or not there,
ASCII where the terminal speaks nothing else, no wider than the terminal. Columns: line of the file,
seconds since the start, time since the request (or a run's duration), channel and session, the way
it went (to the right is away from the host), id, method, summary. Pure.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import TextIO

import msgspec

from bridge.trace.runs import Row
from bridge.trace.summary import one_line, quoted, summarise
from bridge.trace.timeline import Entry
from bridge.wire import codec
from protocol_schemas.trace import Head

_STYLES = {
    "dim": "2",
    "error": "31;1",
    "host": "36",
    "acp": "32",
    "client": "34",
    "conductor": "34",
    "mcp": "35",
    "model": "33",
    "stderr": "2",
    "process": "1",
    "bridge": "1",
    "trace": "1",
    "method": "1",
}
_RIGHT = {
    *(("host", "in"), ("client", "in"), ("conductor", "in")),
    *(("acp", "out"), ("mcp", "out"), ("model", "in")),
}
_ASCII = str.maketrans({"→": ">", "←": "<", "×": "x", "…": "...", "⏎": "\\n", "·": "-"})


class Style(msgspec.Struct, frozen=True):
    """How to write: `width` in cells (0: any), colour and characters beyond ASCII or not, each
    message in full below its line or not."""

    width: int = 0
    colour: bool = False
    unicode: bool = True
    full: bool = False


def style_for(
    stream: TextIO, environment: Mapping[str, str], *, columns: int, colour: str, full: bool
) -> Style:
    """The style for a stream; `colour` is auto, always or never. Honours NO_COLOR and TERM=dumb."""
    terminal = stream.isatty()
    auto = terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    encoding = (stream.encoding or "ascii").lower().replace("-", "")
    return Style(
        width=columns if terminal else 0,
        colour=colour == "always" or (colour == "auto" and auto),
        unicode=encoding.startswith("utf"),
        full=full,
    )


def flow(entry: Entry) -> str:
    """→ away from the host, ← towards it, · neither."""
    event = entry.event
    if event.ch == "model":
        return "←" if event.kind in ("response", "response_body", "end") else "→"
    if event.dir is None:
        return "·"
    return "→" if (event.ch, event.dir) in _RIGHT else "←"


def seconds(value: float) -> str:
    """A duration for people: 340 µs, 27 ms, 1.21 s."""
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.0f} ms" if value < 1 else f"{value:.2f} s"


class Screen:
    """Lines for rows in a style."""

    def __init__(self, style: Style) -> None:
        self.style = style

    def head(self, head: Head) -> str:
        """The line for the beginning of a recording."""
        words = f"{head.program}  {' '.join(head.command)}  {head.wall}  pid {head.pid}"
        return self._finish(self._paint(one_line(words), "dim"))

    def damage(self, line: int, reason: str) -> str:
        return self._finish(f"{line:6}  " + self._paint(f"unreadable: {reason}", "error"))

    def lines(self, row: Row) -> Iterator[str]:
        """A row's line, and in full style its content below it."""
        yield self._finish(self._line(row))
        if self.style.full:
            for text in _content(row).split("\n"):
                yield self._encodable("        " + text)

    def _line(self, row: Row) -> str:
        entry, event = row.entry, row.entry.event
        since = entry.latency if entry.role == "response" else None
        if row.count > 1:
            since = row.last.event.t - event.t
        channel = f"{event.ch}:{event.session}" if event.session else event.ch
        ident = "" if entry.id is None or entry.id == "null" else f"#{entry.id.strip(chr(34))}"
        head = f"{event.line:6} {event.t:10.3f} {'' if since is None else seconds(since):>8}  "
        name = entry.method if entry.update is None else entry.update
        words = _words(row)
        if entry.failed:
            words = self._paint(words, "error")
        return "".join(
            (
                self._paint(head, "dim"),
                self._paint(f"{_cut(channel, 16):<16} {flow(entry)} ", event.ch),
                self._paint(f"{_cut(ident, 8):<8} ", "dim"),
                self._paint(f"{one_line(name)}", "error" if entry.failed else "method"),
                f"  {words}" if words else "",
            )
        )

    def _paint(self, text: str, style: str) -> str:
        code = _STYLES.get(style)
        if not self.style.colour or code is None:
            return text
        return f"\x1b[{code}m{text}\x1b[0m"

    def _finish(self, line: str) -> str:
        if self.style.width:
            line = _clip(line, self.style.width)
        return self._encodable(line)

    def _encodable(self, line: str) -> str:
        if self.style.unicode:
            # A lone surrogate has no encoding.
            return line.encode(errors="replace").decode()
        return line.translate(_ASCII).encode("ascii", "backslashreplace").decode()


def _words(row: Row) -> str:
    if row.count == 1:
        return summarise(row.entry)
    text = quoted(one_line(row.text)) if row.text and row.entry.update is not None else ""
    return f"×{row.count}  {row.size} bytes  {text}".rstrip()


def _content(row: Row) -> str:
    """What a row holds, for reading: the text of a run, a message laid out."""
    if row.count > 1:
        return row.text
    event = row.entry.event
    if event.content is None:
        return json.dumps(event.data, indent=2, ensure_ascii=False, default=str)
    if not event.is_json:
        return event.content.decode(errors="backslashreplace")
    try:
        value = codec.decode(event.content)
    except codec.JSONError:
        return event.content.decode(errors="backslashreplace")
    return json.dumps(value, indent=2, ensure_ascii=False)


def _cut(text: str, width: int) -> str:
    text = one_line(text)
    return text if len(text) <= width else text[: width - 1] + "…"


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _clip(line: str, width: int) -> str:
    """The line cut to so many cells; escape sequences take none and are kept."""
    used, at, end = 0, 0, len(line)
    while at < end:
        if line[at] == "\x1b":
            at = line.index("m", at) + 1
            continue
        cells = 1 if line[at] < "\x7f" else _cells(line[at])
        if used + cells > width - 1 and at < end - 1:
            rest = line[at:]
            reset = "\x1b[0m" if "\x1b[0m" in rest else ""
            return line[:at] + "…" + reset
        used += cells
        at += 1
    return line
