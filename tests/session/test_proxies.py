"""The proxies before an agent's MCP servers, on the real daemon with real servers behind it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.servers import Server, mcp_server

CANARY = "Bearer CANARY-of-the-mcp-server"
LOOPS = ["asyncio", "uvloop", "trio"]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real MCP server, for all tests of this module."""
    with mcp_server(tmp_path_factory.mktemp("mcp") / "calls.ndjson") as server:
        yield server


def given(server: Server, *names: str) -> dict[str, Any]:
    """The server under these names, each with a secret header."""
    headers = {name: {"Authorization": CANARY} for name in names}
    return {"mcp_urls": dict.fromkeys(names, server.url), "mcp_headers": headers}


def told(host: Host) -> dict[str, dict[str, Any]]:
    """The servers that the agent was told of, by name."""
    opened = host.log.messages("session/new")[-1]
    return {server["name"]: server for server in opened["params"]["mcpServers"]}


def call_with(server: Server, message: str) -> dict[str, Any]:
    """The record of the tool call that had this message."""
    calls = [r for r in server.log() if r.get("method") == "tools/call"]
    found = [r for r in calls if r["params"]["arguments"].get("message") == message]
    assert len(found) == 1, found
    return found[0]


def said(host: Host, answer: dict[str, Any]) -> Any:
    """What the agent said, as JSON."""
    assert answer["ok"] is True, f"{answer} {host.stderr()}"
    return json.loads(answer["result"]["reply"])


def text_of(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


@pytest.mark.parametrize("loop", LOOPS)
def test_an_agent_sees_its_servers_under_their_names_and_calls_through_the_proxy(
    tmp_path: Path, tools: Server, loop: str
) -> None:
    with Host(tmp_path, "--loop", loop) as host:
        host.hello()
        message = f"hi by {loop}"
        prompt = f"call tiny echo {json.dumps({'message': message})}"
        names = given(tools, "tiny", "o t")
        answer = host.prompt(scripted(), prompt, **names)
        assert text_of(said(host, answer)) == f"echo: {message}"
        servers = told(host)
        assert list(servers) == ["tiny", "o t"]
        for server in servers.values():
            assert server["type"] == "http"
            assert server["headers"] == []
            assert urlsplit(server["url"]).hostname == "127.0.0.1"
            assert server["url"] != tools.url
        event = host.events("mcp", tool="echo")[0]
        assert (event["server"], event["attempt"], event["outcome"]) == ("tiny", 1, "answer")
        assert (event["session"], event["turn"]) == ("", 1)
        place = host.frames.index(event)
        assert host.frames.index(answer) > place
        host.shutdown()
        assert call_with(tools, message)["headers"]["authorization"] == CANARY
        for text in (json.dumps(host.frames), host.stderr(), host.log.path.read_text()):
            assert "CANARY" not in text


def test_an_agent_that_takes_no_http_gets_a_stdio_shim(tmp_path: Path, tools: Server) -> None:
    with Host(tmp_path) as host:
        prompt = 'call tiny echo {"message":"through the shim"}'
        answer = host.prompt(scripted("without=http"), prompt, **given(tools, "tiny"))
        assert text_of(said(host, answer)) == "echo: through the shim"
        shim = told(host)["tiny"]
        assert "url" not in shim
        assert "CANARY" not in json.dumps(shim)
        host.shutdown()
    assert call_with(tools, "through the shim")["headers"]["authorization"] == CANARY


@pytest.mark.parametrize("how", ["option", "variable", "config"])
def test_switched_off_the_agent_gets_what_was_given(
    tmp_path: Path, tools: Server, how: str
) -> None:
    arguments = ["--mcp-proxy", "off"] if how == "option" else []
    environment = {"BRIDGE_MCP_PROXY": "off"} if how == "variable" else {}
    more = {"mcp_proxy": "off"} if how == "config" else {}
    with Host(tmp_path, *arguments, environment=environment) as host:
        host.hello()
        host.prompt(scripted(), "say hi", **given(tools, "tiny"), **more)
        header = {"name": "Authorization", "value": CANARY}
        assert told(host) == {
            "tiny": {"type": "http", "name": "tiny", "url": tools.url, "headers": [header]}
        }
        host.shutdown()


def test_one_server_alone_can_be_left_out(tmp_path: Path, tools: Server) -> None:
    with Host(tmp_path) as host:
        mcp = {"b": {"proxy": False}, "a": {"timeout": 5}}
        host.prompt(scripted(), "say hi", **given(tools, "a", "b"), mcp=mcp)
        servers = told(host)
        assert servers["b"]["url"] == tools.url
        assert servers["b"]["headers"][0]["value"] == CANARY
        assert servers["a"]["url"] != tools.url
        assert servers["a"]["headers"] == []
        host.shutdown()


def test_a_command_given_in_acps_own_list_is_a_server_too(tmp_path: Path) -> None:
    program = Path(__file__).parents[1] / "mcp" / "line_server.py"
    env = [{"name": "CALLS", "value": str(tmp_path / "calls")}]
    lines = {"name": "lines", "command": scripted()[0], "args": [str(program)], "env": env}
    with Host(tmp_path) as host:
        answer = host.prompt(scripted(), 'call lines echo {"a":1}', mcp_servers=[lines])
        assert text_of(said(host, answer)) == '{"a": 1}'
        assert told(host)["lines"]["type"] == "http"
        host.shutdown()


def test_a_server_that_is_down_is_an_error_of_the_tool_not_of_the_session(tmp_path: Path) -> None:
    with Host(tmp_path) as host:
        urls = {"gone": "http://127.0.0.1:1/mcp"}
        mcp = {"gone": {"attempts": 1, "connect_timeout": 1}}
        answer = host.prompt(scripted(), "call gone echo {}", mcp_urls=urls, mcp=mcp)
        assert "gone" in json.dumps(said(host, answer))
        assert host.reply(None, "say still here") == "still here"
        host.shutdown()


@pytest.mark.parametrize("loop", LOOPS)
def test_the_host_calls_tools_with_and_without_a_session(
    tmp_path: Path, tools: Server, loop: str
) -> None:
    with Host(tmp_path, "--loop", loop) as host:
        host.hello()
        config = given(tools, "tiny")
        listed = host.call("list_tools", config=config)["result"]["tools"]
        names = {tool["name"] for tool in listed}
        assert {"tiny_echo", "tiny_fail"} <= names
        message = f"the host by {loop}"
        called = host.call(
            "call_tool", name="tiny_echo", arguments={"message": message}, config=config
        )
        assert called["result"]["content"] == [{"type": "text", "text": f"echo: {message}"}]
        failed = host.call("call_tool", name="tiny_fail", arguments={"why": "worn"}, config=config)
        assert failed["ok"] is True
        assert failed["result"]["isError"] is True
        assert "fail" in text_of(failed["result"])
        unknown = host.call("call_tool", name="tiny_nothing", config=config)
        assert (unknown["code"], unknown["origin"]) == ("mcp_failed", "mcp")
        assert unknown["agent_code"] == -32602
        assert "tiny_nothing" in unknown["error"]
        opened = host.call("open", session="s", config=config | {"command": scripted()})
        assert opened["ok"] is True
        called = host.call("call_tool", session="s", name="tiny_note_of_the_day")
        assert text_of(called["result"]) == "buy bread"
        assert host.events("mcp", session="s", tool="note_of_the_day", turn=None)
        host.shutdown()
    assert call_with(tools, message)["headers"]["authorization"] == CANARY


def test_what_is_wrong_with_the_servers_is_named(tmp_path: Path, tools: Server) -> None:
    with Host(tmp_path) as host:
        missing = host.call("list_tools")
        assert missing["code"] == "invalid_request"
        assert "config.mcp_urls" in missing["error"]
        for wrong, words in (
            ({"mcp": {"tinny": {}}}, "tinny"),
            ({"mcp": {"tiny": {"attempts": 0}}}, "attempts"),
            ({"mcp": {"tiny": {"delivery": "twice"}}}, "delivery"),
            ({"mcp_urls": {"tiny": "ftp://127.0.0.1/"}}, "tiny"),
            ({"mcp_headers": {"tiny": {"X": "CANARY\n"}}}, "X"),
        ):
            refused = host.prompt(scripted(), "say hi", **(given(tools, "tiny") | wrong))
            assert (refused["ok"], refused["code"]) == (False, "invalid_request"), wrong
            assert words in refused["error"]
            assert "CANARY" not in json.dumps(refused)
        assert host.reply(scripted(), "say hi", **given(tools, "tiny")) == "hi"
        host.shutdown()
        assert "CANARY" not in host.stderr()


def test_a_closed_sessions_servers_are_gone_and_its_name_is_free(
    tmp_path: Path, tools: Server
) -> None:
    with Host(tmp_path) as host:
        config = {"command": scripted(), **given(tools, "tiny")}
        assert host.call("open", session="s", config=config)["ok"] is True
        old = told(host)["tiny"]["url"]
        assert host.call("close", session="s")["ok"] is True
        assert host.call("open", session="s", config=config)["ok"] is True
        new = told(host)["tiny"]["url"]
        assert new != old
        answer = host.answer(host.start(None, f"post {old}\n", f"post {old}", session="s"))
        assert said(host, answer)["status"] == 404
        host.shutdown()


def test_progress_of_a_tool_is_a_sign_of_life(tmp_path: Path, tools: Server) -> None:
    with Host(tmp_path) as host:
        mcp = {**given(tools, "tiny"), "idle_timeout": 1.5}
        progressing = 'call tiny count {"steps":12,"pause":0.25}'
        through = host.start(scripted(), progressing, session="a", **mcp)
        silent = host.start(
            scripted(), 'call tiny wait {"seconds":3}', session="b", close_grace=0.2, **mcp
        )
        assert text_of(said(host, host.answer(through))) == "counted to 12"
        gave_up = host.answer(silent)
        assert (gave_up["ok"], gave_up["code"]) == (False, "timeout")
        assert "idle_timeout" in gave_up["error"]
        host.shutdown()
