"""A scripted MCP server on raw sockets: what it does at which step is the test's to say.

Every request is recorded; every step has a list of acts, used up one by one, before it behaves.
"""

import json
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from tests.raw import Peer, upstream

Json = dict[str, Any]
TOOL: Json = {"name": "echo", "inputSchema": {"type": "object"}}
MODERN = "2026-07-28"


@dataclass
class Seen:
    """One request as it came."""

    verb: str
    path: str
    headers: dict[str, str]
    message: Json
    raw: bytes = b""

    @property
    def step(self) -> str:
        return self.message.get("method", self.verb)

    @property
    def id(self) -> Any:
        return self.message.get("id")

    @property
    def meta(self) -> Json:
        return self.message.get("params", {}).get("_meta", {})


Act = Callable[["Fake", Peer, Seen], Awaitable[None]]


@dataclass
class Fake:
    """`acts[step]` are done first, one a request; `eras` are those it speaks."""

    eras: tuple[str, ...] = ("legacy", "modern")
    tools: list[Json] = field(default_factory=lambda: [dict(TOOL)])
    capabilities: Json = field(default_factory=lambda: {"tools": {}})
    sessions: bool = True
    acts: dict[str, list[Act]] = field(default_factory=lambda: defaultdict(list))
    seen: list[Seen] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    executed: Counter[str] = field(default_factory=Counter)
    connections: int = 0
    accepted: int = 0
    port: int = 0
    changed: anyio.Event = field(default_factory=anyio.Event)
    result: Json | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def steps(self, step: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.step == step]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until what was recorded makes the condition true."""
        while not condition():
            self.changed = anyio.Event()
            await self.changed.wait()

    def note(self) -> None:
        self.changed.set()

    # -- serving --------------------------------------------------------------------------------

    async def script(self, peer: Peer) -> None:
        self.connections += 1
        self.accepted += 1
        self.note()
        try:
            while True:
                seen = await self._read(peer)
                self.seen.append(seen)
                self.note()
                await self._act(peer, seen)
        finally:
            self.connections -= 1
            self.note()

    async def _read(self, peer: Peer) -> Seen:
        head = (await peer.until(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        verb, path, _ = first.split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        raw = await peer.count(int(headers.get("content-length", "0")))
        return Seen(verb, path, headers, json.loads(raw) if raw else {}, raw)

    async def _act(self, peer: Peer, seen: Seen) -> None:
        if self.acts[seen.step]:
            act = self.acts[seen.step].pop(0)
            await act(self, peer, seen)
        else:
            await self.behave(peer, seen)

    async def behave(self, peer: Peer, seen: Seen) -> None:
        """What a well-behaved server does."""
        modern = seen.headers.get("mcp-protocol-version") == MODERN
        if seen.verb == "GET":
            await peer.send(reply(405))
        elif seen.verb == "DELETE":
            self.ended.append(seen.headers.get("mcp-session-id", ""))
            self.note()
            await peer.send(reply(200))
        elif modern and "modern" not in self.eras:
            await peer.send(reply(400, "Bad Request: Unsupported protocol version"))
        elif seen.step == "initialize":
            await self._initialize(peer, seen)
        elif not modern and "legacy" not in self.eras:
            await peer.send(reply(400, error(seen.id, -32022, "unsupported version")))
        elif not modern and self.sessions and seen.headers.get("mcp-session-id") not in self.opened:
            await peer.send(reply(404, error(None, -32001, "Session not found")))
        elif seen.id is None:
            await peer.send(reply(202))
        else:
            await peer.send(reply(200, answer(seen.id, self.answer_to(seen))))

    async def _initialize(self, peer: Peer, seen: Seen) -> None:
        if "legacy" not in self.eras:
            await peer.send(reply(404, error(seen.id, -32601, "no such method")))
            return
        result = {
            "protocolVersion": seen.message["params"]["protocolVersion"],
            "capabilities": self.capabilities,
            "serverInfo": {"name": "fake", "version": "1"},
        }
        headers: Json = {}
        if self.sessions:
            self.opened.append(f"s{len(self.opened) + 1}")
            headers["Mcp-Session-Id"] = self.opened[-1]
        await peer.send(reply(200, answer(seen.id, result), headers))

    def answer_to(self, seen: Seen) -> Json:
        params = seen.message.get("params", {})
        match seen.step:
            case "server/discover":
                found: Json = {"supportedVersions": [MODERN], "capabilities": self.capabilities}
            case "tools/list":
                found = {"tools": self.tools}
            case "tools/call":
                self.executed[params["name"]] += 1
                found = self.result or {"content": [{"type": "text", "text": "ok"}]}
            case _:
                found = {}
        if seen.headers.get("mcp-protocol-version") == MODERN:
            return {**found, "resultType": "complete"}
        return found

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncGenerator["Fake"]:
        async with upstream(self.script, port) as self.port:
            yield self


def answer(ident: Any, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def error(ident: Any, code: int, message: str = "no") -> Json:
    return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}}


def reply(
    status: int,
    body: Json | list[Any] | str | bytes = b"",
    headers: Json | None = None,
    *,
    length: int | None = None,
) -> bytes:
    """An HTTP response with its length, JSON unless the body is text."""
    kind = "text/plain"
    if isinstance(body, dict | list):
        body, kind = json.dumps(body), "application/json"
    data = body.encode() if isinstance(body, str) else body
    fields = {"Content-Length": len(data) if length is None else length, **(headers or {})}
    if data:
        fields = {"Content-Type": kind, **fields}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data


STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def event(message: Json, ident: str = "") -> bytes:
    head = f"id: {ident}\n" if ident else ""
    return f"{head}event: message\ndata: {json.dumps(message)}\n\n".encode()


# -- acts ---------------------------------------------------------------------------------------


def executing(act: Act) -> Act:
    """The call is executed, and then something goes wrong."""

    async def run(fake: Fake, peer: Peer, seen: Seen) -> None:
        if seen.step == "tools/call":
            fake.executed[seen.message["params"]["name"]] += 1
        await act(fake, peer, seen)

    return run


def says(status: int, body: Any = "x", headers: Json | None = None) -> Act:
    async def run(fake: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(reply(status, body, headers))

    return run


def refuses(code: int, status: int = 200) -> Act:
    """A JSON-RPC error with the request's id."""

    async def run(fake: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(reply(status, error(seen.id, code)))

    return run


def sends(data: bytes, then: str = "close") -> Act:
    """Bytes, and the end of the connection (`close`, `reset`), or nothing more (`hang`)."""

    async def run(fake: Fake, peer: Peer, seen: Seen) -> None:
        if data:
            await peer.send(data)
        await _end(peer, then)

    return run


async def _end(peer: Peer, then: str) -> None:
    if then == "close":
        await peer.close()
    elif then == "reset":
        await peer.reset()
    else:
        await silence(peer)


async def silence(peer: Peer) -> None:
    """Says nothing until the client leaves."""
    while True:
        await peer.stream.receive()


closes = sends(b"")
resets = sends(b"", "reset")
hangs = sends(b"", "hang")
