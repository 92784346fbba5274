"""The words for an entry: what matters of it, on one line."""

from typing import Any

import pytest

from bridge.trace.summary import LONGEST, one_line, summarise
from tests.trace.traces import Script

NEW = {"cwd": "/work", "mcpServers": [{"name": "a"}, {"name": "b"}]}
TEXT = {"type": "text", "text": "hi"}
PERMISSION = {"toolCall": {"title": "Run ls"}, "options": [{"name": "Yes"}, {"name": "No"}]}
REQUESTS: list[tuple[str, Any, str]] = [
    ("initialize", {"protocolVersion": 2, "info": {"name": "c", "version": "3"}}, "version 2  c 3"),
    ("session/new", NEW, "cwd=/work  mcp: a, b"),
    ("session/prompt", {"prompt": [TEXT, {"type": "image"}]}, '"hi <image>"'),
    ("session/request_permission", PERMISSION, "Run ls  [Yes, No]"),
    ("terminal/create", {"command": "ls", "args": ["-l"]}, "ls -l"),
    ("_acme/thing", {"a": [1, None]}, '{"a":[1,null]}'),
    ("session/prompt", [], '""'),
    ("session/prompt", None, '""'),
]
UPDATES: list[tuple[str, dict[str, Any], str]] = [
    ("agent_message_chunk", {"content": {"type": "text", "text": "a\nb"}}, '"a⏎b"'),
    ("agent_message_chunk", {"content": {"type": "image"}}, "<image>"),
    ("tool_call", {"toolCallId": "t", "title": "ls", "status": "pending"}, "pending  ls  t"),
    ("plan", {"entries": [1, 2]}, "2 entries"),
    ("usage_update", {"used": 5, "size": 10}, "5 of 10 tokens"),
    ("mood_update", {"mood": "good"}, '{"mood":"good"}'),
]
USAGE = {"inputTokens": 3}
ERROR = {"code": -32603, "message": "Internal error", "data": {"details": "no key"}}


@pytest.mark.parametrize(("method", "params", "words"), REQUESTS)
def test_a_request(method: str, params: Any, words: str) -> None:
    [entry] = Script().call(1, method, params).entries()
    assert summarise(entry) == words


@pytest.mark.parametrize(("kind", "fields", "words"), UPDATES)
def test_an_update(kind: str, fields: dict[str, Any], words: str) -> None:
    [entry] = Script().update(kind, **fields).entries()
    assert summarise(entry) == words


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"result": {"stopReason": "end_turn", "usage": USAGE}}, "end_turn  inputTokens=3"),
        ({"error": ERROR}, "error -32603: Internal error (no key)"),
        ({"error": "odd"}, "error None: odd"),
    ],
)
def test_the_answer_to_a_prompt(answer: dict[str, Any], words: str) -> None:
    entries = Script().prompt(1).answer(1, **answer).entries()
    assert summarise(entries[1]) == words


def test_a_host_s_prompt_and_its_answer() -> None:
    config = {"user_contents": ["do it"]}
    script = Script().add("host", "in", msg={"id": 1, "operation": "prompt", "config": config})
    result = {"reply": "done", "stop_reason": "end_turn"}
    script.add("host", "out", msg={"id": 1, "ok": True, "result": result})
    assert [summarise(entry) for entry in script.entries()] == ['"do it"', 'end_turn  "done"']


def test_events_of_processes_attempts_and_exchanges() -> None:
    script = Script().add("process", kind="start", data={"argv": ["node", "x.js"]})
    script.add("process", kind="exit", data={"exit_code": 3})
    script.add("process", kind="exit", data={"signal": "SIGKILL"})
    script.add("mcp", kind="attempt", data={"server": "s", "attempt": 2, "outcome": "answer"})
    script.add("model", n=1, kind="end", data={"status": 200, "usage": {"input": 4}})
    changes = [{"path": "messages[1].content", "before": "null", "after": '""'}]
    script.add("bridge", kind="rewrite", data={"changes": changes})
    script.add("stderr", "in", text="warning")
    assert [summarise(entry) for entry in script.entries()] == [
        "node x.js",
        "code 3",
        "SIGKILL",
        "server=s  attempt=2  outcome=answer",
        "status=200  input=4",
        'messages[1].content: null -> ""',
        "warning",
    ]


def test_noise_and_control_characters() -> None:
    [entry] = Script().from_agent("\x1b[?25l banner").entries()
    assert "\\x1b[?25l banner" in summarise(entry)


def test_a_line_is_one_line_and_bounded() -> None:
    assert one_line("a\r\nb\u2028\x07") == "a⏎b\\u2028\\x07"
    assert len(one_line("x" * 100_000)) <= LONGEST + 1
