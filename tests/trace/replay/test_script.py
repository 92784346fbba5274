"""What a script says after what, and which bytes of a line change."""

import pytest

from bridge.errors import UsageError
from bridge.trace.replay.script import EOF, Ending, Role, Script, script_of, signature_of, with_id
from tests.trace.traces import Script as Recorded

NEW = {"cwd": "/", "mcpServers": []}


def written(recorded: Recorded, role: Role = "agent", n: int | None = 1) -> Script:
    return script_of(recorded.entries(), role, n)


@pytest.mark.parametrize(
    "line",
    [
        b'{ "jsonrpc": "2.0", "id" : 1, "result":{"x":1.0,"e":"\\u00e9","d":1e3}}\r\n',
        b'{"result":{"id":1,"n":123456789012345678901234567890},"id":1,"jsonrpc":"2.0"}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":"\\ud83d"}\n',
        b'\x1b[?25l{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}\n',
    ],
)
def test_another_id_changes_nothing_but_the_id(line: bytes) -> None:
    before, _, after = line.rpartition(b'"id"')
    assert with_id(line, b'"a b"') == before + b'"id"' + after.replace(b"1", b'"a b"', 1)


def test_a_line_that_is_no_json_gets_its_id_all_the_same() -> None:
    assert with_id(b'{"jsonrpc":"2.0","id":1,"result":NaN}\n', b"7") == (
        b'{"jsonrpc":"2.0","id":7,"result":null}\n'
    )


def test_a_request_is_no_answer_to_be_given_an_id() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"m"}\n'
    assert with_id(line, b"7") == line


@pytest.mark.parametrize(
    ("line", "to_the_agent", "to_the_client"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m"}', ("call", "m"), ("call", "m")),
        (b'{"jsonrpc":"2.0","id":"1","result":{}}', ("answer", '"1"'), ("answer", '"1"')),
        (b'{"jsonrpc":"2.0","method":"session/cancel"}', ("call", "session/cancel"), None),
        (b"db: migrated", ("noise", ""), None),
        (b'{"jsonrpc":"2.0","method":"session/update","params":[1]}', None, None),
    ],
)
def test_both_sides_wait_for_other_things(
    line: bytes, to_the_agent: tuple[str, str] | None, to_the_client: tuple[str, str] | None
) -> None:
    assert signature_of(line, "agent") == (to_the_agent or ("call", "session/update"))
    assert signature_of(line, "client") == to_the_client


def test_a_client_of_version_2_prompts_anew_when_the_session_is_idle() -> None:
    recorded = Recorded().opened(2)
    for ident in (2, 3):
        recorded.prompt(ident).answer(ident, {"messageId": "m"})
        recorded.update("state_update", state="running").update("state_update", state="idle")
    script = written(recorded, "client")
    assert [step.after.get(("state", "idle"), 0) for step in script.steps] == [0, 0, 0, 1]
    assert script.heard["state", "idle"] == 2


def test_an_agent_that_dies_of_a_prompt_waits_for_it() -> None:
    recorded = Recorded().opened().prompt(2)
    recorded.add("process", kind="exit", data={"exit_code": 3, "signal": None})
    ending = written(recorded).ending
    assert (ending.code, ending.after["call", "session/prompt"]) == (3, 1)
    assert EOF not in ending.after


def test_an_agent_that_ended_by_itself_between_turns_does_so_again() -> None:
    for early in (True, False):
        recorded = Recorded().opened()
        recorded.add("process", kind="exit", data={"exit_code": 5, "eof": not early})
        assert (EOF not in written(recorded).ending.after) is early


def test_what_was_said_after_the_client_had_left_is_said_then() -> None:
    recorded = Recorded().opened().add("process", kind="eof").say("late")
    assert [step.after.get(EOF, 0) for step in written(recorded).steps] == [0, 0, 1]


def test_the_end_of_a_torn_line_is_written_behind_the_exit_and_changes_no_ending() -> None:
    recorded = Recorded().opened().prompt(2)
    recorded.add("process", kind="exit", data={"signal": "SIGKILL", "eof": False})
    recorded.from_agent('{"jsonrpc":"2.0","me', end="")
    assert written(recorded).ending.signal == "SIGKILL"


def test_of_several_agents_each_has_its_own_ending() -> None:
    recorded = Recorded()
    for n, name in ((1, "a"), (2, "b")):
        message = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
        recorded.add("acp", "out", n=n, session=name, msg=message)
        recorded.add("process", session=name, kind="exit", data={"exit_code": n + 6})
    assert [written(recorded, n=n).ending.code for n in (1, 2)] == [7, 8]


def test_an_agent_that_said_nothing_says_nothing_again() -> None:
    silent = Recorded().call(0, "initialize")
    assert written(silent).steps == []
    dead = (
        Recorded()
        .add("process", kind="start")
        .add("process", kind="exit", data={"exit_code": 127, "eof": False})
    )
    assert written(dead, n=None).ending == Ending({}, 127, None)
    for role in ("agent", "client"):
        with pytest.raises(UsageError, match="nothing to be played"):
            written(Recorded().add("stderr", "in", text="x"), role)


def test_the_client_of_an_active_relay_says_what_it_said_and_not_what_the_agent_got() -> None:
    recorded = Recorded()
    for channel, direction, url in (("client", "in", "given"), ("acp", "out", "ours")):
        message = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"url": url}}
        recorded.add(channel, direction, n=1, msg=message)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s"}}
    recorded.add("acp", "in", n=1, msg=answer).add("client", "out", n=1, msg=answer)
    script = written(recorded, "client")
    assert [b"given" in step.data for step in script.steps] == [True]
    assert script.heard == {("answer", "1"): 1}
