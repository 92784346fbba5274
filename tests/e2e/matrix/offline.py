"""A few cells where there is nothing but loopback, and a name server that knows no name.

    unshare -n -m python -m tests.e2e.matrix.offline AGENT DIRECTORY

Prints the cells, and the names that were looked for (but for those of the machine itself).
"""

import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from tests.e2e.matrix.agents import AGENTS
from tests.e2e.matrix.desk import Room
from tests.e2e.matrix.runner import SCENARIOS, play

PLAYED = ("turns", "mcp")
REFUSED = 5


def before() -> list[str]:
    """Stands before a command that is to have no network."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--net", "--mount", *user]


def name(question: bytes) -> str:
    """The name that a DNS question asks for."""
    labels, place = [], 12
    while place < len(question) and (size := question[place]):
        labels.append(question[place + 1 : place + 1 + size].decode("ascii", "replace"))
        place += size + 1
    return ".".join(labels)


def refuse(server: socket.socket, looked_for: set[str]) -> None:
    while True:
        question, client = server.recvfrom(4096)
        looked_for.add(name(question))
        flags = bytes([0x80 | (question[2] & 0x79), REFUSED])
        server.sendto(question[:2] + flags + question[4:], client)


def main() -> None:
    agent, place = AGENTS[sys.argv[1]], Path(sys.argv[2])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    (place / "resolv.conf").write_text("nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
    subprocess.run(["mount", "--bind", place / "resolv.conf", "/etc/resolv.conf"], check=True)
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    looked_for: set[str] = set()
    threading.Thread(target=refuse, args=(server, looked_for), daemon=True).start()
    with Room(place) as room:
        cells = {row: asdict(play(room, agent, SCENARIOS[row])) for row in PLAYED}
    names = sorted(n for n in looked_for if "." in n and not n.endswith(".arpa"))
    print(json.dumps({"cells": cells, "looked_for": names}))


if __name__ == "__main__":
    main()
