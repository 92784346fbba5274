"""`${name}` in a profile's templates: which there are, and how they are filled. Pure.

Rules: placeholders stand in strings only, so nothing needs quoting; a string that is one
placeholder becomes its value, whatever JSON that is; within other text a list is joined by commas;
`$${` is a plain `${`. What holds a placeholder without a value is left out: a table's entry, a
list's item, a variable, an argument, a file; and a table that is empty by that. An unknown one is
an error when the profile is loaded. Used by `bridge.agent.profile` and `bridge.agent.rendering`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from bridge.errors import UsageError
from bridge.wire import codec
from protocol_schemas.profile import Profile

KNOWN = frozenset(
    {
        *("prefix", "bin", "node", "version", "state", "cwd", "session", "port", "token"),
        *("model.url", "model.key", "model.name", "model.wire", "system_prompt"),
        *("mcp.servers", "disabled_tools", "disabled_rules"),
    }
)
_SERVER = frozenset({"server.name", "server.url", "server.headers"})
_TOOL = frozenset({"tool"})
_FORM = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
ABSENT: Any = object()
"""What a placeholder without a value makes of what it stands in."""

Values = Mapping[str, Callable[[], Any]]
"""The value of each known placeholder, asked for where it is used; None is no value."""


def fill(template: Any, values: Values) -> Any:
    """The template with its placeholders filled, or ABSENT. Raises UsageError."""
    if isinstance(template, str):
        return _fill_text(template, values)
    if isinstance(template, dict):
        entries = [
            (fill(key, values), fill(value, values))
            for key, value in cast("dict[str, Any]", template).items()
        ]
        kept = {key: value for key, value in entries if ABSENT not in (key, value)}
        return kept if kept or not entries else ABSENT
    if isinstance(template, list):
        items = (fill(item, values) for item in cast("list[Any]", template))
        return [item for item in items if item is not ABSENT]
    return template


def _fill_text(text: str, values: Values) -> Any:
    whole = _FORM.fullmatch(text)
    if whole is not None and whole[2] is not None:
        value = values[whole[2]]()
        return ABSENT if value is None else value
    absent = False

    def replace(match: re.Match[str]) -> str:
        nonlocal absent
        if match[2] is None:
            return "${"
        value = values[match[2]]()
        absent = absent or value is None
        return "" if value is None else as_text(value)

    filled = _FORM.sub(replace, text)
    return ABSENT if absent else filled


def as_text(value: Any) -> str:
    """A value where there must be text: a list of words joined by commas, a table as JSON."""
    if isinstance(value, list):
        return ",".join(map(str, cast("list[Any]", value)))
    return value if isinstance(value, str) else codec.encode(value).decode()


def used(template: Any) -> set[str]:
    """The names of the placeholders in a template."""
    return {name for _, name in _found(template, "")}


def _found(template: Any, where: str) -> Iterator[tuple[str, str]]:
    """Each placeholder with the place it stands in."""
    if isinstance(template, str):
        yield from ((where, match[2]) for match in _FORM.finditer(template) if match[2] is not None)
    elif isinstance(template, dict):
        for key, value in cast("dict[str, Any]", template).items():
            yield from _found(key, where)
            yield from _found(value, f"{where}.{key}")
    elif isinstance(template, list):
        for index, item in enumerate(cast("list[Any]", template)):
            yield from _found(item, f"{where}[{index}]")


def check(profile: Profile) -> None:
    """Raises UsageError where a profile is not right as a whole, though each field of it is."""
    words = {f"wire.{name}" for use in profile.wires.values() for name in use.values}
    launch, known = profile.launch, KNOWN | words
    _check(launch.command, "launch.command", known | {"prompt"} if launch.task else known)
    if launch.task and "prompt" not in used(launch.command):
        raise UsageError("launch.task is true, but launch.command has no ${prompt}")
    _check(launch.environment, "launch.environment", known)
    _check(profile.session.meta, "session.meta", known)
    for index, file in enumerate(profile.files):
        where = f"files[{index}]"
        contents = [file.text, file.json, file.toml]
        if sum(content is not None for content in contents) != 1:
            raise UsageError(f"{where} ({file.path}): give one of text, json and toml")
        if ".." in file.path.split("/"):
            raise UsageError(f"{where}: the path {file.path!r} leaves the state directory")
        if not file.executable:
            _check(contents, where, known)
        elif file.text is None:
            raise UsageError(f"{where} ({file.path}): an executable file needs text")
    _check(profile.mcp.server, "mcp.server", _SERVER)
    _check(profile.tools.rule, "tools.rule", _TOOL)
    if (profile.mcp.via == "file") != ("mcp.servers" in everywhere(profile)):
        raise UsageError('mcp.via is "file" exactly where a template has ${mcp.servers}')
    for index, call in enumerate(profile.side_calls):
        if (call.equals is None) == (call.matches is None):
            raise UsageError(f"side_calls[{index}]: give one of equals and matches")
        try:
            re.compile(call.matches or "")
        except re.error as error:
            raise UsageError(f"side_calls[{index}].matches: {error}") from None
    for code in profile.quirks.exits:
        if not code.isdecimal():
            raise UsageError(f"quirks.exits: {code!r} is no exit code")


def everywhere(profile: Profile, *, with_command: bool = True) -> set[str]:
    """The placeholders used at the agent's start: in its command, environment and files."""
    command = profile.launch.command if with_command else []
    files = [[file.text, file.json, file.toml] for file in profile.files if not file.executable]
    return used([command, profile.launch.environment, files])


def _check(template: Any, where: str, known: frozenset[str]) -> None:
    for place, name in _found(template, where):
        if name not in known:
            raise UsageError(
                f"{place}: there is no ${{{name}}} here; there are {', '.join(sorted(known))}"
            )
