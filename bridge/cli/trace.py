"""`acp-mcp-bridge trace`: the debugger's commands on trace files.

Owns: their arguments, and stdout. Rule: one subcommand, one function; what they do is in
`bridge.trace`, imported when it is called.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from bridge.cli.options import add_loop_option
from bridge.errors import UsageError

if TYPE_CHECKING:
    from bridge.trace.export.masking import Masking
    from bridge.trace.export.source import Source
    from bridge.trace.view import Selection

FILTER_HELP = (
    'what to look at, such as: channel:acp method:session/* dir:in id:7 text~"rate limit" since:5s '
    "is:error latency>2s (docs/debugging.md has all of it)"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Looks at recordings: shows, follows, counts."
    commands = parser.add_subparsers(dest="trace", metavar="COMMAND", required=True)
    for name, (words, add, run_it) in _COMMANDS.items():
        child = commands.add_parser(name, help=words, description=words)
        add(child)
        child.set_defaults(run_trace=run_it)


def run(options: argparse.Namespace) -> int:
    """Runs a subcommand; raises UsageError."""
    sys.stdout.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return options.run_trace(options)


def _add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a trace; - for stdin")
    parser.add_argument("filter", metavar="FILTER", nargs="*", default=[], help=FILTER_HELP)


def _add_view(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument("--full", action="store_true", help="each message in full, laid out")
    parser.add_argument(
        "--raw",
        action="store_true",
        help="the recorded bytes and nothing else, each with the end it had",
    )
    parser.add_argument(
        "--no-collapse", action="store_true", help="a row for each chunk, not one for a run"
    )
    parser.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="colours (auto)"
    )


def _add_show(parser: argparse.ArgumentParser) -> None:
    _add_view(parser)
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on as the file grows, to its end"
    )


def _add_tail(parser: argparse.ArgumentParser) -> None:
    _add_view(parser)
    parser.add_argument(
        "-n", type=int, default=10, metavar="ROWS", help="rows from what is there already (10)"
    )


def _add_stats(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def _add_check(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON list")
    parser.add_argument("--all", action="store_true", help="also those that repeat a rule often")
    parser.add_argument(
        "--least",
        choices=("error", "warning", "info"),
        default="info",
        help="the least grave that are listed (info)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (stdout)")
    parser.add_argument(
        "--mask", action="append", default=[], metavar="VALUE", help="mask this value too"
    )
    parser.add_argument(
        "--keep-secrets", action="store_true", help="leave in what the recording kept"
    )


def _add_export(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument(
        "--format",
        choices=("jsonl", "har", "perfetto", "otlp"),
        default="jsonl",
        help="jsonl: a trace again; har: model and MCP traffic for a browser's network panel; "
        "perfetto: Chrome trace events; otlp: OpenTelemetry spans (jsonl)",
    )
    _add_output(parser)


def _add_html(parser: argparse.ArgumentParser) -> None:
    _add_file(parser)
    parser.add_argument("--title", metavar="WORDS", help="the page's title (the file's name)")
    parser.add_argument(
        "--serve", action="store_true", help="serve the page on loopback, growing with the trace"
    )
    _add_output(parser)


def _add_replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a trace")
    parser.add_argument(
        "--as",
        dest="role",
        choices=("agent", "client", "model"),
        default="agent",
        help="agent: on stdio, for a host or client; client: for the agent CMD; model: a server "
        "on loopback, whose URL is printed (agent)",
    )
    parser.add_argument("--n", type=int, default=None, help="which agent of the trace (the first)")
    parser.add_argument("--delays", action="store_true", help="as slow as it was; else at once")
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for each step of a client (60)",
    )
    add_loop_option(parser)
    parser.add_argument("argv", metavar="-- CMD", nargs="*", help="as a client: the agent")


def _add_diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="A", help="a trace")
    parser.add_argument("other", metavar="B", help="another")
    parser.add_argument("filter", metavar="FILTER", nargs="*", default=[], help=FILTER_HELP)
    parser.add_argument("--times", action="store_true", help="the times of all methods, too")
    parser.add_argument("--json", action="store_true", help="as one JSON object")


def _selection(options: argparse.Namespace, *, follow: bool = False) -> "Selection":
    from bridge.trace.view import Selection

    return Selection(options.file, " ".join(options.filter), follow)


def _show(options: argparse.Namespace) -> int:
    return _view(options, _selection(options, follow=options.follow), last=None)


def _tail(options: argparse.Namespace) -> int:
    return _view(options, _selection(options, follow=True), last=options.n)


def _view(options: argparse.Namespace, selection: "Selection", *, last: int | None) -> int:
    from bridge.trace import render, view

    if options.raw:
        view.write_raw(selection, sys.stdout.buffer, last=last)
        return 0
    columns = shutil.get_terminal_size().columns
    style = render.style_for(
        sys.stdout, os.environ, columns=columns, colour=options.color, full=options.full
    )
    screen = render.Screen(style)
    view.print_rows(selection, screen, sys.stdout, collapse=not options.no_collapse, last=last)
    return 0


def _stats(options: argparse.Namespace) -> int:
    from bridge.trace import stats, tables, view
    from bridge.wire import codec

    statistics = stats.Statistics()
    for entry in view.entries(options.file, " ".join(options.filter)):
        statistics.add(entry)
    result = statistics.result()
    if options.json:
        print(codec.encode(result).decode())
    else:
        print("\n".join(tables.statistics(result)))
    return 0


def _check(options: argparse.Namespace) -> int:
    from bridge.trace import view
    from bridge.trace.check import checker, listing
    from bridge.wire import codec

    findings = checker.check(view.select(view.Selection(options.file)))
    if options.filter:
        wanted = view.entries(options.file, " ".join(options.filter))
        lines = {entry.event.line for entry in wanted}
        findings = [finding for finding in findings if finding.line in lines]
    shown = listing.chosen(findings, options.least)
    if options.json:
        print(codec.encode(shown).decode())
    else:
        print("\n".join(listing.listing(shown, every=options.all)))
    return 3 if any(finding.severity == "error" for finding in findings) else 0


def _source(options: argparse.Namespace) -> "Source":
    from bridge.trace.export.source import Source

    return Source(options.file, _masking(options))


def _masking(options: argparse.Namespace) -> "Masking":
    from bridge.trace.export.masking import Masking

    return Masking(on=not options.keep_secrets, more=options.mask, environment=os.environ)


def _output(path: str | None) -> BinaryIO:
    """The file to write to; only its owner can read it."""
    if path is None:
        return sys.stdout.buffer
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
    except OSError as error:
        folder = os.path.dirname(path) or "."
        mend = f"make the directory {folder!r} first"
        if os.path.isdir(folder):
            mend = "give a file that can be written"
        raise UsageError(f"--output {path}: {error.strerror}; {mend}") from None


def _export(options: argparse.Namespace) -> int:
    from bridge.trace.export import formats
    from bridge.trace.filter import compile_filter

    source, text = _source(options), " ".join(options.filter)
    # What is wrong is said before a file of that name is emptied.
    compile_filter(text)
    with _output(options.output) as out:
        formats.write(source, options.format, text, out.write)
    return 0


def _html(options: argparse.Namespace) -> int:
    from bridge.trace import html
    from bridge.trace.check import checker

    if options.serve:
        if options.output or options.title or options.filter:
            raise UsageError("--serve serves all of the trace: without -o, --title and FILTER")
        return _serve(options)
    source = _source(options)
    entries = source.entries(" ".join(options.filter))
    lines = {entry.event.line for entry in entries}
    findings = [found for found in checker.check(source.found()) if found.line in lines]
    title = options.title or os.path.basename(options.file)
    with _output(options.output) as out:
        out.write(html.page(title, entries, findings))
    return 0


def _replay(options: argparse.Namespace) -> int:
    from bridge.trace.replay import command

    if "--" in sys.argv:
        # argparse takes a second "--", which is the agent's own, for a separator too.
        options.argv = sys.argv[sys.argv.index("--") + 1 :]
    return command.run(options)


def _serve(options: argparse.Namespace) -> int:
    import signal

    import anyio

    from bridge.io import signals
    from bridge.trace import live

    def ready(url: str) -> None:
        print(url, flush=True)

    async def run() -> None:
        ended = anyio.CancelScope()
        wrong: UsageError | None = None

        async def wait() -> None:
            await anext(aiter(received))
            ended.cancel()

        with signals.receive(signal.SIGINT, signal.SIGTERM) as received:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                with ended:
                    try:
                        await live.serve(live.Live(options.file, _masking(options)), ready)
                    except UsageError as error:
                        # To be told as such: a group wraps what leaves it.
                        wrong = error
                tasks.cancel_scope.cancel()
        if wrong is not None:
            raise wrong

    anyio.run(run)
    return 0


def _diff(options: argparse.Namespace) -> int:
    from bridge.trace import diff, view
    from bridge.wire import codec

    text = " ".join(options.filter)
    one, other = view.entries(options.file, text), view.entries(options.other, text)
    found = diff.compare(one, other)
    if options.json:
        print(codec.encode(found).decode())
    else:
        figures = diff.figures_of(one), diff.figures_of(other)
        names = options.file, options.other
        print("\n".join(diff.report(names, found, figures, times=options.times)))
    return 3 if found.differs else 0


_Subcommand = tuple[
    str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]
]
_COMMANDS: dict[str, _Subcommand] = {
    "show": ("what passed, a line a message, runs of chunks as one", _add_show, _show),
    "tail": ("the end of a trace, and what comes", _add_tail, _tail),
    "check": ("what breaks the protocol's rules; exit code 3 for errors", _add_check, _check),
    "export": ("a trace for other tools, without secrets", _add_export, _export),
    "html": ("a page to look at, self-contained", _add_html, _html),
    "replay": ("a recording played again, as agent, client or model server", _add_replay, _replay),
    "diff": ("two runs side by side; exit code 3 if they differ", _add_diff, _diff),
    "stats": ("times per method and per turn, sizes, tokens, retries", _add_stats, _stats),
}
