"""The filter language: every field, every operator, and words for what is wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import UsageError
from bridge.trace.filter import compile_filter
from bridge.trace.timeline import Entry
from tests.trace.traces import Script


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    script = Script().opened().prompt(2, "please")
    script.say('a "rate limit" here').update("tool_call", toolCallId="t", title="Bash")
    script.ask("7", "session/request_permission", {"sessionId": "s", "toolCall": {"title": "Edit"}})
    script.reply("7", {"outcome": {"outcome": "cancelled"}})
    script.answer(2, error={"code": -32603, "message": "over"})
    script.from_agent("noise").add("stderr", "in", session="b", text="warning: slow")
    script.add("mcp", session="b", kind="attempt", data={"tool": "echo", "outcome": "refused"})
    return script.call(9, "session/close", {}).entries()


LINES: dict[str, list[int]] = {
    "": list(range(2, 16)),
    "channel:acp": [*range(2, 13), 15],
    "ch:stderr": [13],
    "channel:mcp,stderr": [13, 14],
    "dir:out": [2, 4, 6, 10, 15],
    "method:session/*": [*range(4, 12), 15],
    "method:session/new,initialize": [2, 3, 4, 5],
    "method=session/new": [4, 5],
    "method:*PROMPT": [6, 11],
    "id:7": [9, 10],
    "id:2": [6, 11],
    'text~"rate limit"': [7],
    "text~RATE.*HERE": [7],
    "text:slow": [13],
    "slow": [13],
    '"rate limit"': [7],
    "update:agent_message_chunk": [7],
    "tool:bash": [8],
    "tool~^ed": [9],
    "tool:echo": [14],
    "session:b": [13, 14],
    "acp-session:s": [5, 6, 7, 8, 9, 10, 11],
    "kind:attempt": [14],
    "is:error": [11, 12, 14],
    "is:noise": [12],
    "is:request": [2, 4, 6, 9, 15],
    "is:response": [3, 5, 10, 11],
    "is:notification": [7, 8],
    "is:unanswered": [15],
    "is:event": [13, 14],
    "since:120ms": [13, 14, 15],
    "until:20ms": [2, 3],
    "since:0.03s until:40ms": [4, 5],
    "line:5-6": [5, 6],
    "line:2,5-6,15": [2, 5, 6, 15],
    "line>13": [14, 15],
    "line<=3": [2, 3],
    "latency>=40ms": [6, 11],
    "n=1": [*range(2, 13), 15],
    "size>100 channel:stderr": [],
    "-channel:acp": [13, 14],
    "!channel:acp": [13, 14],
    "not channel:acp": [13, 14],
    "id:7 or is:event": [9, 10, 13, 14],
    "(id:7 or is:event) dir:in": [9, 13],
    "dir:in and (channel:stderr or is:noise)": [12, 13],
    "-(dir:in or dir:out)": [14],
    "-(-channel:stderr)": [13],
    "! channel:acp": [13, 14],
    "text~(rate|warn)": [7, 13],
    "(text~(rate|warn)ing or id:7)": [9, 10, 13],
    r'text~"\brate\s"': [7],
    r"text~\brate\s": [7],
    r'text~"\"rate l"': [7],
    r'text:"\s"': [],
    "is:error,event": [11, 12, 13, 14],
    "line:14-": [14, 15],
    "line:-3": [2, 3],
    "n:-9": [*range(2, 13), 15],
}


@pytest.mark.parametrize("text", LINES)
def test_a_filter_finds_what_it_says(entries: list[Entry], text: str) -> None:
    wanted = compile_filter(text)
    assert [entry.event.line for entry in entries if wanted(entry)] == LINES[text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("chanel:acp", "no field 'chanel'; there are .*channel.* at column 1"),
        ("dir:in chanel:acp", "at column 8"),
        ("is:slow", "is:slow is unknown; there are error"),
        ("latency>fast", "'fast' is no number like"),
        ("latency~5", "latency is a number"),
        ("method>5", "method is a text"),
        ("text~(", "a value is missing; one with .* parentheses stands in quotes"),
        ('text~"("', "no regular expression"),
        ("(dir:in", "a \\( that is not closed, at column 1"),
        ("dir:in)", "a \\) too many"),
        ('text:"open', "not closed"),
        ("not", "a condition is missing"),
        ("or dir:in", "a condition is missing"),
        ("dir:in or", "a condition is missing"),
        ("()", "a condition is missing"),
        ("channel: acp", "a value is missing; .* at column 9"),
        ("text~ (rate)", "a value is missing"),
        ("since>5s", "since is followed by a :"),
        ("is~error", "is is followed by a :"),
        ("is:error,slow", "is:slow is unknown"),
        ("line:-", "'-' is no number"),
    ],
)
def test_a_wrong_filter_is_told_where_and_why(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        compile_filter(text)


@given(st.text(st.sampled_from('ab:~<>="\\()-! ormethodlatency5sk*'), max_size=30))
def test_any_text_is_a_filter_or_a_usage_error(text: str) -> None:
    [entry] = Script().say("x").entries()
    try:
        wanted = compile_filter(text)
    except UsageError:
        return
    assert wanted(entry) in (True, False)
