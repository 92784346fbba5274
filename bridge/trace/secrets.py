"""Where secrets come from: the environment, a host's config, an ACP client's messages.

Owns: which names are secret (keys, tokens, passwords) and where credentials stand in messages.
Rule: every header value is one, save those that only negotiate; an environment entry is one if its
name says so or is declared (`BRIDGE_SECRETS`, `config.secrets`). Only places that the peer in
charge fills are looked at, never what a tool or a model says. Pure; used by `bridge.trace.ledger`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from bridge.wire import codec, credentials

Secret = tuple[str, str]
"""A name and a value."""

DECLARED = "BRIDGE_SECRETS"
"""Environment variable: the names, separated by commas, of others whose values are secret."""
CLIENT_MARKERS = (
    b'"mcpServers"', b'"headers"', b'"baseUrl"', b'"accept"', b'"methodId"', b'"command"',
)  # fmt: skip
AGENT_MARKERS = (b'"command"',)
"""One of these stands in every message of a client, or of an agent, that `of_acp` finds
something in."""

_NOT_SECRET = frozenset({"PWD", "OLDPWD", DECLARED, "BRIDGE_RECORD_SECRETS"})
_NEGOTIATING = frozenset({
    "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control",
    "connection", "content-length", "content-type", "date", "expect", "host", "keep-alive",
    "mcp-protocol-version", "te", "trailer", "transfer-encoding", "upgrade", "user-agent", "via",
})  # fmt: skip
_SECRET_OPTION = re.compile(
    r"((api|access|private|secret)-?key|token|secret|passw(or)?d|passphrase)$", re.IGNORECASE
)
"""More narrow than a variable's name: `--auth login` brings no secret."""
_ENVELOPES = ("proxy/successor", "proxy/successor/request", "proxy/successor/notification")
_WORDS = frozenset({"true", "false", "none", "null", "auto", "default", "enabled", "disabled"})


def is_secret_name(name: str) -> bool:
    """Whether an environment variable of that name is secret."""
    return name not in _NOT_SECRET and credentials.is_secret_name(name)


def of_environment(environment: Mapping[str, str]) -> Iterator[Secret]:
    """Secret by name or declared; and the passwords in URLs, proxies' for example."""
    yield from _environment(environment, environment.get(DECLARED, "").split(","))


def _environment(environment: Mapping[str, str], declared: Iterable[str]) -> Iterator[Secret]:
    names = {name.strip() for name in declared}
    for name, value in environment.items():
        if name in names or is_secret_name(name):
            yield from of_value(name, value)
        elif "://" in value:
            yield from of_url(name, value)


def of_value(name: str, value: str) -> Iterator[Secret]:
    """A value, and what is secret in it by itself: the credentials after a scheme."""
    if value.strip().lower() not in _WORDS:
        yield from ((name, found) for found in credentials.of_value(value))


def of_headers(headers: Iterable[tuple[str, str]]) -> Iterator[Secret]:
    """Every header's value; of cookies each one's."""
    for name, value in headers:
        if name.lower() in _NEGOTIATING:
            continue
        yield from of_value(name, value)
        if name.lower() in ("cookie", "set-cookie"):
            yield from ((name, cookie) for cookie in credentials.of_cookies(value))


def of_event(data: Mapping[str, Any]) -> Iterator[Secret]:
    """The credentials in the heads that an event shows: among its `headers` and
    `response_headers` (pairs), and in the query of its `target`."""
    for member in ("headers", "response_headers"):
        for name, value in _pairs(data.get(member)):
            yield from ((name, found) for found in credentials.of_field(name, value))
    target = data.get("target")
    if isinstance(target, str):
        yield from _of_query("target", target.partition("?")[2])


def of_url(name: str, url: str) -> Iterator[Secret]:
    """The password in a URL, and query parameters that are secret by name."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password:
        yield name, unquote(password)
        yield name, password
        yield name, f"{unquote(parts.username or '')}:{unquote(password)}"
    yield from _of_query(name, parts.query)


def _of_query(name: str, query: str) -> Iterator[Secret]:
    yield from ((f"{name}.{key}", value) for key, value in credentials.of_query(query))


def of_host(body: bytes) -> Iterator[Secret]:
    """The secrets in a host's request (HOST_PROTOCOL §2 to §4)."""
    config = _field(_mapping(body), "config")
    if not config:
        return
    for server, headers in _field(config, "mcp_headers").items():
        for secret in of_headers(_pairs(headers)):
            yield f"{server}.{secret[0]}", secret[1]
    for server, url in _field(config, "mcp_urls").items():
        if isinstance(url, str):
            yield from of_url(server, url)
    secret = _field(config, "tool_interception").get("secret")
    if isinstance(secret, str):
        yield from of_value("tool_interception", secret)
    yield from of_servers(config.get("mcp_servers"))
    yield from of_arguments(map(str, _list(config.get("command"))))
    declared = map(str, _list(config.get("secrets")))
    yield from _environment(dict(_pairs(config.get("env"))), declared)
    model = _field(config, "model")
    if isinstance(model.get("api_key"), str):
        yield from of_value("model", model["api_key"])
    if isinstance(model.get("upstream"), str):
        yield from of_url("upstream", model["upstream"])
    yield from of_headers(_pairs(model.get("headers")))


def of_acp(line: bytes) -> Iterator[Secret]:
    """The secrets a client gives its agent: MCP servers' headers, environment and arguments, the
    headers and address of `providers/set`, what it logs in with, what its user filled in; and the
    environment and arguments of a terminal. Envelopes of a proxy chain are looked into."""
    yield from _of_message(_mapping(line))


def _of_message(message: dict[str, Any]) -> Iterator[Secret]:
    params = _field(message, "params")
    yield from of_servers(params.get("mcpServers"))
    match message.get("method"):
        case "providers/set":
            yield from of_headers(_pairs(params.get("headers")))
            yield from of_url("baseUrl", str(params.get("baseUrl", "")))
        case "terminal/create":
            yield from _of_program(params)
        case "authenticate" | "auth/login":
            yield from _anywhere(params)
        case str(method) if method.endswith(_ENVELOPES):
            yield from _of_message(params)
        case None:
            # An elicitation's form, filled in.
            yield from _anywhere(_field(_field(message, "result"), "content"))
        case _:
            pass


def _of_program(fields: dict[str, Any]) -> Iterator[Secret]:
    """A program's environment and arguments."""
    yield from _environment(dict(_pairs(fields.get("env"))), ())
    yield from of_arguments(map(str, _list(fields.get("args"))))


def of_arguments(arguments: Iterable[str]) -> Iterator[Secret]:
    """What stands behind an option that is secret by name (`--api-key KEY`, `--token=KEY`), the
    values of headers (`--header "X-Tok: KEY"`), and the passwords in URLs."""
    option = ""
    for argument in arguments:
        name, given, value = argument.partition("=")
        if not (given and argument.startswith("-")):
            name, value = option, argument
        name = name.lstrip("-")
        if _SECRET_OPTION.search(name) and not value.startswith("-"):
            yield from of_value(name, value)
        elif name in ("header", "H") and ":" in value:
            header, _, text = value.partition(":")
            yield from of_headers([(header, text.strip())])
        elif "://" in value:
            yield from of_url(name or "url", value)
        option = argument if argument.startswith("-") and not given else ""


def _anywhere(value: Any) -> Iterator[Secret]:
    """Headers, URLs and what is secret by name, however deep."""
    for item in _list(value):
        yield from _anywhere(item)
    for name, item in (codec.mapping(value) or {}).items():
        if name == "headers":
            yield from of_headers(_pairs(item))
        elif isinstance(item, str):
            yield from _environment({name: item}, ())
        else:
            held = _field({name: item}, name).get("value")
            if isinstance(held, str):
                yield from _environment({name: held}, ())
            yield from _anywhere(item)


def of_servers(servers: Any) -> Iterator[Secret]:
    """ACP's list of MCP servers."""
    for item in _list(servers):
        server = codec.mapping(item) or {}
        yield from of_headers(_pairs(server.get("headers")))
        yield from _of_program(server)
        if isinstance(server.get("url"), str):
            yield from of_url(str(server.get("name")), server["url"])


def _mapping(data: bytes) -> dict[str, Any]:
    try:
        return codec.mapping(codec.decode(data)) or {}
    except codec.JSONError:
        return {}


def _field(value: dict[str, Any], name: str) -> dict[str, Any]:
    return codec.mapping(value.get(name)) or {}


def _pairs(value: Any) -> Iterator[tuple[str, str]]:
    """Headers or environment, as an object or as a list of {name, value} or of pairs."""
    fields = codec.mapping(value)
    for item in _list(value) if fields is None else fields.items():
        pair: Any = item
        if not isinstance(item, list | tuple):
            entry = codec.mapping(item) or {}
            pair = entry.get("name"), entry.get("value")
        if len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], str):
            yield pair[0], pair[1]


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []  # pyright: ignore[reportUnknownArgumentType]
