"""A program that does one task and ends, as an ACP agent: each prompt is a run of it.

Owns: the run that is going. Rules: what the program prints is the reply as it comes; its exit code
0 ends the turn, another is the turn's error, with the end of its stderr; a cancel or the end of
stdin kills it and what it has started in its group. Nothing is remembered from run to run. A script
of its own, by the standard library alone, so that it starts at once; `bridge.agent.rendering` makes
its command line for profiles that say `launch.task`.

In its environment `BRIDGE_TASK` has JSON: `{"command": [...], "prompt": "what stands in it for the
prompt's text", "exits": {"41": "what that exit code means"}}`.
"""

import codecs
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

VARIABLE = "BRIDGE_TASK"
_TAIL = 4000
_CHUNK = 65536
_INVALID_PARAMS, _METHOD_NOT_FOUND, _INTERNAL = -32602, -32601, -32603


class Agent:
    """The agent's side of one ACP connection on stdin and stdout."""

    def __init__(self, task: dict[str, Any]) -> None:
        self._task = task
        self._sessions: dict[str, str] = {}
        self._writing = threading.Lock()
        self._running: dict[str, _Run] = {}

    def serve(self) -> None:
        """Answers what comes until the end of stdin."""
        for line in sys.stdin.buffer:
            try:
                message: Any = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and isinstance(message.get("method"), str):  # pyright: ignore[reportUnknownMemberType]
                self._take(message)  # pyright: ignore[reportUnknownArgumentType]
        for run in list(self._running.values()):
            run.kill()

    def _take(self, message: dict[str, Any]) -> None:
        method: str = message["method"]
        params: dict[str, Any] = message.get("params") or {}
        if method == "session/cancel":
            if run := self._running.get(params.get("sessionId", "")):
                run.kill()
        elif "id" in message:
            self._answer(message["id"], method, params)

    def _answer(self, ident: Any, method: str, params: dict[str, Any]) -> None:
        if method == "initialize":
            info = {"name": "acp-mcp-bridge-task", "version": "1"}
            self.result(ident, {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info})
        elif method == "session/new":
            name = f"task-{len(self._sessions) + 1}"
            self._sessions[name] = params.get("cwd") or os.getcwd()
            self.result(ident, {"sessionId": name})
        elif method != "session/prompt":
            self.error(ident, _METHOD_NOT_FOUND, f"method not found: {method}")
        elif params.get("sessionId") not in self._sessions:
            self.error(ident, _INVALID_PARAMS, f"no session {params.get('sessionId')!r} here")
        else:
            self._prompt(ident, params["sessionId"], params.get("prompt") or [])

    def _prompt(self, ident: Any, session: str, blocks: list[dict[str, Any]]) -> None:
        text = "".join(block.get("text") or "" for block in blocks)
        command = [word.replace(self._task["prompt"], text) for word in self._task["command"]]
        try:
            run = _Run(command, self._sessions[session])
        except (OSError, ValueError) as error:
            self.error(ident, _INTERNAL, f"{command[0]}: {error}")
            return
        self._running[session] = run
        threading.Thread(target=self._attend, args=(ident, session, run), daemon=True).start()

    def _attend(self, ident: Any, session: str, run: "_Run") -> None:
        for text in run.output():
            content = {"type": "text", "text": text}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            params = {"sessionId": session, "update": update}
            self._write({"method": "session/update", "params": params})
        code = run.wait()
        if self._running.get(session) is run:
            del self._running[session]
        if run.killed:
            self.result(ident, {"stopReason": "cancelled"})
        elif code == 0:
            self.result(ident, {"stopReason": "end_turn"})
        else:
            ended = f"exit code {code}" if code > 0 else f"signal {-code}"
            meaning = self._task.get("exits", {}).get(str(code))
            words = f"the program ended with {ended}" + (f": {meaning}" if meaning else "")
            self.error(ident, _INTERNAL, f"{words}; {run.stderr()}".rstrip("; \n"))

    def result(self, ident: Any, result: dict[str, Any]) -> None:
        """Answers a request."""
        self._write({"id": ident, "result": result})

    def error(self, ident: Any, code: int, words: str) -> None:
        """Answers a request with an error."""
        self._write({"id": ident, "error": {"code": code, "message": words}})

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self._writing:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()


class _Run:
    """One run of the program, in a process group of its own."""

    def __init__(self, command: list[str], cwd: str) -> None:
        self.killed = False
        self._tail = bytearray()
        self._process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._errors = threading.Thread(target=self._drain, daemon=True)
        self._errors.start()

    def output(self) -> Iterator[str]:
        """What it prints, as text, in pieces as they come."""
        assert self._process.stdout is not None
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := os.read(self._process.stdout.fileno(), _CHUNK):
            if text := decoder.decode(data):
                yield text
        if text := decoder.decode(b"", final=True):
            yield text

    def _drain(self) -> None:
        """Its stderr is our stderr, and its end is kept."""
        assert self._process.stderr is not None
        while data := os.read(self._process.stderr.fileno(), _CHUNK):
            os.write(2, data)
            self._tail += data
            del self._tail[:-_TAIL]

    def wait(self) -> int:
        """Its exit code, or its signal's number below zero."""
        code = self._process.wait()
        self._errors.join(1)
        return code

    def stderr(self) -> str:
        """The end of what it wrote there."""
        return self._tail.decode(errors="replace").strip()

    def kill(self) -> None:
        """Ends it and its group at once."""
        self.killed = True
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


if __name__ == "__main__":
    Agent(json.loads(os.environ.pop(VARIABLE))).serve()
