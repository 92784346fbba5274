"""What an agent asks of its client: brought to its session, or refused at once and by name."""

from typing import Any

import anyio
import pytest

from bridge.agent.client import AgentClient
from bridge.agent.dialect import Dialect
from bridge.wire.jsonrpc import Request
from tests.agent.wired import Session, Wired, update

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("ident", [7, "seven", 1.5, None])
async def test_an_unknown_request_is_refused_at_once_with_its_own_id(ident: Any) -> None:
    async with Wired() as wired:
        session = await wired.open("s")
        for method in ("_vendor/ask", "fs/delete_file", "session/prompt", "initialize"):
            wired.agent.say({"id": ident, "method": method, "params": {"sessionId": "s"}})
            refused = await wired.agent.heard()
            assert (refused["id"], refused["error"]["code"]) == (ident, -32601)
            assert type(refused["id"]) is type(ident)
            assert method in refused["error"]["message"]
        assert session.came == []


@pytest.mark.parametrize("method", sorted(Dialect.served))
async def test_a_served_request_must_name_a_session_that_lives_here(method: str) -> None:
    async with Wired() as wired:
        for params, code in ((None, -32602), ([], -32602), ({"sessionId": 1}, -32602)):
            wired.agent.say({"id": 1, "method": method, "params": params})
            assert (await wired.agent.heard())["error"]["code"] == code
        wired.agent.say({"id": 1, "method": method, "params": {"sessionId": "ghost"}})
        assert (await wired.agent.heard())["error"]["code"] == -32002


async def test_a_forgotten_session_hears_nothing_more() -> None:
    async with Wired() as wired:
        session = await wired.open("s")
        wired.client.forget("s")
        wired.agent.say(update("s"), {"id": 1, "method": "fs/read_text_file", "params": {}})
        assert (await wired.agent.heard())["error"]["code"] == -32602
        assert session.came == []


ODD_LINES = [
    b"",
    b"plain words",
    b"42",
    b"[]",
    b"{}",
    b'{"jsonrpc":"2.0","method":"session/update"}',
    b'{"jsonrpc":"2.0","method":"session/update","params":7}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":3}}',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s"}}',
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":[]}',
    b'{"jsonrpc":"2.0","method":"$/unknown"}',
    b'{"jsonrpc":"2.0","id":99,"result":{}}',
    b'{"jsonrpc":"2.0","id":[1],"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":"words"}',
    b'{"jsonrpc":"2.0","id":"x","method":8}',
    b"\xff\xfe",
]


async def test_no_line_of_any_kind_stops_the_reader() -> None:
    async with Wired() as wired:
        session = await wired.open("s")
        head = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
        deep = [
            head + b'{"sessionUpdate":"x","%s":%s%s}}}' % (name, b"[" * depth, b"]" * depth)
            for name in (b"odd", b"content")
            for depth in (950, 980, 990, 995, 1000, 3000, 20_000)
        ]
        asks = [
            b'{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":%s%s}'
            % (b"[" * depth, b"]" * depth)
            for depth in (980, 990, 3000)
        ]
        wired.agent.write(*ODD_LINES, *deep, *asks)
        wired.agent.say(update("s", "still there"))
        await wired.caught_up()
        assert session.came[-1] == "still there"
        assert wired.client.noise_lines >= 9


@pytest.mark.parametrize("method", ["$/cancel_request", "$/cancelRequest"])
async def test_an_agent_may_take_its_request_back(method: str) -> None:
    class Slow(Session):
        def request(self, request: Request, client: AgentClient) -> None:
            client.inbound.start(request, lambda _method, _params: anyio.sleep_forever())

    async with Wired() as wired:
        slow = Slow()
        wired.tasks.start_soon(wired.client.create, "session/new", {}, slow, slow.done)
        call = await wired.agent.heard()
        ask = {"id": 8, "method": "fs/read_text_file", "params": {"sessionId": "s"}}
        taken_back = {"method": method, "params": {"requestId": 8}}
        wired.agent.say({"id": call["id"], "result": {"sessionId": "s"}}, ask, taken_back)
        answer = await wired.agent.heard()
        assert (answer["id"], answer["error"]["code"]) == (8, -32800)
