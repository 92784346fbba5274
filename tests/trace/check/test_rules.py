"""Each rule finds the fault it is for, and no rule finds one where there is none."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from bridge.trace import view
from bridge.trace.check.checker import check
from bridge.trace.check.finding import Finding
from bridge.trace.check.rules import rules
from tests.trace.check.doctored import DOCTORED
from tests.trace.check.starts import (
    ASK,
    CANCEL,
    CLOSED,
    NEW,
    SELECTED,
    client,
    exchange,
    host,
    message,
    session,
    turn,
)
from tests.trace.traces import Script

DOCS = Path(__file__).parents[3] / "docs"
INFO = {"name": "x", "version": "1"}
OF_THE_FILE = {"damage", "incomplete"}


def findings(script: Script, folder: Path) -> list[Finding]:
    path = script.file(folder)
    if script.records[-1].get("kind") != "end":
        # Without an end the recording is incomplete, which is a finding of its own.
        with Path(path).open("a") as file:
            end = {"t": 10**15, "ch": "trace", "kind": "end", "data": {"reason": "test"}}
            file.write(json.dumps(end) + "\n")
    found = check(view.select(view.Selection(path)))
    return [finding for finding in found if finding.rule != "incomplete"]


@pytest.mark.parametrize("rule", DOCTORED)
def test_a_planted_fault_is_found_and_nothing_else(rule: str, tmp_path: Path) -> None:
    found = findings(DOCTORED[rule](), tmp_path)
    assert {finding.rule for finding in found} == {rule}, found
    assert all(finding.severity == rules()[rule].severity for finding in found)
    assert all(finding.line > 1 and finding.words and finding.spec for finding in found)


def test_every_rule_has_a_doctored_trace() -> None:
    assert set(DOCTORED) == set(rules()) - OF_THE_FILE


CLEAN = {
    "a tool call that its caller cancelled": lambda: session().add(
        "mcp", kind="attempt", data={"server": "s", "tool": "t", "outcome": "cancelled"}
    ),
    "a turn": lambda: turn(),
    "two turns": lambda: turn(turn(), 3),
    "a cancelled turn": lambda: (
        session()
        .prompt(2)
        .say("x")
        .notify("session/cancel", {"sessionId": "s"})
        .say("still within")
        .stopped(2, "cancelled")
    ),
    "updates at any time": lambda: (
        turn()
        .update("session_info_update", title="t")
        .update("usage_update", used=1, size=2)
        .update("available_commands_update", availableCommands=[])
    ),
    "a client that offers files": lambda: (
        client(fs={"readTextFile": True})
        .prompt(2)
        .ask(5, "fs/read_text_file", {"sessionId": "s", "path": "/x"})
        .reply(5, {"content": ""})
        .say("x")
        .stopped(2)
    ),
    "an extension": lambda: session().call(2, "_acme/x", {"a": 1}).answer(2, {"b": 2}),
    "an extension with positional parameters": lambda: message(method="_acme/x", params=[1]),
    "ids of both types at once": lambda: (
        session().call(5, "_a").call("5", "_b").answer("5").answer(5)
    ),
    "an id spelt otherwise": lambda: (
        session()
        .to_agent('{"jsonrpc":"2.0","id":"é","method":"_x"}')
        .from_agent('{"jsonrpc":"2.0","id":"\\u00e9","result":{}}')
    ),
    "an initialize of a later version": lambda: (
        Script()
        .call(0, "initialize", {"protocolVersion": 65535, "later": {}})
        .answer(0, {"protocolVersion": 1})
    ),
    "a second try at initialize": lambda: (
        Script()
        .call(0, "initialize", {"protocolVersion": 2, "info": INFO, "capabilities": {}})
        .answer(0, error={"code": -32022, "message": "unsupported"})
        .call(1, "initialize", {"protocolVersion": 1})
        .answer(1, {"protocolVersion": 1})
    ),
    "a permission request that its agent took back": lambda: (
        session()
        .prompt(2)
        .say("x")
        .ask(5, "session/request_permission", ASK)
        .notify("session/cancel", CANCEL)
        .from_agent({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 5}})
        .reply(5, error={"code": -32800, "message": "cancelled"})
        .stopped(2, "cancelled")
    ),
    "a session of version 2 that is closed as it runs": lambda: (
        session(2)
        .update("state_update", state="running")
        .call(3, "session/close", CANCEL)
        .answer(3)
    ),
    "a terminal of version 2": lambda: (
        session(2)
        .update("state_update", state="running")
        .update("terminal_update", terminalId="T", capabilities={"cancel": {}})
        .call(3, "terminal/cancel", {"sessionId": "s", "terminalId": "T"})
        .answer(3)
        .update("state_update", state="idle")
    ),
    "folders that the agent takes": lambda: (
        session(sessionCapabilities={"additionalDirectories": {}})
        .call(3, "session/new", NEW | {"additionalDirectories": ["/a", "C:\\b"]})
        .answer(3, {"sessionId": "t"})
    ),
    "an agent whose client has left it": lambda: (
        session(_x={})
        .call(3, "_x")
        .answer(3)
        .add("process", kind="eof")
        .add("process", kind="exit", data={"exit_code": 143})
    ),
    "a stream that was kept in its encoding": lambda: exchange(
        {"messages": []}, "not to be read", headers=[["Content-Encoding", "gzip"]]
    ),
    "a refused request": lambda: (
        session().call(2, "_x", {}).answer(2, error={"code": -32601, "message": "no such method"})
    ),
    "a line that could not be read": lambda: session().answer(
        None, error={"code": -32700, "message": "parse error"}
    ),
    "version 2": lambda: (
        session(2)
        .prompt(2)
        .update("user_message", messageId="u", content=[{"type": "text", "text": "hi"}])
        .answer(2, {"messageId": "u"})
        .update("state_update", state="running")
        .say("x", messageId="m")
        .update("state_update", state="idle", stopReason="end_turn")
    ),
    "a replayed session": lambda: (
        session(loadSession=True)
        .call(2, "session/load", {"sessionId": "old", "cwd": "/", "mcpServers": []})
        .update("user_message_chunk", session="old", content={"type": "text", "text": "hi"})
        .update("tool_call", session="old", toolCallId="t", title="T", status="pending")
        .say("x", session="old")
        .answer(2)
        .prompt(3, session="old")
        .say("y", session="old")
        .stopped(3)
    ),
    "a replayed session of version 2": lambda: (
        session(2)
        .call(
            2, "session/resume", {"sessionId": "old", "cwd": "/", "replayFrom": {"type": "start"}}
        )
        .update("user_message", session="old", messageId="u", content=[])
        .say("x", session="old", messageId="m")
        .update("state_update", session="old", state="idle")
        .answer(2)
    ),
    "a subagent of version 2": lambda: (
        session(2)
        .update("subagent_update", sessionId="kid")
        .update("state_update", session="kid", state="running")
        .say("x", session="kid", messageId="m")
        .update("state_update", session="kid", state="idle")
    ),
    "a host": lambda: host(),
    "a host whose session is opened anew": lambda: (
        host()
        .add("host", "in", msg={"id": 2, "operation": "close"})
        .add("host", "out", msg={"id": 2, "ok": True, "result": {}})
        .add("host", "out", msg={"event": "update", "turn": 1, "session": "", "update": {}})
    ),
}


SIBLINGS = {
    "a response without an id": ("id-type", lambda: session().from_agent(RESPONSE)),
    "a method that is no string": ("unknown-method", lambda: message(id=1, method=5)),
    "a version that is no number": (
        "schema",
        lambda: Script().call(0, "initialize", {"protocolVersion": True}),
    ),
    "a folder": (
        "relative-path",
        lambda: (
            session(sessionCapabilities={"additionalDirectories": {}})
            .call(3, "session/new", NEW | {"additionalDirectories": ["/a", "b"]})
            .answer(3, {"sessionId": "t"})
        ),
    ),
    "a location": (
        "relative-path",
        lambda: (
            session().prompt(2).update("tool_call", **DONE, locations=[{"path": "a"}]).stopped(2)
        ),
    ),
    "a diff": (
        "relative-path",
        lambda: session().prompt(2).update("tool_call", **DONE, content=[DIFF]).stopped(2),
    ),
    "folders that were not offered": (
        "agent-capability",
        lambda: (
            session()
            .call(3, "session/new", NEW | {"additionalDirectories": ["/a"]})
            .answer(3, {"sessionId": "t"})
        ),
    ),
    "a permission given when the cancelled turn is over": (
        "permission-after-cancel",
        lambda: cancelled_permission().stopped(2, "cancelled").reply(5, SELECTED),
    ),
    "a permission answered with an error after a cancel": (
        "permission-after-cancel",
        lambda: (
            cancelled_permission()
            .reply(5, error={"code": -32603, "message": "boom"})
            .stopped(2, "cancelled")
        ),
    ),
}
RESPONSE = {"jsonrpc": "2.0", "result": {}}
DONE = {"toolCallId": "t", "title": "T", "status": "completed"}
DIFF = {"type": "diff", "path": "a", "oldText": None, "newText": "x"}


def cancelled_permission() -> Script:
    script = session().prompt(2).say("x").ask(5, "session/request_permission", ASK)
    return script.notify("session/cancel", CANCEL)


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_fault_of_the_same_kind_is_found_by_the_same_rule(name: str, tmp_path: Path) -> None:
    rule, script = SIBLINGS[name]
    found = findings(script().add("trace", kind="end", data=CLOSED), tmp_path)
    assert {finding.rule for finding in found} - {"unanswered-request"} == {rule}, found


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_where_nothing_is_wrong(name: str, tmp_path: Path) -> None:
    script = CLEAN[name]().add("trace", kind="end", data=CLOSED)
    assert findings(script, tmp_path) == []


def test_what_a_cut_recording_lacks_is_not_blamed_on_anybody(tmp_path: Path) -> None:
    path = session().prompt(2).say("x").file(tmp_path)
    with Path(path).open("a") as file:
        file.write('{"t":')
    found = check(view.select(view.Selection(path)))
    assert {finding.rule for finding in found} == {"incomplete"}
    assert {finding.severity for finding in found} == {"info"}


def test_options_with_odd_ids_are_told_apart(tmp_path: Path) -> None:
    odd = [{"optionId": ident, "name": "n", "kind": "allow_once"} for ident in ([], {}, None, [])]
    asked = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": odd}
    script = session().prompt(2).say("x").ask(5, "session/request_permission", asked)
    answer = {"outcome": {"outcome": "cancelled"}}
    found = findings(script.reply(5, answer).stopped(2, "refusal"), tmp_path)
    [twice] = [one for one in found if one.rule == "permission-option-duplicate"]
    assert twice.words == "two options []"


def test_a_broken_line_is_found_and_the_rest_checked(tmp_path: Path) -> None:
    path = session().file(tmp_path)
    with Path(path).open("a") as file:
        file.write("garbage\n")
    found = check(view.select(view.Selection(path)))
    assert [finding.rule for finding in found if finding.rule != "incomplete"] == ["damage"]


def test_agents_of_one_trace_are_judged_apart(tmp_path: Path) -> None:
    script = Script()
    for record in [*turn().records, *session().records]:
        script.records.append(record | {"n": 1 + (len(script.records) >= 7)})
    assert findings(script, tmp_path) == []


def test_the_documentation_has_every_rule_as_it_is() -> None:
    text = (DOCS / "checks.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    wanted = [
        (name, rule.severity, rule.words.replace("|", "\\|"), rule.spec)
        for name, rule in rules().items()
    ]
    assert rows == wanted


def known() -> dict[str, dict[str, list[object]]]:
    return json.loads(Path(__file__).with_name("transcripts.json").read_text())


TRANSCRIPTS = Path(__file__).with_name("transcripts")


@pytest.mark.parametrize("name", sorted(path.name for path in TRANSCRIPTS.glob("*.ndjson")))
def test_in_recorded_agents_only_known_faults_are_found(name: str) -> None:
    found = check(view.select(view.Selection(str(TRANSCRIPTS / name))))
    counted = Counter(finding.rule for finding in found)
    expected = {rule: entry[0] for rule, entry in known().get(name, {}).items()}
    assert dict(counted) == expected


def test_each_known_fault_has_its_reason() -> None:
    for findings_of in known().values():
        for count, reason in findings_of.values():
            assert isinstance(count, int)
            assert isinstance(reason, str)
            assert len(reason) > 20
