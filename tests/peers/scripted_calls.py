"""What the scripted agent calls by itself: its model server, and the tools of its MCP servers.

Stdlib only, and in the foreground: the agent does nothing else meanwhile. Loaded on first use.
"""

import contextlib
import http.client
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

VERSION = "2025-06-18"


def filled(text: str, options: dict[str, str]) -> str:
    """$NAME stands for a variable of the environment, else for an option."""
    return re.sub(r"\$(\w+)", lambda m: os.environ.get(m[1]) or options.get(m[1], ""), text)


def exchange(method: str, url: str, headers: dict[str, str], body: bytes | None = None):
    """Status, headers and whole body of one request on a connection of its own."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    with contextlib.closing(connection):
        target = place.path + (f"?{place.query}" if place.query else "")
        connection.request(method, target or "/", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def post(url: str, body: str) -> dict:
    """A model request, with the key that the environment has."""
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("OPENAI_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    try:
        status, _, data = exchange("POST", url, headers, body.encode())
    except (OSError, http.client.HTTPException) as error:
        return {"failed": type(error).__name__}
    return {"status": status, "body": data.decode()}


def call(server: dict, tool: str, arguments: object) -> dict:
    """The result, or the error, of a tool call in a session of its own."""
    speak = over_http if "url" in server else over_stdio
    with speak(server) as ask:
        info = {"name": "scripted", "version": "1"}
        ask("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": info})
        ask("notifications/initialized", {})
        meta = {"progressToken": "p"}
        answer = ask("tools/call", {"name": tool, "arguments": arguments, "_meta": meta})
    return answer.get("error") or answer["result"]


def message(method: str, params: dict) -> dict:
    ident = {} if method.startswith("notifications/") else {"id": method}
    return {"jsonrpc": "2.0", **ident, "method": method, "params": params}


@contextlib.contextmanager
def over_http(server: dict) -> Iterator[Callable[[str, dict], dict]]:
    headers = {header["name"]: header["value"] for header in server["headers"]}
    headers["Content-Type"] = "application/json"
    headers["Accept"] = "application/json, text/event-stream"

    def ask(method: str, params: dict) -> dict:
        body = json.dumps(message(method, params)).encode()
        status, answered, data = exchange("POST", server["url"], headers, body)
        if status >= 300:
            return {"error": {"code": status, "message": data.decode(errors="replace")}}
        if "Mcp-Session-Id" in answered:
            headers["Mcp-Session-Id"] = answered["Mcp-Session-Id"]
        headers["Mcp-Protocol-Version"] = VERSION
        lines = [line.removeprefix("data:").strip() for line in data.decode().splitlines()]
        found = [json.loads(line) for line in lines if line.startswith("{")]
        return next((one for one in found if one.get("id") == method), {})

    yield ask
    if "Mcp-Session-Id" in headers:
        exchange("DELETE", server["url"], headers)


@contextlib.contextmanager
def over_stdio(server: dict) -> Iterator[Callable[[str, dict], dict]]:
    env = os.environ | {pair["name"]: pair["value"] for pair in server["env"]}
    command = [server["command"], *server["args"]]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env, text=True) as process:
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None
        assert stdout is not None

        def ask(method: str, params: dict) -> dict:
            stdin.write(json.dumps(message(method, params)) + "\n")
            stdin.flush()
            if method.startswith("notifications/"):
                return {}
            while line := stdout.readline():
                answer = json.loads(line)
                if answer.get("id") == method:
                    return answer
            return {"error": {"code": 0, "message": "the server has ended"}}

        yield ask
        stdin.close()
