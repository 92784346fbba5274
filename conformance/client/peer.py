"""The agent that a client under test starts. It plays a scenario and writes down all that happens.

Standard library only; started as `python -I -S peer.py LOG SCENARIO SECONDS`. SECONDS is how long
it waits for anything. The log has one JSON object a line: `in` (a line it read, bytes that
are not UTF-8 as surrogates), `out` (one that it wrote), `step` (what it is about to try), `written`
(what the client has written into a file), `end`.

    turn      a prompt is answered after many steps, each followed by a request (`ping-STEP`)
    cancel    a prompt runs until session/cancel, a permission request open
    version   initialize is answered with a version that nobody speaks
    login     session/new is refused until the client has authenticated
"""

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
SESSION = "conformance-session"
SEPARATORS = "a\u2028b\u2029c\u0085d"
LARGE = 2 << 20
OPTIONS = [
    {"optionId": "42", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no, thank you", "name": "No", "kind": "reject_once"},
]
PING = "_conformance.example/ping"


class Gone(Exception):
    """The client has closed stdin."""


class Peer:
    def __init__(self, log: str, scenario: str, seconds: str) -> None:
        self.log, self.scenario = log, scenario
        self.patience = float(seconds)
        self.cwd = ""
        self.rest = b""
        self.lines: list[bytes] = []
        self.client: Json = {}
        self.answers: dict[Any, Json] = {}
        self.cancelled = self.logged_in = self.running = False

    def note(self, **fields: Any) -> None:
        with open(self.log, "a") as file:
            file.write(json.dumps(fields) + "\n")

    # What comes in

    def read(self, deadline: float | None) -> bytes | None:
        """The next line; None when the time is up. Raises Gone."""
        while not self.lines:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                return None
            data = os.read(0, 1 << 20)
            if not data:
                raise Gone
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                self.note(**{"in": line.decode(errors="surrogateescape")})
            self.lines += lines
        return self.lines.pop(0)

    def until(self, condition: Callable[[], object]) -> bool:
        """Takes what comes until the condition holds, or the time is up."""
        deadline = time.monotonic() + self.patience
        while not condition():
            line = self.read(deadline)
            if line is None:
                return False
            self.take(line)
        return True

    def take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            method = message.get("method")
        except (ValueError, AttributeError):
            return
        if method is None:
            self.answers[message.get("id")] = message
        elif "id" in message:
            self.request(message["id"], method, message.get("params") or {})
        elif method == "session/cancel":
            self.cancelled = True

    def request(self, ident: Any, method: str, params: Json) -> None:
        match method:
            case "initialize":
                self.client = params.get("clientCapabilities") or {}
                version = 999 if self.scenario == "version" else 1
                methods = [{"id": "login", "name": "Log in"}] if self.scenario == "login" else []
                about = {"name": "conformance", "version": "1"}
                result = {"protocolVersion": version, "agentCapabilities": {}, "agentInfo": about}
                self.write({"id": ident, "result": {**result, "authMethods": methods}})
            case "authenticate":
                self.logged_in = True
                self.write({"id": ident, "result": {}})
            case "session/new":
                self.cwd = str(params.get("cwd"))
                if self.scenario == "login" and not self.logged_in:
                    error = {"code": -32000, "message": "Authentication required"}
                    self.write({"id": ident, "error": error})
                    return
                kind = "available_commands_update"
                self.update({"sessionUpdate": kind, "availableCommands": []})
                self.write({"id": ident, "result": {"sessionId": SESSION}})
            case "session/prompt":
                again, self.running = self.running, True
                reason = "end_turn"
                if again:
                    pass  # A second prompt in a running turn is answered at once.
                elif self.scenario == "cancel":
                    self.cancelled = False
                    reason = self.cancelled_turn()
                else:
                    self.turn()
                self.write({"id": ident, "result": {"stopReason": reason}})
                self.running = False
            case _:
                error = {"code": -32601, "message": "Method not found"}
                self.write({"id": ident, "error": error})

    # What goes out

    def write(self, message: Json, pieces: int = 0) -> None:
        whole = {"jsonrpc": "2.0", **message}
        line = json.dumps(whole, ensure_ascii=False).encode() + b"\n"
        shown = whole if len(line) < 10_000 else {"jsonrpc": "2.0", "method": "session/update"}
        self.note(out=json.dumps(shown))
        step = pieces or len(line)
        for start in range(0, len(line), step):
            data = line[start : start + step]
            while data:
                data = data[os.write(1, data) :]
            if pieces:
                time.sleep(0.01)

    def update(self, body: Json, session: str = SESSION, pieces: int = 0) -> None:
        params = {"sessionId": session, "update": body}
        self.write({"method": "session/update", "params": params}, pieces)

    def say(self, text: str, pieces: int = 0) -> None:
        content = {"type": "text", "text": text}
        self.update({"sessionUpdate": "agent_message_chunk", "content": content}, pieces=pieces)

    def ask(self, ident: str | int, method: str, **params: Any) -> None:
        body = {"sessionId": SESSION, **params}
        self.write({"id": ident, "method": method, "params": body})

    def permission(self, ident: str | int) -> None:
        call = {"toolCallId": f"call-{ident}", "title": f"Tool {ident}"}
        self.update({"sessionUpdate": "tool_call", **call})
        self.ask(ident, "session/request_permission", toolCall=call, options=OPTIONS)

    # Scenarios

    def step(self, name: str, act: Callable[[], None], *awaited: Any) -> None:
        """Tries something; then waits for the answers to it, and for a sign of life."""
        self.note(step=name)
        act()
        self.until(lambda: all(ident in self.answers for ident in awaited))
        self.write({"id": f"ping-{name}", "method": PING, "params": {}})
        self.until(lambda: f"ping-{name}" in self.answers)

    def turn(self) -> None:
        def notify() -> None:
            for method in ("_conformance.example/news", "$/news"):
                self.write({"method": method, "params": {"x": 1}})

        def both() -> None:
            self.permission("ask-1")
            self.permission(7001)

        def taken_back() -> None:
            self.permission("ask-2")
            self.write({"method": "$/cancel_request", "params": {"requestId": "ask-2"}})

        strange = {"sessionUpdate": "_conformance_news", "x": 1}
        self.step("plain", lambda: self.say("hello"))
        self.step("notification", notify)
        self.step("update-kind", lambda: self.update(strange))
        self.step("update-session", lambda: self.update(strange, "conformance-other"))
        self.step("separators", lambda: self.say(SEPARATORS))
        self.step("split", lambda: self.say("Độ é 北 🎉", pieces=11))
        self.step("large", lambda: self.say("x" * LARGE))
        self.step("permissions", both, "ask-1", 7001)
        self.step("taken-back", taken_back, "ask-2")
        self.services()
        self.say("done")

    def services(self) -> None:
        """Files and terminals: used where they are advertised, else to be refused."""
        # Clients may keep to the session's directory.
        within = self.cwd if os.path.isabs(self.cwd) and os.path.isdir(self.cwd) else None
        folder = Path(tempfile.mkdtemp(prefix="conformance-", dir=within))
        there, new = folder / "there.txt", folder / "new.txt"
        there.write_text("one\ntwo\n")
        read = lambda: self.ask("read", "fs/read_text_file", path=str(there))  # noqa: E731
        self.step("read", read, "read")
        write = lambda: self.ask("write", "fs/write_text_file", path=str(new), content="é\n")  # noqa: E731
        self.step("write", write, "write")
        self.note(written=new.read_text(encoding="utf-8") if new.exists() else None)
        shutil.rmtree(folder, ignore_errors=True)
        run = {"command": sys.executable, "args": ["-c", "print('conformance')"], "cwd": "/"}
        self.step("create", lambda: self.ask("create", "terminal/create", **run), "create")
        created: Json = self.answers.get("create", {}).get("result") or {}
        terminal = created.get("terminalId")
        if terminal is None:
            return
        for name in ("wait_for_exit", "output", "release"):
            ask = lambda n=name: self.ask(n, f"terminal/{n}", terminalId=terminal)  # noqa: E731
            self.step(name, ask, name)

    def cancelled_turn(self) -> str:
        self.say("working")
        self.permission("ask-1")
        if not self.until(lambda: self.cancelled):
            return "end_turn"
        self.until(lambda: "ask-1" in self.answers)
        self.say("stopping")
        return "cancelled"


def main() -> None:
    peer = Peer(*sys.argv[1:4])
    peer.note(pid=os.getpid())

    def on_signal(number: int, frame: object) -> None:
        peer.note(end=signal.Signals(number).name)
        os._exit(0)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    try:
        while True:
            line = peer.read(None)
            if line is not None:
                peer.take(line)
    except (Gone, BrokenPipeError):
        if peer.rest:
            peer.note(**{"in": peer.rest.decode(errors="surrogateescape")})
        peer.note(end="eof")


if __name__ == "__main__":
    main()
