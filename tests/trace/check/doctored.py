"""Doctored traces: each breaks one rule, and nothing else.

`DOCTORED` has for every rule's name the script that breaks it.
"""

from collections.abc import Callable

from tests.trace.check.starts import (
    ASK,
    CANCEL,
    NEW,
    OPTIONS,
    SELECTED,
    TEXT,
    agents_terminal,
    calls,
    closed,
    exchange,
    history,
    host,
    mcp_answer,
    mcp_call,
    message,
    option,
    raw,
    result,
    session,
    silent,
    turn,
    with_modes,
)
from tests.trace.traces import Script

Doctor = Callable[[], Script]
BOTH = {"info": {"name": "x", "version": "1"}, "capabilities": {}}
IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}
HTTP = {"type": "http", "name": "t", "url": "http://h", "headers": []}
EVENT = {"event": "update", "turn": 1, "session": "", "update": {"sessionUpdate": "plan"}}


def refused(error: object) -> Script:
    return session().call(2, "_x", {}).answer(2, error=error)


DOCTORED: dict[str, Doctor] = {
    # the pipes
    "noise": lambda: raw("db: migrated 3 tables"),
    "client-noise": lambda: session().to_agent("hello?"),
    "batch": lambda: raw('[{"jsonrpc":"2.0","method":"_x"}]'),
    "not-utf8": lambda: session().add("acp", "in", n=1, session="", b64="//4="),
    "byte-order-mark": lambda: raw('\ufeff{"jsonrpc":"2.0","method":"_x","params":{}}'),
    "carriage-return": lambda: message(method="_x", params={}),
    "blank-line": lambda: raw("  "),
    "unterminated-line": lambda: message(method="_x", params={}),
    "line-separator": lambda: session().from_agent(
        {"jsonrpc": "2.0", "method": "_x", "params": {"a": "\u2028"}}
    ),
    # the messages
    "jsonrpc-version": lambda: session().from_agent({"method": "_x", "params": {}}),
    "id-type": lambda: session().ask(1.5, "_x", {}).reply(1.5),
    "result-or-error": lambda: (
        session()
        .call(2, "_x", {})
        .from_agent({"jsonrpc": "2.0", "id": 2, "result": {}, "error": None})
    ),
    "error-shape": lambda: (
        session().call(2, "_x", {}).answer(2, error={"code": "1", "message": "x"})
    ),
    "error-message": lambda: (
        session().call(2, "_x", {}).answer(2, error={"code": 1, "message": ""})
    ),
    "params-type": lambda: message(method="_x", params="a"),
    "unknown-root-key": lambda: message(method="_x", params={}, extra=1),
    "schema": lambda: session().prompt(2).say("x").answer(2, {"stopReason": "because"}),
    "read-past": lambda: turn().update("session_info_update", title=5),
    "unstable": lambda: (
        session(sessionCapabilities={"fork": {}})
        .call(2, "session/fork", {"sessionId": "s", **NEW})
        .answer(2, {"sessionId": "f"})
    ),
    "unknown-method": lambda: session().call(2, "session/dance", {}).answer(2),
    "surrogate": lambda: session().prompt(2, "\ud83d").say("x").stopped(2),
    # the calls
    "duplicate-id": lambda: session().call(2, "_x", {}).call(2, "_y", {}).answer(2),
    "id-reuse": lambda: session().call(2, "_x", {}).answer(2).call(2, "_y", {}).answer(2),
    "response-without-request": lambda: session().answer(77),
    "duplicate-response": lambda: session().call(2, "_x", {}).answer(2).answer(2),
    "response-id-type": lambda: session().call(2, "_x", {}).answer("2"),
    "unanswered-request": lambda: closed(session().call(2, "_x", {})),
    "cancelled-id-unknown": lambda: session().notify("$/cancel_request", {"requestId": 9}),
    # the beginning
    "before-initialize": lambda: Script().call(1, "session/new", NEW).answer(1, {"sessionId": "s"}),
    "initialize-again": lambda: (
        session().call(2, "initialize", {"protocolVersion": 1}).answer(2, {"protocolVersion": 1})
    ),
    "version-too-high": lambda: (
        Script()
        .call(0, "initialize", {"protocolVersion": 1})
        .answer(0, {"protocolVersion": 2, **BOTH})
    ),
    "version-unknown": lambda: (
        Script()
        .call(0, "initialize", {"protocolVersion": 99, **BOTH})
        .answer(0, {"protocolVersion": 98, **BOTH})
    ),
    "authentication-id-duplicate": lambda: Script().opened(
        authMethods=[{"id": "k", "name": "K"}, {"id": "k", "name": "L"}]
    ),
    "authentication-terminal": lambda: Script().opened(
        authMethods=[{"type": "terminal", "id": "t", "name": "T"}]
    ),
    "authentication-unknown": lambda: (
        session().call(2, "authenticate", {"methodId": "k"}).answer(2)
    ),
    "authentication-missing": lambda: (
        session().call(2, "_x", {}).answer(2, error={"code": -32000, "message": "sign in"})
    ),
    # the sessions
    "session-unknown": lambda: session().prompt(2, session="other").stopped(2),
    "session-id-duplicate": lambda: (
        session().call(2, "session/new", NEW).answer(2, {"sessionId": "s"})
    ),
    "session-closed": lambda: (
        session(sessionCapabilities={"close": {}})
        .call(2, "session/close", {"sessionId": "s"})
        .answer(2)
        .prompt(3)
        .answer(3, error={"code": -32602, "message": "closed"})
    ),
    "update-unknown-session": lambda: session().update("plan", session="other", entries=[]),
    "update-early": lambda: (
        session()
        .call(2, "session/new", NEW)
        .update("plan", session="u", entries=[])
        .answer(2, {"sessionId": "u"})
    ),
    "update-after-close": lambda: (
        session(sessionCapabilities={"close": {}})
        .call(2, "session/close", {"sessionId": "s"})
        .answer(2)
        .update("session_info_update", title="x")
    ),
    "resume-replay": lambda: (
        session(sessionCapabilities={"resume": {}})
        .call(2, "session/resume", {"sessionId": "old", **NEW})
        .say("history", session="old")
        .answer(2)
    ),
    "load-after-answer": lambda: (
        session(loadSession=True)
        .call(2, "session/load", {"sessionId": "old", **NEW})
        .answer(2)
        .update("user_message_chunk", session="old", content=TEXT)
    ),
    "relative-path": lambda: (
        session()
        .call(2, "session/new", {"cwd": "here", "mcpServers": []})
        .answer(2, {"sessionId": "t"})
    ),
    "mode-unknown": lambda: (
        with_modes().call(2, "session/set_mode", {"sessionId": "s", "modeId": "turbo"}).answer(2)
    ),
    "option-unknown": lambda: (
        with_modes()
        .call(2, "session/set_config_option", {"sessionId": "s", "configId": "z", "value": "v"})
        .answer(2, error={"code": -32602, "message": "no"})
    ),
    "option-list-incomplete": lambda: (
        with_modes()
        .call(2, "session/set_config_option", {"sessionId": "s", "configId": "a", "value": "v"})
        .answer(2, {"configOptions": [option("a")]})
    ),
    # the turns
    "prompt-while-running": lambda: session().prompt(2).prompt(3).say("x").stopped(2).stopped(3),
    "turn-without-end": lambda: closed(session().prompt(2).say("x")),
    "turn-ended-twice": lambda: turn().stopped(2),
    "update-after-end": lambda: turn().say("late"),
    "update-after-cancel": lambda: (
        session().prompt(2).notify("session/cancel", CANCEL).stopped(2, "cancelled").say("late")
    ),
    "cancel-ignored": lambda: (
        session().prompt(2).say("x").notify("session/cancel", CANCEL).stopped(2)
    ),
    "cancel-as-error": lambda: (
        session()
        .prompt(2)
        .notify("session/cancel", CANCEL)
        .answer(2, error={"code": -32603, "message": "aborted"})
    ),
    "cancel-without-turn": lambda: session().notify("session/cancel", CANCEL),
    "empty-turn": lambda: session().prompt(2).stopped(2),
    "state-without-end": lambda: closed(session(2).update("state_update", state="running")),
    "update-while-idle": lambda: session(2).say("x", messageId="m"),
    # tools and permissions
    "tool-unknown": lambda: (
        session()
        .prompt(2)
        .update("tool_call_update", toolCallId="t", status="completed")
        .stopped(2)
    ),
    "tool-id-duplicate": lambda: (
        session()
        .prompt(2)
        .update("tool_call", toolCallId="t", title="T", status="completed")
        .update("tool_call", toolCallId="t", title="T", status="completed")
        .stopped(2)
    ),
    "tool-goes-back": lambda: (
        session()
        .prompt(2)
        .update("tool_call", toolCallId="t", title="T", status="completed")
        .update("tool_call_update", toolCallId="t", status="in_progress")
        .update("tool_call_update", toolCallId="t", status="completed")
        .stopped(2)
    ),
    "tool-left-open": lambda: (
        session()
        .prompt(2)
        .update("tool_call", toolCallId="t", title="T", status="pending")
        .stopped(2)
    ),
    "permission-unanswered": lambda: closed(
        session().prompt(2).say("x").ask(5, "session/request_permission", ASK).stopped(2, "refusal")
    ),
    "permission-after-cancel": lambda: (
        session()
        .prompt(2)
        .ask(5, "session/request_permission", ASK)
        .notify("session/cancel", CANCEL)
        .reply(5, SELECTED)
        .stopped(2, "cancelled")
    ),
    "permission-option-unknown": lambda: (
        session()
        .prompt(2)
        .say("x")
        .ask(5, "session/request_permission", ASK)
        .reply(5, {"outcome": {"outcome": "selected", "optionId": "yes"}})
        .stopped(2, "refusal")
    ),
    "permission-option-duplicate": lambda: (
        session()
        .prompt(2)
        .say("x")
        .ask(5, "session/request_permission", ASK | {"options": [*OPTIONS, OPTIONS[0]]})
        .reply(5, SELECTED)
        .stopped(2, "refusal")
    ),
    "permission-without-turn": lambda: (
        session().ask(5, "session/request_permission", ASK).reply(5, SELECTED)
    ),
    "terminal-unknown": lambda: agents_terminal(("output", "t9"), ("release", "t1")),
    "terminal-not-released": lambda: closed(agents_terminal(("output", "t1"))),
    # capabilities
    "client-capability": lambda: (
        session()
        .prompt(2)
        .say("x")
        .ask(5, "fs/read_text_file", {"sessionId": "s", "path": "/x"})
        .reply(5, {"content": ""})
        .stopped(2)
    ),
    "agent-capability": lambda: session().call(2, "session/list", {}).answer(2, {"sessions": []}),
    "prompt-capability": lambda: (
        session()
        .call(2, "session/prompt", {"sessionId": "s", "prompt": [IMAGE]})
        .say("x")
        .stopped(2)
    ),
    "mcp-capability": lambda: (
        session()
        .call(2, "session/new", {"cwd": "/", "mcpServers": [HTTP]})
        .answer(2, {"sessionId": "u"})
    ),
    "update-capability": lambda: session().update("notice", severity="info", title="t"),
    "steering-capability": lambda: (
        session()
        .call(2, "_session/steering", {"sessionId": "s", "prompt": []})
        .answer(2, error={"code": -32601, "message": "no"})
    ),
    # time and processes
    "silence": lambda: silent(session().prompt(2).say("x"), 31).stopped(2),
    "died": lambda: (
        session().prompt(2).add("process", session="", kind="exit", data={"exit_code": 3})
    ),
    # the host
    "host-unanswered": lambda: closed(
        Script().add("host", "in", msg={"id": 1, "operation": "status"})
    ),
    "host-result": lambda: host(keys="reply stop_reason response_metadata"),
    "host-event-late": lambda: host().add("host", "out", msg=EVENT),
    # the model
    "null-content": lambda: history({"role": "assistant", "content": None}),
    "tool-result-orphan": lambda: history(result("c")),
    "tool-call-unanswered": lambda: history(calls("c", "d"), result("c")),
    "tool-arguments": lambda: history(calls("c", arguments=""), result("c")),
    "stream-without-end": lambda: exchange({}, "data: {}\n\n"),
    "stream-cut": lambda: exchange({}, "data: {}\n\n", outcome="cut"),
    "model-failed": lambda: exchange({}, outcome="failed", error="connection refused"),
    # MCP
    "mcp-repeated-answer": lambda: mcp_call("k", mcp_answer(mcp_call("k"), {"content": []}), 2),
    "mcp-failed": lambda: Script().add(
        "mcp", kind="attempt", data={"server": "s", "outcome": "refused"}
    ),
    "mcp-result": lambda: mcp_answer(mcp_call("k"), {"content": "text"}),
}

for _rule, _end in (("carriage-return", "\r\n"), ("unterminated-line", "")):

    def _doctor(rule: str = _rule, end: str = _end) -> Script:
        script = message(method="_x", params={})
        script.records[-1]["end"] = end
        return script

    DOCTORED[_rule] = _doctor
