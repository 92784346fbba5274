"""Version 1 has no translation: what is asked goes out, and what comes is read, as it is."""

import anyio
import pytest

from bridge.agent.dialect import Dialect
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Request
from tests.agent.wired import Session, Wired

pytestmark = pytest.mark.anyio


async def test_a_prompt_s_answer_is_its_end() -> None:
    dialect, ends = Dialect(), []
    async with Wired() as wired:
        with anyio.fail_after(5):
            dialect.prompt(wired.client.connection, "s", [], ends.append)
            call = await wired.agent.heard()
            assert call["params"] == {"sessionId": "s", "prompt": []}
            dialect.cancel(wired.client.connection, "s")
            assert (await wired.agent.heard())["method"] == "session/cancel"
            wired.agent.say({"id": call["id"], "result": {"stopReason": "cancelled"}})
            await wired.caught_up()
    assert [bytes(end.result) for end in ends] == [b'{"stopReason":"cancelled"}']


def test_nothing_is_said_in_other_words() -> None:
    dialect, session = Dialect(), Session()
    params, value = {"a": 1}, {"b": 2}
    assert dialect.bind("s", session) is session
    assert dialect.call("session/load", params) == ("session/load", params)
    assert dialect.result("session/load", params, value) is value
    assert dialect.objection(Request(b"null", "x", Raw(b"{}"), b"")) is None
    assert not dialect.cancellable("s", "tool_call", "c")
    dialect.opened("s")
    dialect.forget("s")
    dialect.end("gone")
