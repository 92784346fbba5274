"""A chat completions server whose every answer a test lays down, byte by byte if need be.

Threads and plain sockets. An answer is a list of steps: bytes to send, or a Gate at which the
server waits until the test opens it; meanwhile it notices a client that leaves.
"""

import json
import select
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Self

PATIENCE = 30.0
USAGE = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}


class Gate:
    """Where an answer stops until `open` is called."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()

    def open(self) -> None:
        self.opened.set()

    def wait_reached(self) -> None:
        assert self.reached.wait(PATIENCE), "the answer did not get to its gate"


Step = bytes | Gate
DONE = b"data: [DONE]\n\n"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def usage(**fields: Any) -> bytes:
    return event({"choices": [], "usage": USAGE | fields})


def text(*pieces: Step | str, finish: str = "stop") -> list[Step]:
    """A streamed text, piece by piece."""
    shown = [delta(content=piece) if isinstance(piece, str) else piece for piece in pieces]
    return [delta(role="assistant", content=""), *shown, delta(finish), usage(), DONE]


def call(*calls: tuple[str, str], said: str | None = None) -> list[Step]:
    """Streamed tool calls: names and arguments (JSON text, sent in two pieces)."""
    steps: list[Step] = [delta(role="assistant", content=said)]
    for index, (name, arguments) in enumerate(calls):
        half = len(arguments) // 2
        function = {"name": name, "arguments": arguments[:half]}
        head = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        rest = {"index": index, "function": {"arguments": arguments[half:]}}
        steps += [delta(tool_calls=[head]), delta(tool_calls=[rest])]
    return [*steps, delta("tool_calls"), usage(), DONE]


class Answer:
    """How a request is answered. `cut`: the connection is closed without a proper end."""

    def __init__(
        self,
        steps: list[Step],
        status: str = "200 OK",
        kind: str = "text/event-stream",
        cut: bool = False,
    ) -> None:
        self.steps, self.status, self.kind, self.cut = steps, status, kind, cut


class ChatServer:
    """`requests`: the bodies that came; `headers`: their heads; `left`: clients that went away
    before their answer was over; `connections`: how many were made."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = 0
        self.connections = 0
        self._answers: deque[Answer] = deque()
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Its thread first: it must not accept for whoever gets the descriptor's number next.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join()
        self._listener.close()

    def answers(self, *answers: list[Step] | Answer) -> None:
        """Lays down answers, for the requests to come in this order."""
        with self._changed:
            for answer in answers:
                self._answers.append(answer if isinstance(answer, Answer) else Answer(answer))

    def wait(self, condition: Callable[[], Any]) -> Any:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), "it did not happen"
            return condition()

    def reset(self) -> None:
        """Forgets what came; every answer laid down must have been used."""
        with self._changed:
            unused = len(self._answers)
            self._answers.clear()
            self.requests, self.headers, self.left = [], [], 0
        assert not unused, f"{unused} answers were not asked for"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            try:
                while self._one(connection, stream):
                    pass
            except OSError:
                return

    def _one(self, connection: socket.socket, stream: Any) -> bool:
        if not stream.readline():
            return False
        headers: dict[str, str] = {}
        while (line := stream.readline().decode().strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        size = int(headers.get("content-length", 0))
        body = stream.read(size)
        if len(body) < size:
            return False
        with self._changed:
            self.requests.append(json.loads(body))
            self.headers.append(headers)
            self._changed.notify_all()
        answer = self._next_answer(connection)
        if answer is None:
            return False
        head = f"HTTP/1.1 {answer.status}\r\nContent-Type: {answer.kind}\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for step in answer.steps:
            if isinstance(step, Gate):
                if not self._at_gate(connection, step):
                    return False
            else:
                connection.sendall(b"%x\r\n%b\r\n" % (len(step), step))
        if answer.cut:
            return False
        connection.sendall(b"0\r\n\r\n")
        return True

    def _next_answer(self, connection: socket.socket) -> Answer | None:
        """The answer laid down for this request; None if the client left before there was one."""
        while not self._gone(connection):
            with self._changed:
                if self._answers:
                    return self._answers.popleft()
        return None

    def _gone(self, connection: socket.socket) -> bool:
        """Whether the client left; waits a moment for it."""
        readable, _, _ = select.select([connection], [], [], 0.005)
        if not readable or connection.recv(1, socket.MSG_PEEK):
            return False
        with self._changed:
            self.left += 1
            self._changed.notify_all()
        return True

    def _at_gate(self, connection: socket.socket, gate: Gate) -> bool:
        """Waits for the gate; False if the client left."""
        gate.reached.set()
        while not gate.opened.is_set():
            if self._gone(connection):
                return False
        return True
