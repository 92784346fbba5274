"""Which servers there are: the `mcpServers` file and ACP's list, as one kind of `Upstream`.

Owns: `${VAR}` templates and every check on an entry. Rules: an error names the server and the key;
a header's value is in no error; unknown keys are kept and told once.
Called by `bridge.cli.mcp` (file) and `bridge.mcp.service` (ACP's entries).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec

from bridge.errors import UsageError
from bridge.wire import codec
from protocol_schemas.mcp import AcpEntry, FileEntry, Policy, known_keys

Transport = Literal["http", "sse", "stdio"]
Json = dict[str, Any]
T = TypeVar("T", bound=msgspec.Struct)

SAFE_ENVIRONMENT = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What a stdio server inherits of our environment: what the MCP SDKs hand on, nothing more."""

_TEMPLATE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_OURS_TO_SET = frozenset(
    (
        *("accept", "accept-encoding", "connection", "content-length", "content-type"),
        *("last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"),
        "transfer-encoding",
    )
)
_KINDS: dict[str, Transport] = {
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "sse": "sse",
    "stdio": "stdio",
}


class Upstream(NamedTuple):
    """One server to be reached. `headers` and `env` hold secrets: they are in no log or error."""

    name: str
    transport: Transport
    policy: Policy
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str | None = None
    guessed: bool = False
    """The transport was not said: SSE, that of 2024, is tried too (`bridge.mcp.server`)."""


class Loaded(NamedTuple):
    """A file's servers, and what is to be warned about."""

    upstreams: list[Upstream]
    warnings: list[str]


def from_file(data: bytes, environ: Mapping[str, str], *, where: str) -> Loaded:
    """The servers of an `mcpServers` file; raises UsageError. `where`: the file, for errors."""
    try:
        document = codec.mapping(codec.decode(data))
    except codec.JSONError as error:
        raise UsageError(f"{where} is not JSON: {error}") from None
    servers = codec.mapping(document.get("mcpServers")) if document is not None else None
    if servers is None:
        raise UsageError(f'{where} must be {{"mcpServers": {{NAME: {{...}}}}}}')
    loaded = Loaded([], [])
    for name, value in servers.items():
        at = f"{where}: server {name!r}"
        fields = codec.mapping(value)
        if fields is None:
            raise UsageError(f"{at} must be an object")
        if fields.get("disabled") is True:
            continue
        entry = _convert(_expand(fields, environ, at), FileEntry, at)
        loaded.upstreams.append(_from_entry(name, entry, environ, at))
        if unknown := sorted(set(fields) - known_keys(FileEntry)):
            keys = ", ".join(map(repr, unknown))
            loaded.warnings.append(f"{at}: no meaning is known here for {keys}; ignored")
    return loaded


def from_acp(
    entries: Sequence[Json], policies: Mapping[str, Json], environ: Mapping[str, str]
) -> list[Upstream]:
    """The servers of a `session/new`, each with its policy (`config.mcp`); raises UsageError."""
    found: dict[str, Upstream] = {}
    for index, value in enumerate(entries):
        entry = _convert(value, AcpEntry, f"mcpServers[{index}]")
        at = f"MCP server {entry.name!r}"
        if entry.name in found:
            raise UsageError(f"{at} is given twice: each server needs a name of its own")
        policy = _convert(policies.get(entry.name, {}), Policy, f"{at}: mcp options")
        if entry.type == "stdio":
            env = {pair.name: pair.value for pair in entry.env}
            upstream = _command(at, entry.name, policy, entry.command, entry.args, env, environ)
        else:
            headers = [(header.name, header.value) for header in entry.headers]
            upstream = _address(at, entry.name, entry.type, policy, entry.url, headers)
        found[entry.name] = upstream
    for name in policies:
        if name not in found:
            raise UsageError(
                f"mcp options are given for {name!r}, which is no server of the session"
            )
    return list(found.values())


def _from_entry(name: str, entry: FileEntry, environ: Mapping[str, str], at: str) -> Upstream:
    if (entry.url is None) == (entry.command is None):
        raise UsageError(f'{at} needs either "url" or "command"')
    transport = _KINDS[entry.type or ("stdio" if entry.url is None else "http")]
    if (transport == "stdio") != (entry.command is not None):
        raise UsageError(f"{at} is of type {entry.type!r}, which does not go with its address")
    if transport == "stdio":
        upstream = _command(at, name, entry, entry.command, entry.args, entry.env, environ)
        return upstream._replace(cwd=entry.cwd)
    upstream = _address(at, name, transport, entry, entry.url, list(entry.headers.items()))
    return upstream._replace(guessed=entry.type is None)


def _command(
    at: str,
    name: str,
    policy: Policy,
    command: str | None,
    args: list[str],
    env: dict[str, str],
    environ: Mapping[str, str],
) -> Upstream:
    if not command:
        raise UsageError(f'{at} has no "command"')
    inherited = {key: environ[key] for key in SAFE_ENVIRONMENT if key in environ}
    return Upstream(name, "stdio", policy, argv=(command, *args), env={**inherited, **env})


def _address(
    at: str,
    name: str,
    transport: Transport,
    policy: Policy,
    url: str | None,
    headers: list[tuple[str, str]],
) -> Upstream:
    _check_url(url or "", at)
    _check_headers(headers, at)
    # What the protocol sets is set by us; files often spell it out too.
    sent = tuple(pair for pair in headers if pair[0].lower() not in _OURS_TO_SET)
    return Upstream(name, transport, policy, url=url or "", headers=sent)


def _check_url(url: str, at: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        credentials = "@" in parts.netloc
    except ValueError:
        usable = credentials = False
    if not usable:
        raise UsageError(f"{at}: its url must be http:// or https:// with a host")
    if credentials:
        raise UsageError(f"{at}: put the credentials of its url into an Authorization header")


def _check_headers(headers: list[tuple[str, str]], at: str) -> None:
    for name, value in headers:
        if not _HEADER_NAME.fullmatch(name):
            raise UsageError(f"{at}: {name!r} is no name for a header")
        if not _HEADER_VALUE.fullmatch(value):
            raise UsageError(
                f"{at}: the value of header {name!r} has characters that no header can carry"
            )


def _convert(value: Any, kind: type[T], at: str) -> T:
    try:
        return codec.convert(value, kind)
    except codec.JSONError as error:
        raise UsageError(f"{at}: {error}") from None


def _expand(value: Any, environ: Mapping[str, str], at: str) -> Any:
    """The value with the templates in its strings filled in; keys stay as they are."""
    if isinstance(value, str):
        return _TEMPLATE.sub(lambda match: _filled(match, environ, at), value)
    if isinstance(value, list):
        return [_expand(item, environ, at) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if (fields := codec.mapping(value)) is not None:
        return {key: _expand(item, environ, at) for key, item in fields.items()}
    return value


def _filled(match: "re.Match[str]", environ: Mapping[str, str], at: str) -> str:
    """As a shell has it: a default stands in for a variable that is unset or empty."""
    name, default = match[1], match[2]
    value = environ.get(name)
    if default is not None:
        return value or default
    if value is None:
        raise UsageError(
            f"{at} refers to ${{{name}}}, which is not set: set it, or write ${{{name}:-default}}"
        )
    return value
