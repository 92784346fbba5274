"""The agent-facing side over lines: stdio, or the shim's tunnel; both eras.

Rules: a line is a message; requests are carried out side by side, initialize alone; after the end
of input what runs has a moment to be answered (input may come from a file).
Called by `bridge.mcp.alone` (stdio) and `http_front` (the shim's tunnel).
"""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from bridge.log import log
from bridge.mcp import eras, messages
from bridge.mcp.eras import Client
from bridge.mcp.peer import Peer
from bridge.mcp.view import View
from bridge.wire import jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Malformed, Notification, Request, Response
from bridge.wire.lines import LineFramer, LineTooLong

LINE_LIMIT = 256 << 20
_LAST_MOMENT = 1.5


async def converse(
    view: View,
    receive: Callable[[], Awaitable[bytes]],
    send: Callable[[bytes], Awaitable[None]],
) -> None:
    """Serves one client until its input ends (`receive` gives `b""`)."""
    front = _Lines(view, send)
    framer = LineFramer(LINE_LIMIT)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(front.pour)
            async with anyio.create_task_group() as requests:
                while data := await receive():
                    for line in framer.feed(data):
                        await front.take(line, requests)
                if last := framer.end():
                    await front.take(last, requests)
                requests.cancel_scope.deadline = anyio.current_time() + _LAST_MOMENT
            tasks.cancel_scope.cancel()
    except* anyio.BrokenResourceError:
        # The client does not read any more.
        pass
    except* LineTooLong as errors:
        log.error("the client sent %s", errors.exceptions[0])
    finally:
        front.peer.end()


class _Lines:
    def __init__(self, view: View, send: Callable[[bytes], Awaitable[None]]) -> None:
        self.peer = Peer(view)
        self._send = send
        self._lock = anyio.Lock()

    async def pour(self) -> None:
        await self.peer.pour(self.write)

    async def write(self, message: bytes) -> None:
        async with self._lock:
            await self._send(message + b"\n")

    async def take(self, line: bytes, tasks: TaskGroup) -> None:
        for part in messages.split(line) if line.strip() else ():
            match jsonrpc.parse(part):
                case Request() as request:
                    client = _modern(request)
                    if isinstance(client, str):
                        refusal = messages.error(jsonrpc.INVALID_PARAMS, client)
                        await self.write(messages.response(request.id, refusal))
                    elif request.method == "initialize" and client is None:
                        # What follows it depends on it.
                        await self._serve(request, None)
                    else:
                        tasks.start_soon(self._serve, request, client)
                case Notification() as notification:
                    self.peer.notified(notification)
                case Response() as response:
                    self.peer.settled(response)
                case Malformed() as noise:
                    refusal = messages.error(noise.code, noise.reason)
                    await self.write(messages.response(noise.id or b"null", refusal))

    async def _serve(self, request: Request, client: Client | None) -> None:
        await self.write(await self.peer.serve(request, self.write, client))


def _modern(request: Request) -> Client | str | None:
    """The caller as a modern request says it; words for what is wrong; None for a legacy one."""
    if eras.VERSION_KEY.encode() not in bytes(request.params):
        return None
    params = messages.members(request.params) or {}
    meta = messages.members(params.get("_meta", Raw(b"null")))
    if meta is None or eras.VERSION_KEY not in meta:
        return None
    return eras.caller_of(meta)
