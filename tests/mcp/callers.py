"""Callers for tests: what they are told is kept, what they are asked is answered from a list."""

from typing import Any

from bridge.mcp import eras, messages
from bridge.mcp.dispatch import Inbound, answered
from bridge.mcp.eras import Client
from bridge.mcp.hub import Hub
from bridge.mcp.messages import Answer
from bridge.mcp.service import McpProxy
from bridge.mcp.view import View
from bridge.wire import codec
from bridge.wire.codec import Raw
from tests.mcp.fake import Fake

Json = dict[str, Any]

QUICK = {"backoff": {"initial": 0}, "connect_timeout": 2}
FAILURE = "dev.acp-mcp-bridge/failure"
KEY = "dev.acp-mcp-bridge/idempotency-key"
ATTEMPT = "dev.acp-mcp-bridge/attempt"


class Silent:
    """Takes what it is told and can be asked nothing, unless the client says otherwise."""

    def __init__(self, client: Client | None = None, answers: list[Json] | None = None) -> None:
        self.client = client or Client("legacy", eras.LEGACY)
        self.told: list[Json] = []
        self.asked: list[tuple[str, Any]] = []
        self._answers = answers or []

    async def tell(self, message: bytes) -> None:
        self.told.append(codec.decode(message))

    async def ask(self, method: str, params: Raw) -> Answer:
        self.asked.append((method, codec.decode(params)))
        return messages.result(self._answers.pop(0))


def hub_of(proxy: McpProxy, session: str = "a") -> Hub:
    """The hub behind a session's mount."""
    return proxy._mounted[session].mount.hub


async def called(
    server: Fake, options: Json, *, name: str = "echo", arguments: Any = None
) -> tuple[Json, list[Json]]:
    """The result of one call through the proxy, and its events."""
    events: list[Json] = []
    async with McpProxy(events.append) as proxy:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
        proxy.mount("a", [entry], {"s": {**QUICK, **options}})
        result = codec.decode(await proxy.call_tool("a", f"s_{name}", arguments or {}))
        await server.until(lambda: len(server.opened) == len(server.ended))
    await server.until(lambda: server.connections == 0)
    return result, events


def outcome(result: Json) -> str:
    if FAILURE in result.get("_meta", {}):
        return result["_meta"][FAILURE]["code"]
    return "answered"


async def one_call(
    proxy: McpProxy,
    server: str,
    tool: str,
    meta: Json | None = None,
    caller: "Silent | None" = None,
    arguments: Json | None = None,
) -> Raw:
    """A call at a server's own URL, where no listing is needed."""
    view = View(hub_of(proxy), server)
    params: Json = {"name": Raw(codec.encode(tool))}
    if meta is not None:
        params["_meta"] = Raw(codec.encode(meta))
    if arguments is not None:
        params["arguments"] = Raw(codec.encode(arguments))
    answer = await answered(Inbound(view, caller or Silent(), "tools/call", params))
    assert answer.result is not None
    return answer.result
