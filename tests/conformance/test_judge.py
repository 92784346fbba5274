"""The judge of single lines: what it finds, under which rule, and what it lets pass."""

import json
from typing import Any

import pytest

from conformance.judge import Fault, Judge, key, shown

CHUNK = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}


def judged(*lines: Any, asked: tuple[Any, str] | None = None, side: Any = "agent") -> list[Fault]:
    """The faults in lines of one side; `asked`: id and method of a request it has got before."""
    faults: list[Fault] = []
    judge = Judge(side, faults)
    if asked is not None:
        judge.heard({"jsonrpc": "2.0", "id": asked[0], "method": asked[1], "params": {}})
    for line in lines:
        judge.line(line if isinstance(line, bytes) else json.dumps(line).encode())
    return faults


def rules(*lines: Any, **more: Any) -> list[str]:
    return [fault.rule for fault in judged(*lines, **more)]


def update(body: Any) -> dict[str, Any]:
    params = {"sessionId": "s", "update": body}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def response(ident: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def test_what_is_right_is_no_fault() -> None:
    assert judged(update(CHUNK)) == []
    assert judged(response(1, {"stopReason": "end_turn"}), asked=(1, "session/prompt")) == []
    assert judged(update({**CHUNK, "_meta": {"x": 1}})) == []


@pytest.mark.parametrize(
    "line, rule",
    [
        (b"hello", "stdio.messages"),
        (b"[]", "stdio.messages"),
        (b"42", "stdio.messages"),
        (b"{}", "stdio.messages"),
        (b'{"jsonrpc":"2.0","method":"_x","params":{"y":NaN}}', "stdio.messages"),
        (b'{"jsonrpc":"2.0","method":7}', "stdio.messages"),
        (b'{"jsonrpc":"2.0","method":"_\xff"}', "stdio.utf8"),
        (b'{"method":"_x"}', "rpc.version"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"_x"}', "rpc.ids"),
        (b'{"jsonrpc":"2.0","id":null,"method":"_x"}', "rpc.ids"),
        (b'{"jsonrpc":"2.0","id":true,"method":"_x"}', "rpc.ids"),
        (b'{"jsonrpc":"2.0","method":"session/mood","params":{}}', "rpc.methods"),
        (b'{"jsonrpc":"2.0","id":null,"error":"no"}', "rpc.error"),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":" "}}', "rpc.error-message"),
        (b'{"jsonrpc":"2.0","id":3,"result":{}}', "rpc.responses"),
    ],
)
def test_each_rule_has_its_fault(line: bytes, rule: str) -> None:
    assert rules(line) == [rule]


def test_a_response_is_for_one_request_in_its_own_type() -> None:
    asked = (1, "session/close")
    assert rules(response("1", {}), asked=asked) == ["rpc.responses"]
    assert rules(response(1, {}), response(1, {}), asked=asked) == ["rpc.responses"]
    assert rules(response(1.0, {}), asked=asked) == []


def test_an_open_id_is_not_used_again_until_it_is_answered() -> None:
    ask = {"jsonrpc": "2.0", "id": "a", "method": "_x", "params": {}}
    assert rules(ask, ask) == ["rpc.ids"]
    judge = Judge("agent", faults := [])
    for _ in range(2):
        judge.line(json.dumps(ask).encode())
        judge.heard({"jsonrpc": "2.0", "id": "a", "result": {}})
    assert faults == []


def test_schema_faults_name_the_place_and_tolerated_ones_are_a_rule_of_their_own() -> None:
    [fault] = judged(update({**CHUNK, "content": {"type": "text"}}))
    assert fault.rule == "schema.messages"
    assert "update.content" in fault.words
    assert "'text' is a required property" in fault.words
    call = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "t"}
    assert rules(update({**call, "kind": "unheard-of"})) == ["schema.read-past"]
    assert rules(update({**call, "colour": "green"})) == ["schema.root"]


def test_what_only_the_schema_with_the_proposals_knows_is_no_fault() -> None:
    used = {"totalTokens": 3, "inputTokens": 2, "outputTokens": 1}
    result = {"stopReason": "end_turn", "usage": used}
    assert judged(response(1, result), asked=(1, "session/prompt")) == []
    assert judged(response(1, {"sessionId": "s2"}), asked=(1, "session/fork")) == []


def test_messages_are_judged_by_the_version_that_was_agreed_on() -> None:
    faults: list[Fault] = []
    judge = Judge("agent", faults)
    judge.heard({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    about = {"name": "a", "version": "1"}
    hello = {"protocolVersion": 2, "info": about, "capabilities": {}}
    judge.line(json.dumps(response(1, hello)).encode())
    assert (judge.version, faults) == (2, [])
    judge.line(json.dumps(update(CHUNK)).encode())
    assert [fault.rule for fault in faults] == ["schema.messages"]
    assert "messageId" in faults[0].words


def test_ids_that_are_the_same_have_the_same_key() -> None:
    assert key(1) == key(1.0)
    assert len({key(1), key("1"), key(None), key(True), key([1]), key(1.5)}) == 6


def test_what_is_shown_can_be_read() -> None:
    assert shown("é\u2028\n".encode()) == "é\\u2028\\n"
    assert shown(b"\xff") == "\\xff"
    assert shown(b"x" * 1000).endswith(" ... (1000 bytes)")
