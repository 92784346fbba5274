"""A component of a proxy chain: envelopes on the successor's side, none on the client's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.agent.component import Component
from bridge.trace.reader import Event, read
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.install import PEERS, install

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))


def said(component: Component, **message: Any) -> Any:
    """What one message leads to."""
    [line] = component.take(json.dumps({"jsonrpc": "2.0", **message}).encode())
    return json.loads(line)


@pytest.fixture(params=["proxy", "_proxy"])
def chain(request: pytest.FixtureRequest) -> tuple[Component, str]:
    """A component that was initialized, and the spelling its conductor uses."""
    component, prefix = Component(), request.param
    params = {"protocolVersion": 1, "clientInfo": {"name": "c"}}
    asked = said(component, id=1, method=f"{prefix}/initialize", params=params)
    assert asked["method"] == f"{prefix}/successor"
    assert asked["params"] == {"method": "initialize", "params": params}
    assert asked["id"] == "bridge:1"
    answer = said(component, id="bridge:1", result={"protocolVersion": 1})
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}}
    return component, prefix


def test_what_the_client_asks_goes_to_the_successor_in_an_envelope(
    chain: tuple[Component, str],
) -> None:
    component, prefix = chain
    asked = said(component, id="x", method="session/prompt", params={"a": 1.0, "_meta": {"t": 1}})
    assert asked["method"] == f"{prefix}/successor"
    assert asked["params"] == {"method": "session/prompt", "params": {"a": 1.0, "_meta": {"t": 1}}}
    error = {"code": -32002, "message": "no", "data": {"x": [None]}, "more": 1}
    assert said(component, id=asked["id"], error=error) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": error,
    }


def test_what_the_successor_asks_goes_to_the_client_without_one(
    chain: tuple[Component, str],
) -> None:
    component, prefix = chain
    envelope = {"method": "fs/read_text_file", "params": {"path": "/x"}, "_meta": {"hop": 1}}
    asked = said(component, id=9, method=f"{prefix}/successor", params=envelope)
    assert (asked["method"], asked["params"]) == ("fs/read_text_file", {"path": "/x"})
    answer = said(component, id=asked["id"], result={"content": "é"})
    assert answer == {"jsonrpc": "2.0", "id": 9, "result": {"content": "é"}}


def test_notifications_go_both_ways(chain: tuple[Component, str]) -> None:
    component, prefix = chain
    update = {"method": "session/update", "params": {"sessionId": "s"}}
    told = said(component, method=f"{prefix}/successor", params=update)
    assert told == {"jsonrpc": "2.0", **update}
    told = said(component, method="session/cancel", params={"sessionId": "s"})
    assert told["params"] == {"method": "session/cancel", "params": {"sessionId": "s"}}


def test_a_cancel_is_translated_to_the_other_hop_s_id(chain: tuple[Component, str]) -> None:
    component, _ = chain
    asked = said(component, id=7, method="session/prompt", params={})
    told = said(component, method="$/cancel_request", params={"requestId": 7})
    assert told == {
        "jsonrpc": "2.0",
        "method": "$/cancel_request",
        "params": {"requestId": asked["id"]},
    }
    cancelled = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 8}}
    assert component.take(json.dumps(cancelled).encode()) == []


def test_a_cancel_in_an_envelope_is_translated_too(chain: tuple[Component, str]) -> None:
    component, prefix = chain
    asked = said(component, id=3, method=f"{prefix}/successor", params={"method": "fs/x"})
    envelope = {"method": "$/cancel_request", "params": {"requestId": 3}}
    cancel = said(component, method=f"{prefix}/successor", params=envelope)
    assert cancel["params"] == {"requestId": asked["id"]}


def test_ids_are_the_same_however_they_are_spelt(chain: tuple[Component, str]) -> None:
    component, _ = chain
    [asked] = component.take(b'{"jsonrpc":"2.0","id":"\\u00e9","method":"m"}')
    ident = json.loads(asked)["id"]
    cancel = said(component, method="$/cancel_request", params={"requestId": "é"})
    assert cancel["params"] == {"requestId": ident}
    escaped = ident.replace("b", "\\u0062", 1).encode()
    [answer] = component.take(b'{"jsonrpc":"2.0","id":"' + escaped + b'","result":1.0}')
    assert answer == b'{"jsonrpc":"2.0","id":"\\u00e9","result":1.0}\n'


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_the_last_line_needs_no_end(loop: str) -> None:
    command = [BRIDGE, "acp", "--component", "--loop", loop]
    line = b'{"jsonrpc":"2.0","id":1,"method":"proxy/initialize","params":{"protocolVersion":1}}'
    ended = subprocess.run(command, input=line, capture_output=True, timeout=60)
    assert b'"method":"initialize"' in ended.stdout


def test_ids_of_both_sides_never_meet(chain: tuple[Component, str]) -> None:
    component, prefix = chain
    envelope = {"method": "m", "params": {}}
    ids = [said(component, id=5, method="session/new", params={})["id"]]
    ids.append(said(component, id="5", method=f"{prefix}/successor", params=envelope)["id"])
    assert len(set(ids)) == 2
    assert all(str(ident).startswith("bridge:") for ident in ids)
    assert said(component, id=ids[1], result=1)["id"] == "5"
    assert said(component, id=ids[0], result=2)["id"] == 5


def test_a_policy_answers_the_successor_s_permission_requests() -> None:
    component = Component("deny")
    options = [{"optionId": "n", "kind": "reject_once"}, {"optionId": "y", "kind": "allow_once"}]
    params = {"sessionId": "s", "toolCall": {}, "options": options}
    envelope = {"method": "session/request_permission", "params": params}
    answer = said(component, id=3, method="proxy/successor", params=envelope)
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "n"}


def test_params_that_are_not_there_stay_so(chain: tuple[Component, str]) -> None:
    component, _ = chain
    assert said(component, id="x", method="logout")["params"] == {"method": "logout"}
    assert said(component, method="_acme/n")["params"] == {"method": "_acme/n"}


def test_in_a_cancelled_turn_nothing_is_allowed_any_more() -> None:
    component = Component("allow")
    options = [{"optionId": "yes", "kind": "allow_once"}]

    def asked(session: str) -> Any:
        params = {"sessionId": session, "toolCall": {}, "options": options}
        envelope = {"method": "session/request_permission", "params": params}
        return said(component, id=1, method="proxy/successor", params=envelope)["result"]

    allowed = {"outcome": {"outcome": "selected", "optionId": "yes"}}
    assert asked("s") == allowed
    said(component, method="session/cancel", params={"sessionId": "s"})
    assert asked("s") == {"outcome": {"outcome": "cancelled"}}
    assert asked("t") == allowed
    said(component, id=2, method="session/prompt", params={"sessionId": "s", "prompt": []})
    assert asked("s") == allowed


def test_a_policy_answers_version_2_s_too() -> None:
    noted: list[Any] = []
    component = Component("allow", note=lambda kind, data: noted.append(data))
    options = [{"optionId": "n", "kind": "reject_once"}, {"optionId": "y", "kind": "allow_once"}]
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "t", "title": "run"}}
    params = {"sessionId": "s", "title": "May I?", "subject": subject, "options": options}
    envelope = {"method": "session/request_permission", "params": params}
    answer = said(component, id=3, method="proxy/successor", params=envelope)
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "y"}
    [decision] = noted
    assert (decision["tool_call"], decision["title"], decision["by"]) == ("t", "May I?", "policy")


@pytest.mark.parametrize(
    "line", [b"noise", b"42", b'{"jsonrpc":"2.0","id":99,"result":{}}', b'{"jsonrpc":"2.0"}']
)
def test_what_means_nothing_leads_to_nothing(line: bytes) -> None:
    assert Component().take(line) == []


def test_a_broken_envelope_is_refused() -> None:
    answer = said(Component(), id=3, method="proxy/successor", params={"params": {}})
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_the_command_is_a_component_on_stdio(loop: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "proxy/initialize", "params": {}}
    update = {"method": "session/update", "params": {"a": "x" * 100_000}}
    told = {"jsonrpc": "2.0", "method": "proxy/successor", "params": update}
    data = json.dumps(asked) + "\n" + json.dumps(told) + "\n"
    command = [BRIDGE, "acp", "--component", "--loop", loop]
    ended = subprocess.run(command, input=data, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    first, second = map(json.loads, ended.stdout.splitlines())
    assert first["params"] == {"method": "initialize", "params": {}}
    assert second == {"jsonrpc": "2.0", **update}


class Conductor:
    """A conductor in one: the client's side and the successor's, line by line."""

    def __init__(self, *options: str, environment: dict[str, str] | None = None) -> None:
        self.said: list[bytes] = []
        self.heard: list[bytes] = []
        self._process = subprocess.Popen(
            [BRIDGE, "acp", "--component", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | (environment or {}),
        )

    def ask(self, **message: Any) -> Any:
        """Says a message; the next one that comes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.said.append(json.dumps({"jsonrpc": "2.0", **message}).encode())
        self._process.stdin.write(self.said[-1] + b"\n")
        self._process.stdin.flush()
        self.heard.append(self._process.stdout.readline().rstrip(b"\n"))
        return json.loads(self.heard[-1])

    def leave(self) -> None:
        rest, _ = self._process.communicate(timeout=30)
        assert (rest, self._process.returncode) == (b"", 0)


SERVER = {
    "type": "http",
    "name": "tools",
    "url": "http://127.0.0.1:1/mcp",
    "headers": [{"name": "X-Tok", "value": "CANARY-3"}],
}
OPTIONS = [{"optionId": "n", "kind": "reject_once"}, {"optionId": "y", "kind": "allow_once"}]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
@pytest.mark.parametrize("prefix", ["proxy", "_proxy"])
def test_a_component_records_and_puts_what_it_is_told_to_behind_its_proxies(
    tmp_path: Path, prefix: str, loop: str
) -> None:
    file = tmp_path / "run.trace.ndjson"
    options = ("--loop", loop, "--record", str(file), "--policy", "allow")
    conductor = Conductor(*options, "--mcp-proxy", "auto", "--model-proxy", "auto")
    successor = f"{prefix}/successor"
    asked = conductor.ask(id=1, method=f"{prefix}/initialize", params={"protocolVersion": 1})
    capabilities = {"mcpCapabilities": {"http": True}}
    result = {"protocolVersion": 1, "agentCapabilities": capabilities}
    assert conductor.ask(id=asked["id"], result=result)["result"] == result
    params = {"cwd": "/", "mcpServers": [SERVER], "_meta": {"x": 1.0}}
    asked = conductor.ask(id=2, method="session/new", params=params)
    assert (asked["method"], asked["params"]["method"]) == (successor, "session/new")
    inner = asked["params"]["params"]
    assert inner["mcpServers"][0]["name"] == "tools"
    assert inner["mcpServers"][0]["url"].startswith("http://127.0.0.1:")
    assert inner["mcpServers"][0]["url"] != SERVER["url"]
    assert "CANARY" not in json.dumps(asked)
    assert inner | {"mcpServers": []} == params | {"mcpServers": []}
    assert conductor.ask(id=asked["id"], result={"sessionId": "s"})["id"] == 2
    params = {"providerId": "p", "baseUrl": "http://127.0.0.1:1/v1", "headers": {"K": "CANARY-4"}}
    asked = conductor.ask(id=3, method="providers/set", params=params)
    placed = asked["params"]["params"]
    assert placed["baseUrl"].startswith("http://127.0.0.1:")
    assert placed | {"baseUrl": ""} == params | {"baseUrl": ""}
    conductor.ask(id=asked["id"], result={})
    request = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": OPTIONS}
    envelope = {"method": "session/request_permission", "params": request}
    answer = conductor.ask(id=9, method=successor, params=envelope)
    assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "y"}
    conductor.leave()
    events = [item for item in read(str(file)) if isinstance(item, Event)]
    for direction, lines in (("in", conductor.said), ("out", conductor.heard)):
        found = [e.content for e in events if (e.ch, e.dir) == ("conductor", direction)]
        masked = [
            line.replace(b"CANARY-3", b"[secret X-Tok]").replace(b"CANARY-4", b"[secret K]")
            for line in lines
        ]
        assert found == masked
    [decision] = [event.data for event in events if event.kind == "permission"]
    assert (decision["request"], decision["option"], decision["by"]) == (9, "y", "policy")
    assert b"CANARY" not in file.read_bytes()


def test_the_oldest_spelling_begins_with_initialize() -> None:
    component = Component()
    params = {"protocolVersion": 1, "_meta": {"proxy": True}}
    asked = said(component, id=1, method="initialize", params=params)
    assert asked["method"] == "_proxy/successor/request"
    assert asked["params"] == {"method": "initialize", "params": params}
    result = {"protocolVersion": 1, "_meta": {"x": 1.0}}
    answer = said(component, id=asked["id"], result=result)
    assert answer["result"] == {"protocolVersion": 1, "_meta": {"x": 1.0, "proxy": True}}
    told = said(component, method="session/cancel", params={"sessionId": "s"})
    assert told["method"] == "_proxy/successor/notification"
    update = {"method": "session/update", "params": {"a": 1}}
    told = said(component, method="_proxy/successor/notification", params=update)
    assert told == {"jsonrpc": "2.0", **update}
    envelope = {"method": "fs/read_text_file", "params": {"path": "/x"}}
    asked = said(component, id="a", method="_proxy/successor/request", params=envelope)
    assert (asked["method"], asked["params"]) == ("fs/read_text_file", {"path": "/x"})
    bare = said(Component(), id=1, method="initialize", params={"protocolVersion": 1})
    assert bare["method"] == "proxy/successor"


def test_an_answer_without_meta_says_that_we_are_a_proxy() -> None:
    component = Component()
    params = {"protocolVersion": 1, "_meta": {"proxy": True}}
    asked = said(component, id=1, method="initialize", params=params)
    answer = said(component, id=asked["id"], result={"protocolVersion": 1})
    assert answer["result"] == {"protocolVersion": 1, "_meta": {"proxy": True}}


@pytest.mark.peers
def test_a_conductor_of_another_maker_has_us_in_its_chain(tmp_path: Path) -> None:
    install("node-clients")
    file = tmp_path / "run.trace.ndjson"
    component = [BRIDGE, "acp", "--component", "--record", str(file), "--policy", "allow"]
    folder = PEERS / "node-clients/node_modules/@thinkwell/conductor"
    script = Path(__file__).parents[1] / "peers/clients/conductor.mjs"
    command = ["node", str(script), str(folder), json.dumps(component), json.dumps(scripted())]
    prompt = f"say one\ntool t1 completed\npermission {json.dumps(OPTIONS)}\nsay é"
    with Host(tmp_path) as host:
        answer = host.prompt(command, prompt)
        assert answer["ok"] is True, answer
        host.shutdown()
    assert answer["result"]["reply"].startswith("one")
    assert "y" in answer["result"]["reply"]
    events = [item for item in read(str(file)) if isinstance(item, Event)]
    sides = {event.dir for event in events if event.ch == "conductor"}
    assert sides == {"in", "out"}
    [decision] = [event.data for event in events if event.kind == "permission"]
    assert (decision["option"], decision["by"]) == ("y", "policy")


def test_a_component_starts_no_agent() -> None:
    command = [BRIDGE, "acp", "--component", "--", "cat"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "starts no agent" in ended.stderr
