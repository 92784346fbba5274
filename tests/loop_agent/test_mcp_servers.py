"""MCP servers of a session: real ones, over HTTP and stdio; names, failures, losses."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from bridge.loop_agent import mcp_servers
from tests.loop_agent.acp_client import AcpClient, Message, Refused
from tests.loop_agent.chat_server import ChatServer, call, text
from tests.loop_agent.conftest import Start
from tests.peers.processes import alive, wait_until

STDIO = Path(__file__).with_name("stdio_server.py")


@dataclass
class HttpServer:
    url: str
    log: Path
    process: "subprocess.Popen[bytes]"

    def records(self) -> list[Message]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def http(tmp_path: Path) -> Iterator[HttpServer]:
    log = tmp_path / "mcp.ndjson"
    log.touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.peers.mcp_server", "--log", str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    with process.stdout:
        server = HttpServer(json.loads(process.stdout.readline())["url"], log, process)
        yield server
        server.stop()


def by_http(server: HttpServer, name: str = "tiny", **headers: str) -> Message:
    pairs = [{"name": key, "value": value} for key, value in headers.items()]
    return {"type": "http", "name": name, "url": server.url, "headers": pairs}


def by_stdio(name: str, *command: str, **env: str) -> Message:
    program, *args = command or (sys.executable, str(STDIO))
    pairs = [{"name": key, "value": value} for key, value in env.items()]
    return {"name": name, "command": program, "args": args, "env": pairs}


def told(chat: ChatServer) -> object:
    return chat.requests[-1]["messages"][-1]["content"]


def use(agent: AcpClient, chat: ChatServer, session: str, tool: str, arguments: object) -> object:
    """What the model is told of one call."""
    chat.answers(call((tool, json.dumps(arguments))), text("ok"))
    assert agent.prompt(session, "go")["stopReason"] == "end_turn"
    return told(chat)


def refused(agent: AcpClient, *servers: Message) -> Message:
    return agent.refusal("session/new", {"cwd": "/tmp", "mcpServers": list(servers)})


def test_servers_of_both_kinds_serve_their_tools(
    start: Start, chat: ChatServer, http: HttpServer, tmp_path: Path
) -> None:
    agent = start()
    servers = [by_http(http, Authorization="Bearer t"), by_stdio("s", SECRET="x")]
    session = agent.new(tmp_path, servers)
    assert use(agent, chat, session, "tiny_echo", {"message": "hi"}) == "echo: hi"
    names = [tool["function"]["name"] for tool in chat.requests[0]["tools"]]
    assert {"tiny_echo", "tiny_wait", "tiny_fail", "tiny_note_of_the_day"} <= set(names)
    assert "s_add" in names
    spec = chat.requests[0]["tools"][0]["function"]
    assert spec["description"] == "Says the message again."
    assert spec["parameters"]["required"] == ["message"]
    headers = [record["headers"] for record in http.records()]
    assert all(header["authorization"] == "Bearer t" for header in headers)
    shown = agent.updates(session, "tool_call_update")[-1]
    assert shown["status"] == "completed"
    assert shown["content"] == [
        {"type": "content", "content": {"type": "text", "text": "echo: hi"}}
    ]
    # MCP tools are the host's own: it is not asked for permission.
    assert agent.asked == []
    assert use(agent, chat, session, "s_add", {"a": 2, "b": 3}) == "5"
    # A server gets what it was given and nothing of ours.
    assert use(agent, chat, session, "s_where", {}) == f"{tmp_path} x None"
    assert use(agent, chat, session, "s_picture", {}) == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    ]
    # A tool's own error is its result.
    assert "fail" in str(use(agent, chat, session, "tiny_fail", {"why": "no"}))
    assert agent.updates(session, "tool_call_update")[-1]["status"] == "failed"


def test_a_server_of_the_older_http_transport_serves_its_tools(
    start: Start, chat: ChatServer
) -> None:
    agent = start()
    process = subprocess.Popen([sys.executable, "-c", SSE], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        url = process.stdout.readline().decode().strip()
        server = {"type": "sse", "name": "old", "url": url, "headers": []}
        session = agent.new("/tmp", [server])
        assert use(agent, chat, session, "old_greet", {"name": "x"}) == "hello x"
        process.kill()
        process.wait()
    assert "MCP server 'old'" in str(use(agent, chat, session, "old_greet", {"name": "x"}))


def test_a_server_without_a_name_gives_bare_names(
    start: Start, chat: ChatServer, http: HttpServer
) -> None:
    agent = start()
    session = agent.new("/tmp", [by_http(http, "")])
    assert use(agent, chat, session, "echo", {"message": "hi"}) == "echo: hi"


def test_a_name_that_two_servers_give_is_an_error_that_names_it(
    start: Start, http: HttpServer
) -> None:
    agent = start("--tools", "bash")
    error = refused(agent, by_http(http, "a"), by_http(http, "a"))
    assert (error["code"], error["message"]) == (-32602, "two MCP servers are named 'a'")
    prefixed = by_stdio("", *paging({None: ("a_echo", None)}))
    error = refused(agent, by_http(http, "a"), prefixed)
    assert error["code"] == -32602
    assert "'a_echo'" in error["message"]
    assert "'a'" in error["message"]
    local = by_stdio("", *paging({None: ("bash", None)}))
    assert "'bash'" in refused(agent, local)["message"]
    assert agent.call("session/list", {}) == {"sessions": []}


def test_a_server_that_cannot_be_used_is_named_with_the_cause(start: Start) -> None:
    agent = start()
    dead = {"type": "http", "name": "dead", "url": "http://127.0.0.1:1/mcp", "headers": []}
    quits = by_stdio("quits", "/bin/sh", "-c", "echo no config >&2; exit 3")
    missing = by_stdio("missing", "/no/such/program")
    error = refused(agent, dead, quits, missing)
    assert error["code"] == -32603
    for words in ("'dead'", "ConnectError", "'quits'", "exit code 3", "no config", "'missing'"):
        assert words in error["data"]["details"]


def test_a_server_that_makes_no_sense_is_refused(start: Start) -> None:
    agent = start()
    for server in (
        {"type": "acp", "name": "x", "serverId": "1"},
        {"type": "http", "name": "x", "headers": []},
        {"name": "x", "args": [], "env": []},
        {"type": "http", "url": "http://x", "headers": []},
        5,
    ):
        assert (
            agent.refusal("session/new", {"cwd": "/tmp", "mcpServers": [server]})["code"] == -32602
        )


def test_a_lost_server_is_an_error_of_the_call_and_found_again(
    start: Start, chat: ChatServer, tmp_path: Path
) -> None:
    agent = start()
    session = agent.new(tmp_path, [by_stdio("s")])
    lost = str(use(agent, chat, session, "s_die", {}))
    assert "exit code 9" in lost
    assert "dying as asked" in lost
    assert "not known" in lost
    assert use(agent, chat, session, "s_add", {"a": 1, "b": 1}) == "2"


def test_a_lost_http_server_is_an_error_of_the_call(
    start: Start, chat: ChatServer, http: HttpServer
) -> None:
    agent = start()
    session = agent.new("/tmp", [by_http(http)])
    http.stop()
    assert "ConnectError" in str(use(agent, chat, session, "tiny_echo", {"message": "x"}))
    assert "cannot connect" in str(use(agent, chat, session, "tiny_echo", {"message": "x"}))


def test_cancelling_reaches_the_server(start: Start, chat: ChatServer, http: HttpServer) -> None:
    agent = start()
    session = agent.new("/tmp", [by_http(http)])
    chat.answers(call(("tiny_wait", '{"seconds":600}')))
    ident = agent.start(session, "go")
    called = {"method": "tools/call"}
    assert wait_until(lambda: any(called.items() <= record.items() for record in http.records()))
    agent.notify("session/cancel", {"sessionId": session})
    assert agent.result(ident)["stopReason"] == "cancelled"
    assert wait_until(lambda: any("cancelled" in record for record in http.records()))
    assert use(agent, chat, session, "tiny_echo", {"message": "hi"}) == "echo: hi"


def test_closing_the_session_ends_its_servers_and_all_they_started(
    start: Start, chat: ChatServer, tmp_path: Path
) -> None:
    agent = start()
    session = agent.new(tmp_path, [by_stdio("s")])
    pid = int(str(use(agent, chat, session, "s_spawn", {})))
    assert alive(pid)
    agent.call("session/close", {"sessionId": session})
    assert not alive(pid)


def test_a_session_that_is_given_up_leaves_none_of_its_servers(
    start: Start, tmp_path: Path
) -> None:
    agent = start()
    listed, mute = tmp_path / "listed", tmp_path / "mute"
    os.mkfifo(mute)
    server = shlex.join(paging({None: ("t", None)}))
    quick = by_stdio("quick", "/bin/sh", "-c", f"echo $$ > {listed}; exec {server}")
    slow = by_stdio("slow", "/bin/sh", "-c", f"echo $$ > {mute}; exec sleep 600")
    new = {"cwd": "/tmp", "mcpServers": [quick, slow]}
    ident = agent.request("session/new", new)
    pids = [int(mute.read_text())]
    assert wait_until(lambda: listed.exists() and listed.read_text().endswith("\n"))
    pids.append(int(listed.read_text()))
    agent.notify("$/cancel_request", {"requestId": ident})
    with pytest.raises(Refused, match="-32800"):
        agent.result(ident)
    assert [alive(pid) for pid in pids] == [False, False]
    assert agent.call("session/list", {}) == {"sessions": []}


def test_pages_of_tools_are_all_read_and_a_repeated_cursor_ends_them(
    start: Start, chat: ChatServer
) -> None:
    agent = start()
    pages = {None: ("t1", "p2"), "p2": ("t2", "p3"), "p3": ("t3", "p2")}
    session = agent.new("/tmp", [by_stdio("p", *paging(pages))])
    chat.answers(text("ok"))
    agent.prompt(session, "go")
    names = [tool["function"]["name"] for tool in chat.requests[0]["tools"]]
    assert names == ["p_t1", "p_t2", "p_t3"]


@pytest.mark.anyio
async def test_listing_is_bounded_and_names_who_did_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bridge.errors import RequestFailed
    from bridge.io.family import Family
    from bridge.loop_agent.toolbox import Toolbox
    from protocol_schemas.agent_requests import McpServer

    monkeypatch.setattr(mcp_servers, "LISTING", 0.5)
    silent = McpServer(name="mute", command=sys.executable, args=["-c", "input(); input()"])
    async with anyio.create_task_group() as group:
        servers = mcp_servers.McpServers([silent], os.getcwd(), Family(), group)
        with pytest.raises(RequestFailed) as caught:
            await servers.add_tools(Toolbox())
        await servers.close()
    assert caught.value.data["details"] == "'mute' did not list its tools within 0.5 s"


SSE = """
import socket, uvicorn
from mcp.server import MCPServer
server = MCPServer("old", log_level="ERROR")
server.add_tool(lambda name: f"hello {name}", name="greet", structured_output=False)
listener = socket.create_server(("127.0.0.1", 0))
print(f"http://127.0.0.1:{listener.getsockname()[1]}/sse", flush=True)
uvicorn.Server(uvicorn.Config(server.sse_app(), log_level="critical")).run([listener])
"""

# A small server that pages through {pages}: of each page's cursor, a tool and the next cursor.
_SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    answer = {"jsonrpc": "2.0", "id": ident}
    if ident is None:
        continue
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "x", "version": "1"}}
    elif method == "tools/list":
        name, cursor = PAGES[(message.get("params") or {}).get("cursor")]
        tool = {"name": name, "inputSchema": {"type": "object"}}
        answer["result"] = {"tools": [tool], "nextCursor": cursor}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""


def paging(pages: dict[str | None, tuple[str, str | None]]) -> list[str]:
    """The command of a server whose list of tools has these pages, by cursor."""
    return [sys.executable, "-c", _SERVER.replace("PAGES", repr(pages))]
