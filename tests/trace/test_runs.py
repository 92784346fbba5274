"""Runs of chunks are one row; anything else keeps its own, in order."""

from bridge.trace.runs import rows
from tests.trace.traces import Script


def shown(script: Script) -> list[tuple[int, int, str]]:
    return [(row.entry.event.line, row.count, row.text) for row in rows(script.entries())]


def test_chunks_in_a_row_are_one_row_with_their_text() -> None:
    script = Script().prompt(1).say("a").say("b").say("c").stopped(1)
    assert shown(script) == [(2, 1, ""), (3, 3, "abc"), (6, 1, "")]


def test_runs_that_alternate_are_a_row_each() -> None:
    script = Script()
    for letter in "ab":
        script.say(letter)
        update = {
            "sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": letter},
        }
        script.add("host", "out", msg={"event": "update", "session": "", "update": update})
    assert shown(script) == [(2, 2, "ab"), (3, 2, "ab")]


def test_another_message_kind_or_session_is_another_run() -> None:
    script = Script().say("a", messageId="1").say("b", messageId="2").say("c", session="other")
    script.update("agent_thought_chunk", content={"type": "text", "text": "d"})
    assert [text for _, _, text in shown(script)] == ["a", "b", "c", "d"]


def test_anything_else_ends_a_run() -> None:
    script = Script().say("a").update("tool_call", toolCallId="t").say("b")
    assert shown(script) == [(2, 1, "a"), (3, 1, ""), (4, 1, "b")]


def test_pieces_of_a_body_are_a_run() -> None:
    script = Script()
    for _ in range(3):
        script.add("model", "in", n=1, kind="response_body", text="data: x\n\n")
    [row] = rows(script.entries())
    assert (row.count, row.size) == (3, 27)


def test_ids_of_any_type_tell_runs_apart() -> None:
    script = Script().say("a", messageId={"x": 1}).say("b", messageId={"x": 1}).say("c")
    assert shown(script) == [(2, 2, "ab"), (4, 1, "c")]
