"""Tables for a terminal, and the figures of `trace stats` in them. Pure."""

from collections.abc import Iterable, Sequence

from bridge.trace.render import seconds
from bridge.trace.stats import MethodStats, TraceStats, TurnStats


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> list[str]:
    """Lines of columns as wide as they must be; `right` names those that are set to the right."""
    every = [list(titles), *(list(row) for row in rows)]
    widths = [max(len(row[index]) for row in every) for index in range(len(titles))]
    sides = [">" if title in right.split() else "<" for title in titles]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)
        ).rstrip()
        for row in every
    ]


def bytes_of(size: int) -> str:
    """A size for people."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size = size / 1024  # pyright: ignore[reportAssignmentType]
    raise AssertionError


def _time(value: float | None) -> str:
    return "" if value is None else seconds(value)


def statistics(stats: TraceStats) -> list[str]:
    """The figures of a trace."""
    sizes = ", ".join(f"{way} {bytes_of(size)}" for way, size in stats.bytes.items() if size)
    lines = [f"{stats.events} events in {seconds(stats.seconds)}; {sizes or 'no bytes'}"]
    if stats.tokens:
        lines.append("tokens: " + ", ".join(f"{k} {v}" for k, v in stats.tokens.items()))
    if stats.retries:
        lines.append(f"retried MCP attempts: {stats.retries}")
    if stats.noise:
        lines.append(f"lines that are no message: {stats.noise}")
    if stats.methods:
        lines += ["", *_methods(stats.methods)]
    if stats.turns:
        lines += ["", *_turns(stats.turns)]
    if stats.updates:
        rows = [(name, str(count)) for name, count in stats.updates.items()]
        lines += ["", *table(("update", "count"), rows, "count")]
    return lines


def _methods(methods: Iterable[MethodStats]) -> list[str]:
    titles = ("channel", "dir", "method", "count", "failed", "open", "size", "p50", "p99", "max")
    rows = [
        (
            item.channel,
            item.dir or "",
            item.method,
            str(item.count),
            str(item.failed or ""),
            str(item.unanswered or ""),
            bytes_of(item.bytes),
            _time(item.p50),
            _time(item.p99),
            _time(item.max),
        )
        for item in methods
    ]
    return table(titles, rows, "count failed open size p50 p99 max")


def _turns(turns: Iterable[TurnStats]) -> list[str]:
    titles = ("turn", "line", "session", "total", "first", "model", "tools", "agent", "calls",
              "chunks", "stop reason")  # fmt: skip
    rows = [
        (
            str(number),
            str(turn.line),
            turn.session or turn.acp_session or "",
            _time(turn.seconds) or "open",
            _time(turn.first_update),
            _time(turn.model),
            _time(turn.tools),
            _time(turn.agent),
            str(turn.tool_calls),
            str(turn.chunks),
            turn.stop_reason or "",
        )
        for number, turn in enumerate(turns, 1)
    ]
    return table(titles, rows, "turn line total first model tools agent calls chunks")
