"""An ACP client for tests: spawns the real agent, checks what it writes by the official schema.

A thread reads; the test waits for what comes, never for time.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.peers.processes import MARKER, survivors

COMMAND = [str(Path(sys.executable).with_name("acp-mcp-bridge")), "agent"]
SCHEMA = json.loads(Path("protocol_schemas/official/acp/v1/schema.json").read_text())
PATIENCE = 30.0
Message = dict[str, Any]

RESULTS = {
    "initialize": "InitializeResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    # In the unstable schema only, where it is the shape of session/new.
    "session/fork": "NewSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/prompt": "PromptResponse",
}
SENT = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "$/cancel_request": "CancelRequestNotification",
}


@cache
def validator(definition: str) -> Draft202012Validator:
    assert definition in SCHEMA["$defs"], definition
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]})


UNSTABLE = {("PromptResponse", "usage")}
"""Members that only the unstable schema has, and that every client we know copes with."""


def check(definition: str, value: Any) -> None:
    """Raises where the value is not what the schema says, or has a member it does not know."""
    validator(definition).validate(value)
    known = {"_meta", *SCHEMA["$defs"][definition]["properties"]}
    strange = {key for key in value if key not in known and (definition, key) not in UNSTABLE}
    assert not strange, f"{definition} has no {strange}"


class Refused(AssertionError):
    """The agent answered with an error; `error` is the JSON-RPC one."""

    def __init__(self, error: Message) -> None:
        super().__init__(json.dumps(error))
        self.error = error


class AcpClient:
    """One agent process. `policy`: the option kind that permission requests are answered with at
    once; None leaves them in `asked`."""

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        url: str = "",
        loop: str = "auto",
        environment: dict[str, str] | None = None,
    ) -> None:
        self.policy: str | None = "allow_once"
        self.messages: list[Message] = []
        self.asked: list[Message] = []
        self.faults: list[str] = []
        self.marker = uuid.uuid4().hex
        self._methods: dict[Any, str] = {}
        self._answered: dict[Any, Message] = {}
        self._taken = 0
        self._ended = False
        self._count = 0
        self._changed = threading.Condition()
        self.reading = threading.Event()
        """Cleared, nothing more is read of what the agent writes."""
        self.reading.set()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (end closes it)
        self.process = subprocess.Popen(
            [*COMMAND, "--loop", loop, "--sessions", str(directory / "sessions"), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            bufsize=0,
            env=os.environ
            | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-CANARY", "OPENAI_MODEL": "scripted"}
            | {MARKER: self.marker, "PYTHONFAULTHANDLER": "1"}
            | (environment or {}),
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    # Reading

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.reading.wait()
            with self._changed:
                try:
                    self._take(line)
                except Exception as error:  # noqa: BLE001 - kept for the test
                    self.faults.append(f"{type(error).__name__}: {error}"[:2000])
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        assert line.endswith(b"\n"), f"no end of line: {line[-80:]!r}"
        message = json.loads(line.decode())
        assert message["jsonrpc"] == "2.0"
        self.messages.append(message)
        method = message.get("method")
        if method is None:
            self._take_response(message)
            return
        check(SENT[method], message["params"])
        if method == "session/request_permission":
            self.asked.append(message)
            if self.policy is not None:
                self.answer(message, self.policy)

    def _take_response(self, message: Message) -> None:
        assert ("result" in message) != ("error" in message), message
        ident = message["id"]
        if ident is not None:
            assert ident in self._methods, f"no request {ident!r} is open"
            assert ident not in self._answered, f"request {ident!r} was answered twice"
            self._answered[ident] = message
        if "error" in message:
            check("Error", message["error"])
            words = message["error"]["message"]
            assert words, "an error without words"
            assert message["error"]["code"] != -32000, "there is nothing to log in to"
            assert "\n" not in words, "an error of several lines"
        elif (definition := RESULTS.get(self._methods[ident])) is not None:
            check(definition, message["result"])

    # Writing

    def send(self, value: Any) -> None:
        self.write(json.dumps(value).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def request(self, method: str, params: Any, ident: Any = None) -> Any:
        """Sends a request; gives its id."""
        return self.requests((method, params), ident=ident)[0]

    def requests(self, *calls: tuple[str, Any], ident: Any = None) -> list[Any]:
        """Sends requests in one write; gives their ids."""
        lines, idents = b"", []
        for method, params in calls:
            self._count += 1
            idents.append(self._count if ident is None else ident)
            self._methods[idents[-1]] = method
            message = {"jsonrpc": "2.0", "id": idents[-1], "method": method, "params": params}
            lines += json.dumps(message).encode() + b"\n"
        self.write(lines)
        return idents

    def notify(self, method: str, params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, asked: Message, kind: str) -> None:
        """Answers a permission request with the option of that kind, or `cancelled`."""
        outcome: Message = {"outcome": "cancelled"}
        if kind != "cancelled":
            options = asked["params"]["options"]
            ident = next(o["optionId"] for o in options if o["kind"] == kind)
            outcome = {"outcome": "selected", "optionId": ident}
        self.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": outcome}})

    # Waiting

    def wait(self, condition: Callable[[], Any], what: str = "") -> Any:
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while not (value := condition()):
                left = deadline - time.monotonic()
                if left <= 0 or self._ended:
                    # So that its stderr shows where it stands.
                    self.process.send_signal(signal.SIGABRT)
                    self.process.wait()
                    raise AssertionError(f"{what or 'it'} did not come; {self.story()}")
                self._changed.wait(min(left, 1))
            return value

    def result(self, ident: Any) -> Any:
        """The result of a request; raises Refused."""
        message = self.wait(lambda: self._answered.get(ident), f"the answer to {ident!r}")
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def call(self, method: str, params: Any) -> Any:
        return self.result(self.request(method, params))

    def refusal(self, method: str, params: Any) -> Message:
        """The error that a request must get."""
        try:
            result = self.call(method, params)
        except Refused as refused:
            return refused.error
        raise AssertionError(f"{method} was not refused but gave {result}")

    # ACP

    def initialize(self) -> Message:
        return self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def new(self, cwd: Path | str = "/tmp", servers: list[Message] | None = None) -> str:
        result = self.call("session/new", {"cwd": str(cwd), "mcpServers": servers or []})
        return result["sessionId"]

    def start(self, session: str, *texts: str) -> Any:
        blocks = [{"type": "text", "text": text} for text in texts]
        return self.request("session/prompt", {"sessionId": session, "prompt": blocks})

    def prompt(self, session: str, *texts: str) -> Message:
        return self.result(self.start(session, *texts))

    def updates(self, session: str, kind: str | None = None) -> list[Message]:
        """The session's updates so far, of one kind or all."""
        found = [
            message["params"]["update"]
            for message in list(self.messages)
            if message.get("method") == "session/update"
            and message["params"]["sessionId"] == session
        ]
        return [u for u in found if kind is None or u["sessionUpdate"] == kind]

    def text(self, session: str, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.updates(session, kind))

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def story(self) -> str:
        return f"faults {self.faults}; last {self.messages[-5:]}; stderr {self.stderr()[-3000:]}"

    def end(self) -> int:
        """Closes stdin; gives the exit code. Whatever was wrong on the way fails here."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE)
        self.check_clean()
        return code

    def check_clean(self) -> None:
        left = survivors(self.marker, 5)
        faults, said = self.faults, self.stderr()
        self._stderr.close()
        assert not faults, faults
        assert not left, left
        assert "Traceback" not in said, said
