"""The two eras of MCP: what a request is stamped with for a server, and unstamped from a caller.

Until 2025-11-25 (`legacy`) a session is opened with initialize and carries who is who; from
2026-07-28 (`modern`) there is none and every request's `_meta` says it. Rule: what belongs to one
hop (progress token, protocol fields) is not passed on; the rest of `_meta` is. Pure.
Used by the front (callers) and the sessions (servers).
"""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from bridge import __version__
from bridge.mcp.messages import Answer, Members, members
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw

Era = Literal["legacy", "modern"]

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
LEGACY_VERSIONS = (LEGACY, "2025-06-18", "2025-03-26", "2024-11-05")

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021

_PROTOCOL = "io.modelcontextprotocol/"
VERSION_KEY = _PROTOCOL + "protocolVersion"
INFO_KEY = _PROTOCOL + "clientInfo"
CAPABILITIES_KEY = _PROTOCOL + "clientCapabilities"
LOG_LEVEL_KEY = _PROTOCOL + "logLevel"
SERVER_INFO_KEY = _PROTOCOL + "serverInfo"
SUBSCRIPTION_KEY = _PROTOCOL + "subscriptionId"
LIST_CHANGES = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
"""What a modern subscription calls a list's changes -> the notification that tells of them."""
TOOLS_CHANGED = LIST_CHANGES["toolsListChanged"]
LOG_LEVELS = frozenset(
    ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
)

OURS = "dev.acp-mcp-bridge/"
KEY_META = OURS + "idempotency-key"
ATTEMPT_META = OURS + "attempt"
FAILURE_META = OURS + "failure"
_OF_ONE_HOP = frozenset(
    (VERSION_KEY, INFO_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY, "progressToken", ATTEMPT_META)
)

OUR_INFO: dict[str, str] = {"name": "acp-mcp-bridge", "version": __version__}
_PASSED_ON = ("sampling", "elicitation", "roots", "experimental")
_ASKED = frozenset(("sampling", "elicitation", "roots"))


class Client(NamedTuple):
    """Who calls, as a server is told: the caller's own name and what it can be asked for."""

    era: Era
    version: str
    info: Any = OUR_INFO
    capabilities: Mapping[str, Any] = {}
    log_level: str | None = None

    @property
    def can_be_asked(self) -> bool:
        """Whether a server may have requests of its own."""
        return not _ASKED.isdisjoint(self.capabilities)

    @property
    def abilities(self) -> dict[str, Any]:
        """What it can be asked for: a server may offer its tools by that."""
        return {name: self.capabilities[name] for name in sorted(_ASKED & set(self.capabilities))}


def ourselves(era: Era, abilities: Mapping[str, Any] | None = None) -> Client:
    """The proxy itself, where nobody in particular calls: while listing and watching."""
    return Client(era, LEGACY if era == "legacy" else MODERN, capabilities=abilities or {})


def initialize(client: Client) -> dict[str, Any]:
    """The parameters of initialize, as the caller would have sent them to this server."""
    known = client.capabilities
    capabilities = {name: known[name] for name in _PASSED_ON if name in known}
    version = client.version if client.version in LEGACY_VERSIONS else LEGACY
    return {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client.info}


def outgoing(
    params: Mapping[str, Any],
    client: Client,
    era: Era,
    *,
    token: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The parameters for a server of `era`: the caller's, with this hop's `_meta`.

    `token`: a progress token of ours; `more`: further members of `_meta`, the caller's own going
    before them.
    """
    meta: dict[str, Any] = dict(more or {})
    for key, value in (members(params["_meta"]) or {}).items() if "_meta" in params else ():
        if key not in _OF_ONE_HOP:
            meta[key] = value
    if token is not None:
        meta["progressToken"] = token
    if era == "modern":
        meta[VERSION_KEY] = MODERN
        meta[INFO_KEY] = client.info
        meta[CAPABILITIES_KEY] = client.capabilities
        if client.log_level is not None:
            meta[LOG_LEVEL_KEY] = client.log_level
    stamped = {key: value for key, value in params.items() if key != "_meta"}
    if meta:
        stamped["_meta"] = meta
    return stamped


def offers_modern(refusal: Answer) -> bool:
    """Whether a server that refuses a version (-32022) names ours among those it speaks."""
    if refusal.error is None or refusal.code != jsonrpc.UNSUPPORTED_VERSION:
        return False
    data = codec.mapping(codec.decode(refusal.error).get("data"))
    supported = None if data is None else data.get("supported")
    return isinstance(supported, list) and MODERN in supported


def caller_of(meta: Members) -> Client | str:
    """A modern caller, from its request's `_meta`; or what is missing in it, in words."""
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        return f"params._meta lacks {', '.join(missing)}"
    version = codec.decode(meta[VERSION_KEY])
    capabilities = members(meta[CAPABILITIES_KEY])
    if not isinstance(version, str):
        return f"params._meta[{VERSION_KEY!r}] must be a string"
    if capabilities is None:
        return f"params._meta[{CAPABILITIES_KEY!r}] must be an object"
    level = codec.decode(meta[LOG_LEVEL_KEY]) if LOG_LEVEL_KEY in meta else None
    return Client(
        "modern",
        version,
        meta.get(INFO_KEY, OUR_INFO),
        capabilities,
        level if isinstance(level, str) else None,
    )


def token_of(params: Mapping[str, Raw]) -> Raw | None:
    """The caller's progress token, its bytes as they came."""
    meta = members(params["_meta"]) if "_meta" in params else None
    token = None if meta is None else meta.get("progressToken")
    return None if token is None or bytes(token) == b"null" else token


class Verdicts:
    """Which eras a server is known to speak; None: not known. Kept for as long as the server is.

    Rule: a verdict is made of what the server said, never of a 429, a 5xx or a timeout.
    """

    def __init__(self) -> None:
        self.known: dict[Era, bool | None] = {"modern": None, "legacy": None}

    def order(self, preferred: Era) -> list[Era]:
        """The eras to try for a caller of `preferred`: its own first, the other one after it."""
        other: Era = "legacy" if preferred == "modern" else "modern"
        if self.known[preferred]:
            return [preferred]
        if self.known[preferred] is False and self.known[other] is not False:
            return [other]
        return [preferred] if self.known[other] is False else [preferred, other]
