"""Servers that tests start as processes: the scripted model, a real MCP server, a tool gate."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.peers.processes import wait_until

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Server:
    """A running server: its address and its log."""

    url: str
    path: Path

    def log(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().split("\n")[:-1]]

    def until(self, condition: Callable[[list[dict[str, Any]]], Any], seconds: float = 20) -> Any:
        """The condition's value on the log, once it is true."""
        assert wait_until(lambda: condition(self.log()), seconds), self.log()
        return condition(self.log())

    def outcome(self, number: int) -> str | None:
        """How a request to the scripted model ended, if it did."""
        return self.outcomes().get(number)

    def outcomes(self) -> dict[int, str]:
        """How the requests to the scripted model ended, those that did, by their number."""
        return {r["number"]: r["outcome"] for r in self.log() if "method" not in r}

    def bodies(self, path: str) -> list[dict[str, Any]]:
        """The scripted model's requests whose path ends so."""
        return [r for r in self.log() if r.get("path", "").partition("?")[0].endswith(path)]

    def calls(self) -> list[dict[str, Any]]:
        """The MCP server's tool calls: name and arguments."""
        return [r["params"] for r in self.log() if r.get("method") == "tools/call"]


@contextlib.contextmanager
def _serving(module: str, log: Path, *arguments: str) -> Iterator[Server]:
    command = [sys.executable, "-m", module, "--log", str(log), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            assert ready, f"{module} ended with {process.wait()}"
            yield Server(json.loads(ready)["url"], log)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def model_server(
    log: Path, *arguments: str, strict: str = ""
) -> contextlib.AbstractContextManager[Server]:
    """bridge.scripted.model in a process of its own."""
    return _serving("bridge.scripted.model", log, "--strict", strict, *arguments)


def mcp_server(
    log: Path, name: str = "tiny", *more: str
) -> contextlib.AbstractContextManager[Server]:
    """tests.peers.mcp_server in a process of its own."""
    return _serving("tests.peers.mcp_server", log, "--name", name, *more)


@contextlib.contextmanager
def model_proxy(upstream: str, *arguments: str) -> Iterator[str]:
    """The bridge's model proxy alone; its URL."""
    bridge = str(Path(sys.executable).with_name("acp-mcp-bridge"))
    command = [bridge, "model", "--upstream", upstream, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.wait(10)


class Quiet(BaseHTTPRequestHandler):
    """A handler that writes nothing to stderr: tests read what it was asked."""

    def log_message(self, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def threaded(handler: type[Quiet]) -> Iterator[str]:
    """An HTTP server on loopback in threads of this process; its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Gate:
    """A tool gate as verifiers has it: what it was asked, and how it decides."""

    url: str = ""
    secret: str = "gate-secret"
    decide: Callable[[dict[str, Any]], str] = lambda question: "allow"
    asked: list[dict[str, Any]] = field(default_factory=list)

    @property
    def interception(self) -> dict[str, str]:
        """The `tool_interception` of a prompt's config."""
        return {"url": self.url, "secret": self.secret}


@contextlib.contextmanager
def tool_gate() -> Iterator[Gate]:
    """A gate on loopback; set `decide` before or between turns."""
    gate = Gate()

    class Handler(Quiet):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            gate.asked.append(question)
            allowed = self.headers["Authorization"] == f"Bearer {gate.secret}"
            body = json.dumps({"action": gate.decide(question)}).encode()
            self.send_response(200 if allowed else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with threaded(Handler) as url:
        gate.url = f"{url}/tool"
        yield gate
