"""The active relay changes what it is there to change, and nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.trace.reader import Event, read
from tests.agent.test_relay import AGENT_LINES, CLIENT_LINES, Client
from tests.peers.agent import AgentLog, scripted

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
OPTIONS = [
    {"optionId": "always", "kind": "allow_always", "name": "Always"},
    {"optionId": "once", "kind": "allow_once", "name": "Once"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]
SERVER = {
    "type": "http",
    "name": "tools",
    "url": "http://127.0.0.1:1/mcp",
    "headers": [{"name": "X-Tok", "value": "CANARY-3"}],
}

TEXT = {"type": "text"}


def call(ident: Any, method: str, params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def talk(folder: Path, prompt: str, *options: str, servers: list[Any] | None = None) -> "Talk":
    """A whole conversation of a client that answers nothing, with the scripted agent."""
    log = AgentLog(folder / "agent.ndjson")
    command = [BRIDGE, "acp", *options, "--", *scripted()]
    environment = os.environ | {"SCRIPTED_LOG": str(log.path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        seen: list[bytes] = []
        steps = [
            call(0, "initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
            call(1, "session/new", {"cwd": "/", "mcpServers": servers or []}),
            call(2, "session/prompt", {"sessionId": "s", "prompt": [TEXT | {"text": prompt}]}),
        ]
        for number, step in enumerate(steps):
            process.stdin.write(step)
            process.stdin.flush()
            while not seen or json.loads(seen[-1]).get("id") != number:
                seen.append(process.stdout.readline())
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(30) == 0
    assert rest == b""
    return Talk([json.loads(line) for line in seen], log)


class Talk:
    def __init__(self, seen: list[Any], log: AgentLog) -> None:
        self.seen, self.log = seen, log

    def text(self) -> str:
        updates = [m["params"]["update"] for m in self.seen if m.get("method") == "session/update"]
        return "".join(update["content"]["text"] for update in updates)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
@pytest.mark.parametrize(("policy", "option"), [("allow", "once"), ("deny", "no")])
def test_a_policy_answers_permission_requests_in_place_of_the_client(
    tmp_path: Path, loop: str, policy: str, option: str
) -> None:
    prompt = f"say before\npermission {json.dumps(OPTIONS)}\nsay after"
    talked = talk(tmp_path, prompt, "--policy", policy, "--loop", loop)
    assert not [m for m in talked.seen if m.get("method") == "session/request_permission"]
    assert option in talked.text()
    assert talked.text().startswith("before")
    assert talked.text().endswith("after")


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_mcp_servers_are_put_behind_the_proxy(tmp_path: Path, loop: str) -> None:
    file = tmp_path / "trace.ndjson"
    options = ("--mcp-proxy", "auto", "--loop", loop, "--record", str(file))
    talked = talk(tmp_path, "say x", *options, servers=[SERVER])
    [new] = talked.log.messages("session/new")
    [server] = new["params"]["mcpServers"]
    assert server["name"] == "tools"
    assert server["url"].startswith("http://127.0.0.1:")
    assert server["url"] != SERVER["url"]
    assert "CANARY" not in json.dumps(new)
    assert new["params"]["cwd"] == "/"
    events = [item for item in read(str(file)) if isinstance(item, Event)]
    asked = [e.content or b"" for e in events if (e.ch, e.dir) == ("client", "in")]
    told = [e.content or b"" for e in events if (e.ch, e.dir) == ("acp", "out")]
    assert len(asked) == len(told) == 3
    assert [asked[0], asked[2]] == [told[0], told[2]]
    assert b"CANARY" not in file.read_bytes()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_all_other_lines_pass_byte_for_byte(tmp_path: Path, loop: str) -> None:
    (tmp_path / "lines").write_bytes(AGENT_LINES)
    options = ("--policy", "allow", "--mcp-proxy", "auto", "--loop", loop)
    client = Client(tmp_path, "send lines 7", "eof", options=options)
    try:
        out, _ = client.exchange(CLIENT_LINES)
    finally:
        client.dispose()
    assert out == AGENT_LINES
    assert client.heard() == CLIENT_LINES


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_the_model_s_address_is_replaced_where_that_is_asked_for(mode: str) -> None:
    given = "http://127.0.0.1:9/v1"
    command = [BRIDGE, "acp", "--model-proxy", mode, "--", "sh", "-c", "echo $OPENAI_BASE_URL"]
    environment = os.environ | {"OPENAI_BASE_URL": given}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert ended.stdout.startswith("http://127.0.0.1:")
    assert (ended.stdout.strip() == given) is (mode == "off")


CURIOUS = """
import json, sys
options = [{"optionId": "yes", "kind": "allow_once", "name": "Yes"}]
params = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options}
for number, line in enumerate(sys.stdin):
    message = json.loads(line)
    if "method" in message:
        asked = {"method": "session/request_permission", "id": "é", "params": params}
    else:
        asked = {"method": "_told", "params": message["result"]}
    print(json.dumps({"jsonrpc": "2.0", **asked}), flush=True)
"""


def test_in_a_cancelled_turn_the_policy_allows_nothing_any_more() -> None:
    command = [BRIDGE, "acp", "--policy", "allow", "--", sys.executable, "-c", CURIOUS]
    told: list[str] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for method in ("session/prompt", "session/cancel", "session/prompt"):
            process.stdin.write(call(1, method, {"sessionId": "s"}))
            process.stdin.flush()
            told.append(json.loads(process.stdout.readline())["params"]["outcome"]["outcome"])
    assert told == ["selected", "cancelled", "selected"]


def test_the_withdrawal_of_a_request_that_was_answered_here_is_not_the_client_s(
    tmp_path: Path,
) -> None:
    ask = call("é", "session/request_permission", {"options": OPTIONS})
    withdrawn = call(None, "$/cancel_request", {"requestId": "é"}).replace(b' "id": null,', b"")
    again = call("é", "fs/read_text_file", {"path": "/x"})
    (tmp_path / "lines").write_bytes(ask + withdrawn.replace(b"\\u00e9", "é".encode()) + again)
    (tmp_path / "more").write_bytes(withdrawn)
    options = ("--policy", "allow")
    client = Client(tmp_path, "send lines", "send more", "eof", options=options)
    try:
        out, _ = client.exchange(b"")
    finally:
        client.dispose()
    assert out == again + withdrawn
