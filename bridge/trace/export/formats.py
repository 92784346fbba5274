"""The formats by name. Called by `bridge.cli.trace`."""

from collections.abc import Callable
from typing import Literal, get_args

from bridge.trace.export import har, jsonl, otlp, perfetto
from bridge.trace.export.source import Source
from bridge.trace.traffic import Traffic

Format = Literal["jsonl", "har", "perfetto", "otlp"]
NAMES: tuple[str, ...] = get_args(Format)


def write(source: Source, name: Format, filter_text: str, out: Callable[[bytes], object]) -> None:
    """Writes the wanted part of a trace. Raises UsageError."""
    if name == "jsonl":
        for line in jsonl.lines(source.wanted(filter_text), masking=source.masking.on):
            out(line)
        return
    entries = source.entries(filter_text)
    match name:
        case "har":
            out(har.text(source.head(), Traffic(entries)))
        case "perfetto":
            out(perfetto.text(entries, Traffic(entries)))
        case "otlp":
            out(otlp.text(source.head(), Traffic(entries)))
