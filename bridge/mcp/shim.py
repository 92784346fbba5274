"""A stdio MCP server that is only a pipe to the proxy, for agents that speak stdio alone.

Run as a script, with nothing but what Python has built in, since an agent starts one for each
server and waits for it. The environment names where to connect and the endpoint's path, which is
secret: an argument could be read by every user of the machine. Rule: bytes pass as they are, both
ways; either end's close ends it. Started by agents, as `bridge.mcp.service` tells them to.
"""

import os
import select
import sys

# Not the module `socket`, which doubles the time until the agent is answered.
from _socket import AF_INET, AF_INET6, SHUT_WR, socket

PLACE = "ACP_MCP_BRIDGE_SHIM"
PROTOCOL = "mcp-lines"
_SIZE = 1 << 16


def connect(place: str) -> "tuple[socket, bytes]":
    """A connection that has left HTTP, and what came with the head. `place`: HOST:PORT/PATH."""
    authority, _, path = place.partition("/")
    host, _, port = authority.rpartition(":")
    sock = socket(AF_INET6 if ":" in host else AF_INET)
    sock.connect((host.strip("[]"), int(port)))
    sock.sendall(
        f"GET /{path} HTTP/1.1\r\nHost: {authority}\r\n"
        f"Connection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n".encode()
    )
    head = b""
    while b"\r\n\r\n" not in head:
        data = sock.recv(_SIZE)
        if not data:
            break
        head += data
    status, _, rest = head.partition(b"\r\n\r\n")
    if not status.startswith(b"HTTP/1.1 101"):
        raise OSError(f"the proxy refused: {status[:80].decode('latin-1')}")
    return sock, rest


def write(data: bytes) -> None:
    """Writes all of it to stdout."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def pump(sock: socket) -> None:
    """Passes bytes on until the proxy closes; the end of stdin is passed on too."""
    sources = [sock, 0]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if 0 in ready:
            data = os.read(0, _SIZE)
            if data:
                sock.sendall(data)
            else:
                sources.remove(0)
                sock.shutdown(SHUT_WR)
        if sock in ready:
            data = sock.recv(_SIZE)
            if not data:
                return
            write(data)


def main() -> int:
    try:
        sock, rest = connect(os.environ[PLACE])
        write(rest)
        pump(sock)
    except (KeyError, OSError, ValueError) as error:
        os.write(2, f"acp-mcp-bridge shim: {error!r}\n".encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
