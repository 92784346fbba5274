"""`python -m bench.model_server`: a model server with canned answers; prints its URL.

It answers with the length and the CRC-32 of the request that arrived, or with a stream of events
that have the time when they were sent and whose last has the CRC-32 of all before it: nothing that
a proxy loses or changes stays unseen. Started by bench.model_proxy.
"""

import asyncio
import json
import time
import zlib
from collections import defaultdict
from typing import ClassVar

import httptools

KIB = 1 << 10
EVENTS = 100
"""Of a stream, one a millisecond."""
END = b"event: end\ndata: %d\n\n"


def whole(length: int, crc: int) -> bytes:
    """The answer to a request, of 1 KiB: what arrived of it."""
    answer = {"object": "chat.completion", "length": length, "crc32": crc, "text": ""}
    answer["text"] = "x" * (KIB - len(json.dumps(answer)))
    return json.dumps(answer).encode()


def framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Model(asyncio.Protocol):
    """One connection: POST is answered as `x-bench` wants it, GET with the POSTs of each path."""

    counts: ClassVar[defaultdict[str, int]] = defaultdict(int)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.path, self.length, self.crc, self.stream = b"", 0, 0, False

    def on_url(self, url: bytes) -> None:
        self.path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.stream |= name.lower() == b"x-bench" and value == b"stream"

    def on_body(self, data: bytes) -> None:
        self.length += len(data)
        self.crc = zlib.crc32(data, self.crc)

    def on_message_complete(self) -> None:
        if self.parser.get_method() == b"GET":
            self.answer(json.dumps(self.counts).encode())
            return
        self.counts[self.path.split(b"/")[1].decode()] += 1
        if not self.stream:
            self.answer(whole(self.length, self.crc))
            return
        head = b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        self.transport.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % head)
        self.event(0, 0)

    def answer(self, body: bytes) -> None:
        head = b"Content-Type: application/json\r\nContent-Length: %d" % len(body)
        self.transport.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (head, body))

    def event(self, number: int, crc: int) -> None:
        if number == EVENTS:
            self.transport.write(framed(END % crc) + b"0\r\n\r\n")
            return
        delta = {"content": f"at {time.monotonic():.6f}"}
        chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}
        data = b"data: %b\n\n" % json.dumps(chunk).encode()
        self.transport.write(framed(data))
        loop = asyncio.get_running_loop()
        loop.call_later(0.001, self.event, number + 1, zlib.crc32(data, crc))


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Model, "127.0.0.1", 0, backlog=1024)
    print(json.dumps({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(serve())
