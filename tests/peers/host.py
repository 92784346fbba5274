"""A host for tests: spawns the real daemon and speaks any of its generations and framings.

One thread reads the daemon's stdout and checks that nothing but packets is on it; the test reads
what came. Waiting is for frames, never for time: a timeout here means a failed test.
"""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from tests.peers.agent import AgentLog
from tests.peers.processes import MARKER, marked, survivors

DAEMON = [str(Path(sys.executable).with_name("acp-mcp-bridge"))]
PATIENCE = 30.0
Frame = dict[str, Any]


class HostError(AssertionError):
    """The daemon did not do what any host relies on."""


def packet(value: object) -> bytes:
    data = json.dumps(value, ensure_ascii=False).encode()
    return len(data).to_bytes(8, "big") + data


def line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def config(generation: str, contents: list[Any], command: list[str] | None, **more: Any) -> Frame:
    """A prompt's config in generation A, B or C; `contents` are user contents."""
    if generation == "A":
        shape: Frame = {"messages": [{"role": "user", "content": item} for item in contents]}
        shape |= {"session_path": None}
    else:
        shape = {"user_contents": contents, "mcp_headers": {}, "client_capabilities": {}}
        shape |= {"tool_interception": None}
    base: Frame = {"mcp_urls": {}, "system_prompt": "", "session_meta": {}}
    if command is not None:
        base["command"] = command
    return base | shape | more


class Host:
    """One daemon process and everything it said."""

    def __init__(
        self,
        directory: Path,
        *arguments: str,
        generation: str = "C",
        framing: str = "packets",
        environment: dict[str, str] | None = None,
        command: list[str] | None = None,
        unread_stderr: bool = False,
    ) -> None:
        self.generation, self.framing = generation, framing
        self.marker = uuid.uuid4().hex
        self.log = AgentLog(directory / f"agent-{self.marker[:8]}.ndjson")
        self.frames: list[Frame] = []
        self.ended = False
        self.garbage: str | None = None
        self._ids = itertools.count(1)
        self._taken = 0
        self._changed = threading.Condition()
        self._may_read = threading.Event()
        self._may_read.set()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (dispose closes it)
        self.process = subprocess.Popen(
            command or [*DAEMON, "stream", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if unread_stderr else self._stderr,
            bufsize=0,
            cwd=directory,
            env=os.environ
            | {MARKER: self.marker, "SCRIPTED_LOG": str(self.log.path)}
            | (environment or {}),
            start_new_session=True,
        )
        self.pid = self.process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # What comes from the daemon.

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None
        buffer = bytearray()
        try:
            while data := os.read(stdout.fileno(), 1 << 20):
                buffer += data
                for body in self._bodies(buffer):
                    self._arrived(json.loads(body.decode()))
                self._may_read.wait()
            if buffer:
                self.garbage = f"half a frame at the end: {bytes(buffer[:200])!r}"
        except (ValueError, OSError) as error:
            if not stdout.closed:
                self.garbage = f"{error}: {bytes(buffer[:200])!r}"
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def _bodies(self, buffer: bytearray) -> Iterator[bytes]:
        while True:
            if self.framing == "packets":
                size = int.from_bytes(buffer[:8], "big")
                if len(buffer) >= 8 and size > 128 << 20:
                    raise ValueError("not a packet on stdout")
                end, start = 8 + size, 8
                if len(buffer) < 8 or len(buffer) < end:
                    return
            else:
                end, start = buffer.find(b"\n") + 1, 0
                if not end:
                    return
            body = bytes(buffer[start:end])
            del buffer[:end]
            yield body

    def _arrived(self, frame: Frame) -> None:
        if not isinstance(frame, dict):
            raise ValueError(f"a frame that is no object: {frame!r}")
        with self._changed:
            self.frames.append(frame)
            self._changed.notify_all()

    def wait(self, condition: Callable[[], Any], seconds: float = PATIENCE, what: str = "") -> Any:
        """The condition's value, once it is true, looked at whenever a frame came."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (value := condition()):
                left = deadline - time.monotonic()
                if left <= 0 or (self.ended and not condition()):
                    raise HostError(f"{what or 'it'} did not come in {seconds} s; {self.story()}")
                self._changed.wait(min(left, 0.5))
            return value

    def story(self) -> str:
        """What is known, for a failed test."""
        shown = [json.dumps(frame)[:300] for frame in self.frames[-12:]]
        state = f"exit {self.process.poll()}" if self.process.poll() is not None else "alive"
        return f"daemon {state}; garbage {self.garbage}; frames:\n" + "\n".join(
            [*shown, "stderr:", self.stderr()[-2000:]]
        )

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode(errors="replace")

    def pause(self) -> None:
        """Stops reading the daemon's stdout until `resume`: a slow host."""
        self._may_read.clear()

    def resume(self) -> None:
        self._may_read.set()

    def events(self, name: str | None = None, **fields: Any) -> list[Frame]:
        """The events so far, of one name and with the fields given."""
        return [
            frame
            for frame in list(self.frames)
            if "event" in frame
            and name in (None, frame["event"])
            and all(frame.get(key) == value for key, value in fields.items())
        ]

    def event(self, name: str, seconds: float = PATIENCE, **fields: Any) -> Frame:
        """The first event of that name and those fields."""
        return self.wait(lambda: self.events(name, **fields), seconds, f"event {name}")[0]

    def text_event(self, text: str, seconds: float = PATIENCE) -> Frame:
        """The first update whose text holds `text`."""

        def found() -> Frame | None:
            for event in self.events("update"):
                content = event["update"].get("content")
                if isinstance(content, dict) and text in str(content.get("text")):
                    return event
            return None

        return self.wait(found, seconds, f"an update with {text!r}")

    # What goes to the daemon.

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view) :]

    def frame(self, value: Frame) -> bytes:
        return (packet if self.framing == "packets" else line)(value)

    def send(self, operation: str, **fields: Any) -> int | None:
        """Writes a request; its id (None in generation A)."""
        value: Frame = {"operation": operation, **fields}
        if self.generation != "A":
            value = {"id": next(self._ids), **value}
        self.raw(self.frame(value))
        return value.get("id")

    def answer(self, request_id: int | None, seconds: float = PATIENCE) -> Frame:
        """The response to a request; in generation A, the next one."""
        if request_id is None:
            self.wait(lambda: len(self.frames) > self._taken, seconds, "a response")
            self._taken += 1
            return self.frames[self._taken - 1]
        return self.wait(
            lambda: [f for f in self.frames if "event" not in f and f.get("id") == request_id],
            seconds,
            f"the response to {request_id}",
        )[0]

    def call(self, operation: str, seconds: float = PATIENCE, **fields: Any) -> Frame:
        return self.answer(self.send(operation, **fields), seconds)

    def start(
        self, command: list[str] | None, *contents: Any, session: str = "", **more: Any
    ) -> int | None:
        """Sends a prompt; its id."""
        named = {"session": session} if session else {}
        settings = config(self.generation, list(contents), command, **more)
        return self.send("prompt", config=settings, **named)

    def prompt(
        self, command: list[str] | None, *contents: Any, seconds: float = PATIENCE, **more: Any
    ) -> Frame:
        """One turn; the response."""
        return self.answer(self.start(command, *contents, **more), seconds)

    def reply(self, command: list[str] | None, *contents: Any, **more: Any) -> str:
        """One turn that must succeed; its text."""
        response = self.prompt(command, *contents, **more)
        assert response.get("ok") is True, f"{response}\n{self.stderr()[-2000:]}"
        return response["reply"] if self.generation == "A" else response["result"]["reply"]

    def hello(self, *events: str) -> Frame:
        every = ["update", "permission", "elicitation", "mcp", "model", "stderr", "exit", "turn"]
        every += ["mode", "notice", "subagent"]
        client = {"name": "tests", "version": "1"}
        response = self.call("hello", protocol=1, client=client, events=list(events) or every)
        assert response["ok"] is True, response
        return response["result"]

    # The end.

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def exit_code(self, seconds: float = PATIENCE) -> int:
        """The daemon's exit code, once it has ended."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise HostError(f"no exit in {seconds} s; {self.story()}") from None

    def survivors(self, seconds: float = 5) -> list[str]:
        """What of the daemon, its agents and theirs still lives after so long."""
        return survivors(self.marker, seconds)

    def shutdown(self) -> Frame:
        """An orderly end, checked: answered, exit 0, nothing left, nothing but packets."""
        response = self.call("shutdown")
        assert response["ok"] is True, response
        self.close_stdin()
        assert self.exit_code() == 0, self.story()
        self.check()
        return response

    def check(self) -> None:
        """After the daemon's end: nothing but frames came, nothing is left running."""
        self.resume()
        self._reader.join(PATIENCE)
        assert self.garbage is None, self.garbage
        assert self.survivors() == []

    def dispose(self) -> None:
        """Ends whatever a failed test left."""
        self.resume()
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)
        for pid in marked(self.marker):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._reader.join(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._stderr.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.dispose()
