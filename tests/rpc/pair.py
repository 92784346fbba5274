"""A connection and its peer over real pipes, for tests of bridge.rpc and bridge.agent."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec

from bridge.io.pipes import FdReader, FdWriter
from bridge.rpc.connection import Connection
from bridge.wire.jsonrpc import Malformed, Notification, Request
from bridge.wire.lines import LineFramer

PATIENCE = 10.0


class Peer:
    """The other side: writes bytes, reads what the connection sent, one message at a time."""

    def __init__(self, reader: FdReader, writer: FdWriter) -> None:
        self.reader, self.writer = reader, writer
        self._framer = LineFramer(1 << 30)
        self._lines: list[bytes] = []

    def write(self, *lines: bytes) -> None:
        self.writer.post(b"".join(line + b"\n" for line in lines))

    def say(self, *messages: dict[str, Any]) -> None:
        self.write(*(msgspec.json.encode({"jsonrpc": "2.0", **m}) for m in messages))

    async def line(self) -> bytes:
        while not self._lines:
            data = await self.reader.receive()
            assert data, "the connection closed its side"
            self._lines.extend(self._framer.feed(data))
        return self._lines.pop(0)

    async def heard(self) -> dict[str, Any]:
        message = msgspec.json.decode(await self.line())
        assert message.pop("jsonrpc") == "2.0"
        return message

    def leave(self) -> None:
        """Ends the connection's input."""
        self.writer.close()


class Recorder:
    """A Handler that notes what came, in order."""

    def __init__(self) -> None:
        self.came: list[Any] = []
        self.roomy = anyio.Event()
        self.roomy.set()

    def fast(self, line: bytes) -> bool:
        return False

    def request(self, request: Request) -> None:
        self.came.append(request)

    def notification(self, notification: Notification) -> None:
        self.came.append(notification.method)

    def noise(self, noise: Malformed) -> None:
        self.came.append(noise)

    async def room(self) -> None:
        await self.roomy.wait()


@asynccontextmanager
async def connected(**options: Any) -> AsyncGenerator[tuple[Connection, Peer]]:
    """A connection whose writer runs, and its peer. Run the connection's reader yourself."""
    out_of, into = os.pipe()
    back_out_of, back_into = os.pipe()
    writer, peer_writer = FdWriter(back_into), FdWriter(into)
    connection = Connection(FdReader(out_of), writer, **options)
    peer = Peer(FdReader(back_out_of), peer_writer)
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            tasks.start_soon(peer_writer.run)
            try:
                yield connection, peer
            finally:
                tasks.cancel_scope.cancel()
                for end in (writer, peer_writer, peer.reader, connection._reader):
                    end.close()
