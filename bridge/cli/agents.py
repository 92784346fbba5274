"""`acp-mcp-bridge agents list|show|install|run|remove`: node agents, pinned and ready.

Rule: what a script reads is on stdout (`--json`), what happens meanwhile on stderr. Each action
loads what it needs when it is called.
"""

import argparse
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from bridge.cli.parser import Parser
from bridge.errors import BridgeError, UsageError, first_of

if TYPE_CHECKING:
    from bridge.io.family import Family
    from protocol_schemas.profile import Profile

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_RUN = "%(prog)s [OPTIONS] NAME [-- PROMPT]\n       %(prog)s [OPTIONS] -- CMD..."


class _Parser(Parser):
    """A parser that can leave what stands after `--` alone, as `options.after`: argparse itself
    forgets where that was."""

    splits = False

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str], namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        cut = args.index("--") if self.splits and "--" in args else len(args)
        into = argparse.Namespace() if namespace is None else namespace
        found, unknown = super().parse_known_args(args[:cut], into)
        found.after = list(args[cut + 1 :])
        return found, unknown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Node agents in pinned versions, one directory a version under $BRIDGE_AGENTS_DIR (else "
        "acp-mcp-bridge/agents in the user's data directory). A harness names one by config.agent."
    )
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", required=True, parser_class=_Parser
    )

    def action(name: str, words: str, usage: str | None = None) -> _Parser:
        return actions.add_parser(name, help=words, description=words, usage=usage)

    listing = action("list", "the agents there are, and which versions of them are installed")
    listing.add_argument("--newest", action="store_true", help="ask the registry for the newest")
    showing = action("show", "how an agent is started: its recipe filled in, keys masked")
    showing.add_argument("name", metavar="NAME", help="an agent, or the path of a profile")
    installing = action("install", "install an agent and, where it needs one, its own node")
    installing.add_argument(
        "names", metavar="NAME", nargs="*", help="an agent, or a profile's path"
    )
    installing.add_argument("--all", action="store_true", help="every agent there is a profile for")
    removing = action("remove", "remove an agent's installs")
    removing.add_argument("name", metavar="NAME", help="an agent; .node for node that npm brought")
    removing.add_argument("--version", metavar="V", help="that version only")
    running = action("run", "chat with an agent in the terminal, through the daemon", usage=_RUN)
    running.add_argument("name", metavar="NAME", nargs="?", help="an agent, or a profile's path")
    running.splits = True
    for child in (showing, installing, running):
        child.add_argument("--version", metavar="V", help="of the agent's own package")
        child.add_argument("--adapter-version", metavar="V", help="of its second package")
        child.add_argument(
            "--package",
            metavar="PACKAGE=V",
            action="append",
            default=[],
            help="of any of its packages (may be repeated)",
        )
    for child in (listing, showing):
        child.add_argument("--json", action="store_true", help="as JSON")
    _add_chat(running)


def _add_chat(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Each line of stdin is a prompt, in a terminal or from a pipe; with PROMPT there is that "
        "one only. The agent's words go to stdout, all else to stderr. Ctrl-C cancels a turn, "
        "Ctrl-D ends. The model's URL, key and name may also stand in the environment "
        "(OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, or the agent's vendor's). "
        "-- CMD starts an agent nobody has a profile for."
    )
    parser.add_argument("--model-url", metavar="URL", help="the model server")
    parser.add_argument("--model", metavar="MODEL", help="the model's name")
    parser.add_argument(
        "--wire",
        choices=("chat", "responses", "anthropic", "gemini"),
        help="how to speak with the model server, where the agent can do several",
    )
    parser.add_argument("--cwd", metavar="DIR", help="where the agent works (here)")
    parser.add_argument(
        "--permission",
        choices=("ask", "allow", "deny"),
        default="ask",
        help="what the agent's questions for permission get (ask; at the end of stdin: deny)",
    )
    parser.add_argument("--record", metavar="FILE", help="record everything that passes")
    parser.add_argument("--verbose", action="store_true", help="show the agent's stderr")


def run(options: argparse.Namespace) -> int:
    """Exit code 1 if something could not be done. Raises UsageError, BridgeError."""
    if options.action == "run":
        from bridge.cli import chat

        return chat.run(options)
    if options.action == "list":
        return _list(options)
    if options.action == "show":
        return _show(options)
    return _working(partial(_install if options.action == "install" else _remove, options))


def chosen(options: argparse.Namespace, name: str) -> "Profile":
    """The profile of a name with the versions that the options ask for; raises UsageError."""
    from bridge.agent.profile import load
    from bridge.agent.versions import with_packages

    profile = load(name, os.environ)
    packages = list(profile.install.packages) if profile.install is not None else []
    versions: dict[str, str] = {}
    asked: list[tuple[str, str | None]] = [
        ("--version", options.version),
        ("--adapter-version", options.adapter_version),
    ]
    for index, (flag, version) in enumerate(asked):
        if version is not None:
            if index >= len(packages):
                raise UsageError(f"{flag}: agent {profile.name} has {len(packages)} packages")
            versions[packages[index]] = version
    for item in options.package:
        package, equals, number = item.rpartition("=")
        if not equals:
            raise UsageError(f"--package {item}: PACKAGE=VERSION is needed")
        versions[package] = number
    return with_packages(profile, versions)


def _show(options: argparse.Namespace) -> int:
    from bridge.agent.recipe import recipe, shown
    from bridge.wire import codec

    fields = recipe(chosen(options, options.name), os.environ, os.getcwd())
    print(codec.encode(fields).decode() if options.json else "\n".join(shown(fields)))
    return 0


Work = Callable[["Family"], Awaitable[int]]


def _working(work: Work) -> int:
    """Runs what starts processes. A signal ends it in order: nothing half done is left."""
    from bridge.io.guardian import Guardian

    with Guardian.start() as guardian:
        import anyio

        try:
            return anyio.run(_until_signalled, work, guardian.family)
        except BaseExceptionGroup as group:
            raise first_of(group) from None


async def _until_signalled(work: Work, family: "Family") -> int:
    import anyio

    from bridge.io import signals

    code = 1
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            nonlocal code
            with signals.receive(*_SIGNALS) as received:
                async for number in received:
                    code = 128 + number
                    tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        code = await work(family)
        tasks.cancel_scope.cancel()
    return code


async def _install(options: argparse.Namespace, family: "Family") -> int:
    from bridge.agent.install import install
    from bridge.agent.profile import load, names

    if options.all == bool(options.names):
        raise UsageError("agents install: name the agents, or say --all")
    wanted: list[str] = options.names
    if options.all:
        every = names(os.environ)
        wanted = [name for name in every if load(name, os.environ).install is not None]
    pinned = not (options.version or options.adapter_version or options.package)
    if len(wanted) > 1 and not pinned:
        raise UsageError("agents install: versions are for one agent at a time")
    failures = 0
    for name in wanted:
        profile = chosen(options, name)
        tell = partial(_tell, profile.name)
        try:
            found = await install(profile, os.environ, family=family, tell=tell)
        except BridgeError as error:
            if len(wanted) == 1:
                raise
            failures += 1
            tell(error.message)
        else:
            print(found.prefix)
    return 1 if failures else 0


async def _remove(options: argparse.Namespace, family: "Family") -> int:
    from bridge.agent.install import remove
    from bridge.agent.profile import load

    name: str = options.name
    if "/" in name or name.endswith(".toml"):
        name = load(name, os.environ).name
    removed = await remove(name, options.version, os.environ, tell=partial(_tell, name))
    if not removed:
        version = f" in version {options.version}" if options.version else ""
        raise BridgeError(
            f"agent {name} is not installed{version}; see: acp-mcp-bridge agents list"
        )
    for prefix in removed:
        print(prefix)
    return 0


def _tell(name: str, words: str) -> None:
    print(f"{name}: {words}", file=sys.stderr, flush=True)


def _list(options: argparse.Namespace) -> int:
    from bridge.wire import codec

    rows = _rows(os.environ)
    code = 0
    if options.newest:
        code = _working(partial(_look_up, rows))
    if options.json:
        print(codec.encode(rows).decode())
    else:
        print("\n".join(_table(rows, newest=options.newest)))
    return code


def _rows(environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each agent with its pinned packages and its installs; also those without a profile now."""
    from bridge.agent.installed import every, find
    from bridge.agent.profile import load, names

    installs: dict[str, list[dict[str, Any]]] = {}
    for prefix, ready in every(environment):
        item = {"packages": ready.packages, "prefix": str(prefix), "node": ready.node or None}
        installs.setdefault(ready.agent, []).append({**item, "date": ready.date})
    rows: list[dict[str, Any]] = []
    for name in names(environment):
        profile = load(name, environment)
        packages = profile.install.packages if profile.install is not None else None
        ready = find(profile, environment) is not None
        rows.append(_row(name, profile.title, packages, ready, installs.pop(name, [])))
    rows += [_row(name, "", None, False, items) for name, items in sorted(installs.items())]
    return rows


def _row(
    name: str, title: str, packages: dict[str, str] | None, ready: bool, installed: list[Any]
) -> dict[str, Any]:
    fields = {"name": name, "title": title, "packages": packages or {}}
    return {**fields, "ready": ready, "installed": installed}


async def _look_up(rows: list[dict[str, Any]], family: "Family") -> int:
    """Adds the newest version of each package; exit code 1 if one could not be had."""
    import anyio

    from bridge.agent.npm import newest

    code = 0
    limit = anyio.CapacityLimiter(2)

    async def ask(row: dict[str, Any], package: str) -> None:
        nonlocal code
        async with limit:
            try:
                row["newest"][package] = await newest(package, os.environ, family)
            except BridgeError as error:
                code = 1
                _tell(row["name"], error.message)

    async with anyio.create_task_group() as tasks:
        for row in rows:
            row["newest"] = {}
            for package in row["packages"]:
                tasks.start_soon(ask, row, package)
    return code


def _table(rows: list[dict[str, Any]], *, newest: bool) -> list[str]:
    from bridge.trace.tables import table

    titles = ["agent", "pinned", "newest", "installed", "package"]
    lines: list[list[str]] = []
    for row in rows:
        there = {
            package: ", ".join(item["packages"].get(package, "") for item in row["installed"])
            for package in row["packages"] or _packages(row)
        }
        for index, (package, version) in enumerate((there or {"(not from npm)": ""}).items()):
            pinned = row["packages"].get(package, "")
            latest = row.get("newest", {}).get(package, "")
            name = row["name"] if index == 0 else ""
            lines.append([name, pinned, latest, version, package])
    if not newest:
        titles.remove("newest")
        lines = [[*line[:2], *line[3:]] for line in lines]
    return table(titles, lines)


def _packages(row: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(name for item in row["installed"] for name in item["packages"]))
