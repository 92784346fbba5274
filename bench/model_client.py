"""Clients of a model server on raw sockets, which check every byte they are answered.

One thread and epoll: as little as can be stands between the clock and the socket. Used by
bench.model_proxy, for each way to the server.
"""

import contextlib
import json
import re
import select
import socket
import time
import zlib
from collections.abc import Iterator
from urllib.parse import urlsplit

from bench.model_server import END, EVENTS, KIB

STAMP = re.compile(rb'"at (\d+\.\d{6})"')


class Connection:
    """A raw socket, kept, that makes one exchange at a time and checks what it is answered."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        self.buffer, self.seen = bytearray(), 0
        self.delays: list[float] = []
        self.first = 0.0
        self.began = time.monotonic()
        self.socket.sendall(request)

    def receive(self) -> bytes | None:
        """Reads once; the answer's body when that was the last of it."""
        data = self.socket.recv(1 << 16)
        now = time.monotonic()
        if not data:
            raise EOFError("the connection was closed before its answer's end")
        self.buffer += data
        for stamp in STAMP.finditer(self.buffer, self.seen):
            self.first = self.first or now
            self.delays.append(now - float(stamp[1]))
            self.seen = stamp.end()
        head, _, body = bytes(self.buffer).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200 "):
            raise ValueError(bytes(self.buffer[:300]))
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        if length is None:
            return b"".join(chunks(body)) if body.endswith(b"\r\n0\r\n\r\n") else None
        return body if len(body) >= int(length[1]) else None


def chunks(body: bytes) -> Iterator[bytes]:
    while body:
        size, _, body = body.partition(b"\r\n")
        yield body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]


class Way:
    """One way to the model server, and its counts."""

    def __init__(self, name: str, url: str, pid: int) -> None:
        parts = urlsplit(url)
        self.name, self.pid, self.path, self.made = name, pid, parts.path.rstrip("/"), 0
        self.address = (parts.hostname or "", parts.port or 0)

    def request(self, body: bytes, mode: str = "whole") -> bytes:
        host, port = self.address
        head = f"POST {self.path}/chat/completions HTTP/1.1\r\nHost: {host}:{port}\r\n"
        head += f"Authorization: Bearer dummy\r\nX-Bench: {mode}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def exchanges(
        self, request: bytes, expected: bytes, count: int, clients: int = 1
    ) -> tuple[list[float], float]:
        """Each exchange's seconds, and exchanges a second."""
        times: list[float] = []
        with contextlib.ExitStack() as stack, select.epoll() as poll:
            connections: dict[int, Connection] = {}
            for _ in range(clients):
                connection = Connection(self.address)
                stack.enter_context(connection.socket)
                connections[connection.socket.fileno()] = connection
                poll.register(connection.socket, select.EPOLLIN)
            began = time.monotonic()
            for connection in connections.values():
                connection.send(request)
            left = count - clients
            while len(times) < count:
                ready = poll.poll(60)
                if not ready:
                    raise TimeoutError(f"{self.name}: an answer is missing after a minute")
                for descriptor, _ in ready:
                    connection = connections[descriptor]
                    body = connection.receive()
                    if body is None:
                        continue
                    times.append(time.monotonic() - connection.began)
                    if body != expected:
                        raise ValueError(f"{self.name}: {body[:300]!r}, not {expected[:100]!r}")
                    if left > 0:
                        left -= 1
                        connection.send(request)
            took = time.monotonic() - began
        self.made += count
        return times, count / took

    def streams(self, request: bytes, count: int) -> tuple[list[float], list[float]]:
        """Of each stream the seconds to its first event; and of each event its delay."""
        connection = Connection(self.address)
        firsts: list[float] = []
        delays: list[float] = []
        with connection.socket:
            for _ in range(count):
                connection.send(request)
                while (body := connection.receive()) is None:
                    pass
                events = body[: body.rfind(END.partition(b"%")[0])]
                if events.count(b"\n\n") != EVENTS or body != events + END % zlib.crc32(events):
                    raise ValueError(f"{self.name}: events are lost or changed: {body[-300:]!r}")
                firsts.append(connection.first - connection.began)
                delays += connection.delays
        self.made += count
        return firsts, delays


def chat(size: int, *, null: bool = False) -> bytes:
    """A request of exactly that size; `null`: one of its contents wants mending."""
    lines = min(70, size // KIB * 8)
    text = 'def f(x):\n\tprint("value: \\"%s\\"" % x)  # naïve – checks\n' * lines
    messages: list[dict[str, str | None]] = [{"role": "user", "content": text}]
    messages *= max(1, size // (len(json.dumps(messages[0]).encode()) + 4) - 1)
    if null:
        messages.insert(len(messages) // 2, {"role": "assistant", "content": None})
    request = {"model": "bench", "messages": messages, "user": ""}
    request["user"] = "u" * (size - len(packed(request)))
    return packed(request)


def packed(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
