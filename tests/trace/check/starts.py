"""Conversations from which the tests of `trace check` start."""

import json
from collections.abc import Iterable
from typing import Any

from tests.trace.traces import Script

CLOSED = {"reason": "closed"}
NEW = {"cwd": "/", "mcpServers": []}
OPTIONS = [
    {"optionId": "a", "name": "Allow", "kind": "allow_once"},
    {"optionId": "r", "name": "Reject", "kind": "reject_once"},
]
ASK = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": OPTIONS}
SELECTED = {"outcome": {"outcome": "selected", "optionId": "a"}}
CANCEL = {"sessionId": "s"}
MODES = {"currentModeId": "m", "availableModes": [{"id": "m", "name": "M"}]}
TEXT = {"type": "text", "text": "x"}


def option(ident: str) -> dict[str, Any]:
    choices = [{"value": "v", "name": "V"}]
    return {"id": ident, "name": ident, "type": "select", "currentValue": "v", "options": choices}


def closed(script: Script) -> Script:
    """The recording was closed."""
    return script.add("trace", kind="end", data=CLOSED)


def session(version: int = 1, **agent: Any) -> Script:
    """A handshake that offers `agent` capabilities, and a session."""
    script = Script()
    if version == 2:
        info = {"name": "x", "version": "1"}
        script.call(0, "initialize", {"protocolVersion": 2, "info": info, "capabilities": {}})
        result = {"protocolVersion": 2, "info": info, "capabilities": {"session": {}} | agent}
        script.answer(0, result).call(1, "session/new", NEW)
        return script.answer(1, {"sessionId": "s"})
    return script.opened(agentCapabilities=agent)


def client(**capabilities: Any) -> Script:
    """A session with a client that has these capabilities."""
    script = Script().call(
        0, "initialize", {"protocolVersion": 1, "clientCapabilities": capabilities}
    )
    script.answer(0, {"protocolVersion": 1, "agentCapabilities": {}}).call(1, "session/new", NEW)
    return script.answer(1, {"sessionId": "s"})


def turn(script: Script | None = None, ident: int = 2) -> Script:
    """A whole turn."""
    return (script or session()).prompt(ident).say("x").stopped(ident)


def raw(line: str, **members: Any) -> Script:
    """A clean start, then a line of the agent's."""
    return session().from_agent(line, **members)


def message(**members: Any) -> Script:
    return session().from_agent({"jsonrpc": "2.0", **members})


def with_modes() -> Script:
    script = Script().call(0, "initialize", {"protocolVersion": 1})
    script.answer(0, {"protocolVersion": 1}).call(1, "session/new", NEW)
    options = [option("a"), option("b")]
    return script.answer(1, {"sessionId": "s", "modes": MODES, "configOptions": options})


def exchange(
    body: Any,
    *answer: str,
    path: str = "/v1/chat/completions",
    headers: Iterable[list[str]] = (),
    **end: Any,
) -> Script:
    """A model exchange, streamed."""
    script = Script()
    said = {"method": "POST", "target": path}
    script.add("model", "in", n=1, kind="request", data=said)
    script.add("model", "in", n=1, kind="request_body", text=json.dumps(body))
    script.add("model", "out", n=1, kind="forward", data={"target": path})
    heads = [["Content-Type", "text/event-stream"], *headers]
    script.add("model", "in", n=1, kind="response", data={"status": 200, "headers": heads})
    for piece in answer or ("data: {}\n\n", "data: [DONE]\n\n"):
        script.add("model", "in", n=1, kind="response_body", text=piece)
    outcome = {"outcome": "complete", "status": 200} | end
    return script.add("model", n=1, kind="end", data=outcome)


def history(*messages: Any) -> Script:
    return exchange({"model": "m", "messages": [{"role": "user", "content": "hi"}, *messages]})


def calls(*idents: str, arguments: str = "{}") -> dict[str, Any]:
    found = [{"id": i, "function": {"name": "f", "arguments": arguments}} for i in idents]
    return {"role": "assistant", "content": None, "tool_calls": found}


def result(ident: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "content": "x"}


def mcp_call(key: str, script: Script | None = None, ident: int = 1) -> Script:
    meta = {"dev.acp-mcp-bridge/idempotency-key": key}
    params = {"name": "echo", "arguments": {}, "_meta": meta}
    request = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}
    return (script or Script()).add("mcp", "out", msg=request)


def mcp_answer(script: Script, value: Any, ident: int = 1) -> Script:
    return script.add("mcp", "in", msg={"jsonrpc": "2.0", "id": ident, "result": value})


def host(*, keys: str = "reply stop_reason response_metadata update_metadata") -> Script:
    script = Script()
    config = {"user_contents": ["hi"]}
    script.add("host", "in", msg={"id": 1, "operation": "prompt", "config": config})
    answer = {"id": 1, "ok": True, "turn": 1, "result": dict.fromkeys(keys.split())}
    return script.add("host", "out", msg=answer)


def silent(script: Script, seconds: float) -> Script:
    """Nothing for so long before the next record."""
    skipped = int(seconds * 1e9)
    add = script.add

    def later(*arguments: Any, **members: Any) -> Script:
        add(*arguments, **members)
        script.records[-1]["t"] += skipped
        return script

    script.add = later  # pyright: ignore[reportAttributeAccessIssue]
    return script


def agents_terminal(*steps: tuple[str, str]) -> Script:
    script = client(terminal=True).prompt(2)
    made = {"sessionId": "s", "command": "ls"}
    script.ask(50, "terminal/create", made).reply(50, {"terminalId": "t1"})
    for number, (method, terminal) in enumerate(steps, 51):
        params = {"sessionId": "s", "terminalId": terminal}
        answer = {"output": "", "truncated": False} if method == "output" else {}
        script.ask(number, f"terminal/{method}", params).reply(number, answer)
    return script.say("x").stopped(2)
