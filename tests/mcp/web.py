"""A raw HTTP client for the proxy's endpoint: one connection a request, nothing done on its own."""

import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import anyio

from tests.raw import Peer, dial

Json = dict[str, Any]
MODERN = "2026-07-28"
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
BOTH = "application/json, text/event-stream"


class Got(NamedTuple):
    """A response: `messages` are its JSON, or its events' data, in order."""

    status: int
    headers: dict[str, str]
    messages: list[Any]
    body: bytes

    @property
    def last(self) -> Json:
        return self.messages[-1]

    @property
    def result(self) -> Json:
        return self.last["result"]

    @property
    def error(self) -> Json:
        return self.last["error"]


class Open:
    """A response under way, event by event."""

    def __init__(self, peer: Peer, status: int, headers: dict[str, str]) -> None:
        self.peer = peer
        self.status = status
        self.headers = headers

    async def event(self) -> Json:
        """The next event's data; comments are skipped."""
        while True:
            text = (await self.chunk()).decode()
            lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
            if lines:
                return json.loads("\n".join(lines))

    async def chunk(self) -> bytes:
        """The next chunk of the body; raises EOFError at its end."""
        size = int(await self.peer.until(b"\r\n"), 16)
        data = await self.peer.count(size + 2)
        if not size:
            raise EOFError
        return data[:-2]


class Web:
    """A client of one endpoint; `session` is sent once it is known."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.port = parts.port or 0
        self.path = parts.path
        self.session: str | None = None
        self.ids = itertools.count(1)

    async def send(self, verb: str, body: bytes = b"", headers: Json | None = None) -> Peer:
        """Writes a request; whoever called reads the response."""
        peer = await dial(self.port)
        fields: Json = {"Host": f"127.0.0.1:{self.port}", "Accept": BOTH}
        if body:
            fields |= {"Content-Type": "application/json", "Content-Length": len(body)}
        if self.session is not None:
            fields["Mcp-Session-Id"] = self.session
        fields |= headers or {}
        lines = "".join(f"{k}: {v}\r\n" for k, v in fields.items() if v is not None)
        await peer.send(f"{verb} {self.path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        return peer

    async def request(self, verb: str, body: bytes = b"", headers: Json | None = None) -> Got:
        peer = await self.send(verb, body, headers)
        status, fields = await head(peer)
        if fields.get("transfer-encoding") == "chunked":
            stream = Open(peer, status, fields)
            found: list[Any] = []
            try:
                while True:
                    found.append(await stream.event())
            except EOFError:
                pass
            await peer.close()
            return Got(status, fields, found, b"")
        data = await peer.count(int(fields.get("content-length", "0")))
        await peer.close()
        return Got(status, fields, [json.loads(data)] if data else [], data)

    async def post(self, message: Any, headers: Json | None = None) -> Got:
        return await self.request("POST", json.dumps(message).encode(), headers)

    async def call(self, method: str, params: Any = None, headers: Json | None = None) -> Got:
        """A legacy request."""
        return await self.post(self.message(method, params), headers)

    def message(self, method: str, params: Any = None) -> Json:
        message: Json = {"jsonrpc": "2.0", "id": next(self.ids), "method": method}
        return message if params is None else {**message, "params": params}

    async def open(self, capabilities: Json | None = None, version: str = "2025-11-25") -> Got:
        """initialize and initialized."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "web", "version": "1"},
        }
        got = await self.call("initialize", params)
        self.session = got.headers["mcp-session-id"]
        await self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return got

    def modern(self, method: str, params: Json | None = None) -> tuple[Json, Json]:
        """A modern request and its headers."""
        meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
        given = dict(params or {})
        meta |= given.pop("_meta", {})
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        named = given.get("uri" if method == "resources/read" else "name")
        if named is not None and method in ("tools/call", "prompts/get", "resources/read"):
            headers["Mcp-Name"] = named
        return self.message(method, {**given, "_meta": meta}), headers

    async def ask(self, method: str, params: Json | None = None, **headers: Any) -> Got:
        """A modern request."""
        message, mirrored = self.modern(method, params)
        return await self.post(message, {**mirrored, **headers})

    @asynccontextmanager
    async def streaming(
        self, message: Json | None = None, headers: Json | None = None
    ) -> AsyncGenerator[Open]:
        """A POST's (or, without a message, a GET's) response as a stream, event by event."""
        body = b"" if message is None else json.dumps(message).encode()
        peer = await self.send("POST" if body else "GET", body, headers)
        try:
            status, fields = await head(peer)
            yield Open(peer, status, fields)
        finally:
            with anyio.CancelScope(shield=True):
                await peer.close()


async def head(peer: Peer) -> tuple[int, dict[str, str]]:
    text = (await peer.until(b"\r\n\r\n")).decode("latin-1")
    first, *lines = text.rstrip("\r\n").split("\r\n")
    fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    return int(first.split(" ")[1]), fields
