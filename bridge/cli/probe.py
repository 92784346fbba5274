"""`acp-mcp-bridge probe -- CMD...`: what an agent says of itself, for versions 1 and 2.

Several commands, separated by `--and`, make a table.
"""

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING

from bridge.cli.options import add_loop_option
from bridge.errors import UsageError

if TYPE_CHECKING:
    from bridge.agent.probe import Probed
    from bridge.io.family import Family

_SEPARATOR = "--and"
_LAST_VERSION = 65535
Results = list[tuple[list[str], "list[Probed]"]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = f"%(prog)s [OPTIONS] -- CMD... [{_SEPARATOR} CMD...]"
    parser.epilog = f"several commands make a table: -- CMD A {_SEPARATOR} CMD B"
    parser.add_argument("--json", action="store_true", help="as one JSON list")
    parser.add_argument(
        "--versions", default="1,2", metavar="LIST", help="protocol versions to ask for (1,2)"
    )
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="SECONDS", help="for each answer (60)"
    )
    parser.add_argument("--no-session", action="store_true", help="initialize only: no session/new")
    add_loop_option(parser)
    parser.add_argument("argv", metavar="-- CMD", nargs="+", help="the agent's command")


def run(options: argparse.Namespace) -> int:
    """Exit code 1 if an agent could not be initialized. Raises UsageError."""
    commands = _commands(options.argv)
    try:
        versions = [int(item) for item in options.versions.split(",")]
    except ValueError:
        raise UsageError(f"--versions {options.versions}: numbers, such as 1,2") from None
    if not all(0 <= version <= _LAST_VERSION for version in versions):
        raise UsageError(f"--versions {options.versions}: from 0 to {_LAST_VERSION}")
    if not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout:g}: seconds, more than 0")
    from bridge.io.guardian import Guardian

    with Guardian.start() as guardian:
        import anyio

        from bridge.config import backend

        results = anyio.run(
            _probe, commands, versions, options, guardian.family, **backend(options.loop)
        )
    sys.stdout.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    print("\n".join(_shown(results, as_json=options.json)))
    sys.stdout.flush()
    return 1 if any(probed.error for _, found in results for probed in found) else 0


def _commands(argv: list[str]) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    for item in argv:
        if item == _SEPARATOR:
            commands.append([])
        else:
            commands[-1].append(item)
    if not all(commands):
        raise UsageError(f"a command is missing before or after {_SEPARATOR}")
    return commands


async def _probe(
    commands: list[list[str]],
    versions: list[int],
    options: argparse.Namespace,
    family: "Family",
) -> Results:
    from bridge.agent.probe import probe

    results: Results = []
    for command in commands:
        found = [
            await probe(
                command,
                version=version,
                env=os.environ,
                family=family,
                timeout=options.timeout,
                session=not options.no_session,
            )
            for version in versions
        ]
        results.append((command, found))
    return results


def _shown(results: Results, *, as_json: bool) -> list[str]:
    from bridge.wire import codec

    if as_json:
        value = [{"command": command, "versions": found} for command, found in results]
        return [codec.encode(value).decode()]
    if len(results) > 1:
        return _table(results)
    command, found = results[0]
    lines = [shlex.join(command)]
    for probed in found:
        lines += ["", *_report(probed)]
    return lines


def _report(probed: "Probed") -> list[str]:
    from bridge.trace.summary import one_line

    lines = [f"asked for version {probed.asked}"]

    def say(name: str, value: object) -> None:
        if value not in (None, "", [], {}):
            lines.append(f"  {name:<14} {one_line(str(value))}")

    info = probed.agent
    say("answered", probed.version)
    say("agent", " ".join(str(info[key]) for key in ("name", "title", "version") if key in info))
    say("initialize", _seconds(probed.initialize))
    say("session/new", _seconds(probed.session))
    say("end", f"{_seconds(probed.stop)}, {probed.exit}" if probed.stop is not None else "")
    say("capabilities", ", ".join(probed.capabilities))
    say("authentication", ", ".join(_method(method) for method in probed.auth_methods))
    say("modes", ", ".join(probed.modes))
    say("options", ", ".join(probed.options))
    say("models", ", ".join(probed.models))
    say("sends unasked", ", ".join(probed.updates))
    say("asks", ", ".join(probed.asked_us))
    say("noise", " | ".join(map(repr, probed.noise)))
    say("session error", probed.session_error)
    say("error", probed.error)
    return lines


def _method(method: dict[str, object]) -> str:
    ident = method.get("id", method.get("methodId"))
    return f"{ident} ({method['type']})" if "type" in method else str(ident)


def _seconds(value: float | None) -> str:
    from bridge.trace.render import seconds

    return "" if value is None else seconds(value)


def _table(results: Results) -> list[str]:
    from bridge.trace.summary import one_line
    from bridge.trace.tables import table

    titles = ["agent", "asked", "answered", "initialize", "session/new", "end", "offers", "error"]
    rows: list[list[str]] = []
    for command, found in results:
        for probed in found:
            info = probed.agent
            name = one_line(f"{info.get('name', command[-1])} {info.get('version', '')}".strip())
            rows.append(
                [
                    name,
                    str(probed.asked),
                    str(probed.version or ""),
                    _seconds(probed.initialize),
                    _seconds(probed.session),
                    _seconds(probed.stop),
                    str(len(probed.capabilities)),
                    one_line((probed.error or probed.session_error or "")[:80]),
                ]
            )
    return table(titles, rows, "asked answered initialize session/new end offers")
