"""Version 2's values in version 1's terms, and back: what is not a matter of time or order.

Rule: a value in version 1's terms keeps what version 2 has beside it (`id` beside `configId`,
`loadSession` beside `session`), so that nothing is lost by the translation. Pure; used by
`bridge.agent.v2.dialect` and `bridge.agent.v2.session`.
"""

from typing import Any

from bridge.errors import unsupported
from bridge.wire import codec

Fields = dict[str, Any]

_CLIENT_ONLY_FIRST = ("fs", "terminal", "session", "plan", "auth")
"""Client capabilities of version 1 that version 2 has not, or has in another shape."""
_NOT_OF_SESSIONS = ("prompt", "mcp")
_BASELINE = ("list", "resume", "close")
_PROMPT = ("image", "audio", "embeddedContext")


def offer(params: Fields) -> Fields:
    """`initialize` for an agent that may speak either version: version 1's params, and beside them
    version 2's own names, so that an agent that answers 1 has lost nothing."""
    capabilities = client_capabilities(params["clientCapabilities"])
    return {
        "protocolVersion": 2,
        "info": params["clientInfo"],
        "capabilities": capabilities,
        "clientInfo": params["clientInfo"],
        "clientCapabilities": params["clientCapabilities"],
    }


def client_capabilities(given: Fields) -> Fields:
    """Version 1's client capabilities as version 2 has them: no files and terminals of the
    client's, notices and compaction need no word, a marker is an object."""
    found = {name: value for name, value in given.items() if name not in _CLIENT_ONLY_FIRST}
    auth = dict(codec.mapping(given.get("auth")) or {})
    if auth.get("terminal") in (None, False):
        auth.pop("terminal", None)
    elif auth["terminal"] is True:
        auth["terminal"] = {}
    return found | ({"auth": auth} if auth else {})


def initialized(result: Fields) -> Fields:
    """The answer to `initialize` with version 1's names beside version 2's."""
    capabilities = codec.mapping(result.get("capabilities")) or {}
    methods = [auth_method(method) for method in _objects(result.get("authMethods"))]
    return result | {
        "agentInfo": result.get("info"),
        "agentCapabilities": agent_capabilities(capabilities),
        "authMethods": methods,
    }


def agent_capabilities(capabilities: Fields) -> Fields:
    """What an agent offers, each thing also where version 1 has it."""
    session = codec.mapping(capabilities.get("session"))
    group = session or {}
    prompt = codec.mapping(group.get("prompt")) or {}
    mcp = codec.mapping(group.get("mcp")) or {}
    offered = {name: value for name, value in group.items() if name not in _NOT_OF_SESSIONS}
    if session is not None:
        offered |= {name: {} for name in _BASELINE}
    return capabilities | {
        "loadSession": session is not None,
        "promptCapabilities": {name: prompt.get(name) is not None for name in _PROMPT},
        "mcpCapabilities": {
            "http": mcp.get("http") is not None,
            "sse": False,
            "stdio": mcp.get("stdio") is not None,
        },
        "sessionCapabilities": offered,
    }


def auth_method(method: Fields) -> Fields:
    """An authentication method; version 1's `env` is an object."""
    found = method | {"id": method.get("methodId")}
    env = method.get("env")
    if isinstance(env, list):
        found["env"] = {str(item.get("name")): item.get("value") for item in _objects(env)}  # pyright: ignore[reportUnknownArgumentType]
    return found


def mcp_server(server: Fields) -> Fields:
    """An MCP server to be used, with the type that version 2 wants of each."""
    kind = server.get("type", "stdio")
    if kind == "sse":
        raise unsupported(
            f"ACP version 2 has no sse servers: give {server.get('name')!r} as http, "
            "or protocol_version 1"
        )
    return {"type": kind, **server}


def config_options(options: Any) -> list[Fields]:
    """A session's options, with `id` and `group` beside `configId` and `groupId`."""
    return [_option(option) for option in _objects(options)]


def _option(option: Fields) -> Fields:
    found = option | {"id": option.get("configId")}
    if isinstance(option.get("options"), list):
        found["options"] = [
            item | {"group": item["groupId"]} if "groupId" in item else item
            for item in _objects(option["options"])
        ]
    return found


class Modes:
    """Version 1's modes: the option of the category `mode`."""

    def __init__(self) -> None:
        self.config_id: str | None = None
        self.current: str | None = None

    def take(self, options: list[Fields]) -> Fields | None:
        """Notes the options of a session; its modes as version 1 tells them, None without."""
        option = next((item for item in options if item.get("category") == "mode"), None)
        if option is None or not isinstance(option.get("currentValue"), str):
            self.config_id = self.current = None
            return None
        self.config_id, self.current = str(option.get("configId")), option["currentValue"]
        available = [
            {"id": choice.get("value"), **{k: v for k, v in choice.items() if k != "value"}}
            for item in _objects(option.get("options"))
            for choice in (_objects(item.get("options")) if "groupId" in item else [item])
        ]
        return {"currentModeId": self.current, "availableModes": available}


_OVER = "cancelled"
"""What version 1's plan has no word for: an entry that will not be done any more."""


def plan(update: Fields) -> tuple[Fields, bool] | None:
    """A `plan_update` of items as version 1's `plan`, and whether something was lost; None for
    plans of other kinds, which version 1 has not."""
    content = codec.mapping(update.get("plan")) or {}
    if content.get("type") != "items" or not isinstance(content.get("entries"), list):
        return None
    entries: list[Fields] = []
    lost = False
    for entry in _objects(content["entries"]):
        if entry.get("status") == _OVER:
            entry, lost = entry | {"status": "completed"}, True
        entries.append(entry)
    beside = {name: value for name, value in update.items() if name != "plan"}
    return {
        **beside,
        "sessionUpdate": "plan",
        "entries": entries,
        "planId": content.get("planId"),
    }, lost


def _objects(value: Any) -> list[Fields]:
    """The objects in a list, should it be one."""
    if not isinstance(value, list):
        return []
    return [item for item in map(codec.mapping, value) if item is not None]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
