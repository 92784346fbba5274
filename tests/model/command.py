"""`acp-mcp-bridge model` as a process of its own, and blocking sockets around it: for what can only
be seen from outside, such as its memory and how it ends.
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 30


class Command:
    """The running command. `lines` are what it has written to stdout, after the URL."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, "the command ended before it was ready"
        self.ready = first
        url = json.loads(first)["url"]
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[\w-]{22,})", url)
        assert found, url
        self.url, self.port, self.prefix = url, int(found[1]), found[2].encode()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def request(self, body: bytes | int, path: bytes = b"/v1/chat/completions") -> bytes:
        """A POST; of a body given as a number only the head."""
        size, body = (body, b"") if isinstance(body, int) else (len(body), body)
        head = b"POST %b%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        return head % (self.prefix, path, size) + body

    def peak_mib(self) -> float:
        """The most memory the process has had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found[1]) / 1024


@contextmanager
def command(*arguments: str, upstream: str, env: dict[str, str] | None = None) -> Iterator[Command]:
    """Runs the command; it is killed if it still runs at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bridge", "model", "--upstream", upstream, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    try:
        yield Command(process)
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@contextmanager
def blocking_upstream(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that runs `serve` in a thread for each connection; its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def one(sock: socket.socket) -> None:
        with sock, suppress(OSError):
            serve(sock)

    def accept() -> None:
        with suppress(OSError):
            while True:
                sock, _ = listener.accept()
                threading.Thread(target=one, args=(sock,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE)


def until(sock: socket.socket, end: bytes) -> bytes:
    """What comes up to `end`, and whatever came with it."""
    data = b""
    while end not in data:
        piece = sock.recv(1 << 20)
        if not piece:
            break
        data += piece
    return data


def swallow(sock: socket.socket, size: int) -> None:
    """Reads so many bytes and forgets them."""
    buffer = bytearray(1 << 20)
    while size > 0:
        got = sock.recv_into(buffer)
        if not got:
            raise ConnectionError
        size -= got
