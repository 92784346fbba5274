"""What is asked of a version 2 agent, and its answers, at the connection."""

from typing import Any

import anyio
import pytest

from bridge.agent.v2.dialect import Dialect2
from bridge.errors import BridgeError
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Request
from tests.agent.v2.wire import Inner, Wire, chunk, state
from tests.agent.wired import Wired

MODE = {"configId": "how", "category": "mode", "type": "select", "currentValue": "a", "options": []}


def bound(session_id: str = "s") -> Dialect2:
    dialect = Dialect2(lambda _seconds, _act: None)
    dialect.bind(session_id, Inner())
    return dialect


@pytest.mark.parametrize(
    ("method", "params", "sent"),
    [
        ("session/new", {"cwd": "/"}, ("session/new", {"cwd": "/"})),
        (
            "session/new",
            {"mcpServers": [{"name": "x"}]},
            ("session/new", {"mcpServers": [{"type": "stdio", "name": "x"}]}),
        ),
        (
            "session/load",
            {"sessionId": "s"},
            ("session/resume", {"sessionId": "s", "replayFrom": {"type": "start"}}),
        ),
        ("session/resume", {"sessionId": "s"}, ("session/resume", {"sessionId": "s"})),
        ("authenticate", {"methodId": "m"}, ("auth/login", {"methodId": "m"})),
        ("logout", {}, ("auth/logout", {})),
        (
            "session/set_config_option",
            {"value": "v"},
            ("session/set_config_option", {"type": "id", "value": "v"}),
        ),
        (
            "session/set_config_option",
            {"value": True, "type": "boolean"},
            ("session/set_config_option", {"type": "boolean", "value": True}),
        ),
        ("_session/steering", {"x": 1}, ("_session/steering", {"x": 1})),
    ],
)
def test_a_request_in_version_2_s_terms(
    method: str, params: dict[str, Any], sent: tuple[str, dict[str, Any]]
) -> None:
    before = dict(params)
    assert bound().call(method, params) == sent
    assert params == before


def test_a_mode_is_set_by_its_option() -> None:
    dialect = bound()
    asked = {"sessionId": "s", "modeId": "b"}
    with pytest.raises(BridgeError, match="modes"):
        dialect.call("session/set_mode", asked)
    opened = dialect.result("session/new", {}, {"sessionId": "s", "configOptions": [MODE]})
    assert opened["modes"] == {"currentModeId": "a", "availableModes": []}
    assert opened["configOptions"][0]["id"] == "how"
    assert dialect.call("session/set_mode", asked) == (
        "session/set_config_option",
        {"sessionId": "s", "configId": "how", "type": "id", "value": "b"},
    )


def test_the_modes_are_a_fork_s_own() -> None:
    dialect = bound()
    dialect.bind("f", Inner())
    value = {"sessionId": "f", "configOptions": [MODE]}
    dialect.result("session/fork", {"sessionId": "s"}, value)
    dialect.call("session/set_mode", {"sessionId": "f", "modeId": "b"})
    with pytest.raises(BridgeError):
        dialect.call("session/set_mode", {"sessionId": "s", "modeId": "b"})


@pytest.mark.parametrize("odd", [None, [1], {}, 7])
def test_a_result_that_names_no_session_is_that_of_the_one_asked_for(odd: Any) -> None:
    value = {"sessionId": odd, "configOptions": [MODE]}
    result = bound().result("session/load", {"sessionId": "s"}, value)
    assert result["modes"]["currentModeId"] == "a"


@pytest.mark.parametrize("value", [None, [], {}, {"sessions": []}])
def test_a_result_without_options_is_as_it_was(value: Any) -> None:
    assert bound().result("session/list", {}, value) == value


@pytest.mark.parametrize(
    ("ident", "fine"),
    [
        (b"1", True),
        (b"-7", True),
        (b'"x"', True),
        (b"null", False),
        (b"1.5", False),
        (b"1e3", False),
    ],
)
def test_ids_are_strings_or_integers(ident: bytes, fine: bool) -> None:
    request = Request(ident, "elicitation/create", Raw(b"{}"), b"")
    assert (bound().objection(request) is None) == fine


@pytest.mark.anyio
async def test_a_turn_through_a_connection() -> None:
    async with Wired() as wired:
        dialect, ends = bound(), list[Any]()
        with anyio.fail_after(5):
            dialect.prompt(wired.client.connection, "s", [{"type": "text"}], ends.append)
            call = await wired.agent.heard()
            assert (call["method"], call["params"]) == (
                "session/prompt",
                {"sessionId": "s", "prompt": [{"type": "text"}]},
            )
            dialect.cancel(wired.client.connection, "s")
            assert (await wired.agent.heard())["method"] == "session/cancel"
            wired.agent.say({"id": call["id"], "error": {"code": -32800, "message": "taken back"}})
            await wired.caught_up()
        assert [end.error.code for end in ends] == [-32800]
        dialect.end("gone")
        assert len(ends) == 1


def test_a_child_works_for_the_session_that_announced_it() -> None:
    dialect = Dialect2(lambda _seconds, _act: None)
    parent = Wire()
    session = dialect.bind("s", parent.inner)
    assert dialect.child("c") is None

    def says(sink: Any, *bodies: dict[str, Any]) -> None:
        parent.session = sink
        parent.says(*bodies)

    says(session, {"sessionUpdate": "subagent_update", "sessionId": "c"})
    child = dialect.child("c")
    assert child is not None
    parent.heard()
    says(
        child, state("running"), chunk("m"), {"sessionUpdate": "subagent_update", "sessionId": "d"}
    )
    says(dialect.child("d"), chunk("n"))
    assert parent.heard() == [
        ("c", state("running")),
        ("c", chunk("m")),
        ("c", {"sessionUpdate": "subagent_update", "sessionId": "d"}),
        ("d", chunk("n")),
    ]
    says(child, state("idle", stopReason="end_turn"))
    child.request(Request(b"1", "elicitation/create", Raw(b"{}"), b""), "client")
    assert [one[0] for one in parent.heard()] == ["c", "elicitation/create"]
    dialect.forget("s")
    assert dialect.child("c") is dialect.child("d") is None


def test_the_end_reaches_every_turn_that_runs() -> None:
    dialect = bound()
    inner = Inner()
    session = dialect.bind("t", inner)
    session.prompt(lambda _settle: None, inner.settle)
    assert not dialect.cancellable("t", "tool_call", "c")
    assert not dialect.cancellable("x", "tool_call", "c")
    dialect.end("gone")
    assert [kind for kind, _ in inner.heard] == ["end"]
    dialect.forget("t")
    dialect.forget("t")
