"""A peer's requests: each gets one answer, whatever its handler does and whoever takes it back."""

from typing import Any

import anyio
import pytest

from bridge.errors import RequestFailed
from bridge.rpc.connection import Connection
from bridge.rpc.inbound import Answer, Inbound
from bridge.wire import jsonrpc
from bridge.wire.jsonrpc import Notification, Request
from tests.rpc.pair import Recorder, connected

pytestmark = pytest.mark.anyio


class Serving(Recorder):
    """Answers every request with `answer`, and heeds `$/cancel_request`."""

    def __init__(self, inbound: Inbound, answer: Answer) -> None:
        super().__init__()
        self.inbound, self.answer = inbound, answer

    def request(self, request: Request) -> None:
        self.inbound.start(request, self.answer)

    def notification(self, notification: Notification) -> None:
        self.inbound.cancel(notification)


async def serve(
    connection: Connection, answer: Answer, *, task_status: anyio.abc.TaskStatus[Inbound]
) -> None:
    async with anyio.create_task_group() as tasks:
        inbound = Inbound(connection, tasks)
        task_status.started(inbound)
        await connection.run(Serving(inbound, answer))


async def echo(method: str, params: Any) -> Any:
    return {"method": method, "params": params}


async def forever(method: str, params: Any) -> Any:
    await anyio.sleep_forever()


async def test_an_answer_carries_the_asker_s_id() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        await tasks.start(serve, connection, echo)
        for ident in (b'"a"', b"1.50", b"null", b'"caf\\u00e9"', b"-3"):
            peer.write(b'{"jsonrpc":"2.0","id":%s,"method":"m","params":[1]}' % ident)
            line = await peer.line()
            assert line.startswith(b'{"jsonrpc":"2.0","id":%s,"result":' % ident)
            assert line.endswith(b'{"method":"m","params":[1]}}')
        peer.leave()


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (RequestFailed(-32002, "no such file", {"path": "/x"}), -32002, "no such file"),
        (RequestFailed(None, "somehow"), -32603, "somehow"),
        (ZeroDivisionError("by zero"), -32603, "ZeroDivisionError: by zero"),
        (RecursionError("too deep"), -32603, "RecursionError: too deep"),
    ],
)
async def test_a_failure_is_an_answer_too(failure: Exception, code: int, words: str) -> None:
    async def fail(method: str, params: Any) -> Any:
        raise failure

    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        inbound = await tasks.start(serve, connection, fail)
        peer.say({"id": 1, "method": "m"})
        error = (await peer.heard())["error"]
        assert (error["code"], error["message"]) == (code, words)
        assert error.get("data") == getattr(failure, "data", None)
        assert len(inbound) == 0
        peer.leave()


async def test_params_that_cannot_be_read_are_answered() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        await tasks.start(serve, connection, echo)
        deep = b"[" * 3000 + b"]" * 3000
        peer.write(b'{"jsonrpc":"2.0","id":1,"method":"m","params":%s}' % deep)
        assert (await peer.heard())["error"]["code"] == jsonrpc.INTERNAL_ERROR
        peer.leave()


@pytest.mark.parametrize(
    ("ident", "named"),
    [
        (b"7", b"7"),
        (b"7", b"7.0"),
        (b'"x"', b'"x"'),
        (b'"caf\\u00e9"', '"café"'.encode()),
        ('"café"'.encode(), b'"caf\\u00e9"'),
    ],
)
async def test_a_request_that_is_taken_back_is_answered_as_cancelled(
    ident: bytes, named: bytes
) -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        inbound = await tasks.start(serve, connection, forever)
        taken_back = b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%s}}'
        peer.write(b'{"jsonrpc":"2.0","id":%s,"method":"m"}' % ident, taken_back % named)
        line = await peer.line()
        assert line.startswith(b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32800,' % ident)
        assert len(inbound) == 0
        peer.leave()


ODD = [b"{}", b"null", b"[]", b'{"requestId":null}', b'{"requestId":[7]}', b'{"requestId":"7"}']


@pytest.mark.parametrize("params", [*ODD, b"[" * 2000 + b"]" * 2000, b'{"requestId":8}'])
async def test_taking_back_what_is_not_open_does_nothing(params: bytes) -> None:
    let_go = anyio.Event()

    async def held(method: str, params: Any) -> Any:
        await let_go.wait()
        return "done"

    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        await tasks.start(serve, connection, held)
        peer.say({"id": 7, "method": "m"})
        peer.write(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":%s}' % params)
        await connection.caught_up(5)
        let_go.set()
        assert await peer.heard() == {"id": 7, "result": "done"}
        peer.leave()


async def test_an_id_that_is_open_is_refused_and_its_first_request_answered() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        inbound = await tasks.start(serve, connection, forever)
        peer.say({"id": 1, "method": "m"}, {"id": 1, "method": "m"})
        refused = await peer.heard()
        assert (refused["id"], refused["error"]["code"]) == (1, jsonrpc.INVALID_REQUEST)
        assert len(inbound) == 1
        inbound.cancel_all()
        assert (await peer.heard())["error"]["code"] == jsonrpc.REQUEST_CANCELLED
        peer.leave()


async def test_an_id_is_free_again_once_it_was_answered() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        await tasks.start(serve, connection, echo)
        for _ in range(3):
            peer.say({"id": 1, "method": "m"})
            assert (await peer.heard())["result"]["method"] == "m"
        peer.leave()


async def test_slow_requests_do_not_hold_up_the_others() -> None:
    async def some(method: str, params: Any) -> Any:
        if method == "slow":
            await anyio.sleep_forever()
        return method

    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        inbound = await tasks.start(serve, connection, some)
        peer.say({"id": 1, "method": "slow"}, {"id": 2, "method": "quick"})
        assert await peer.heard() == {"id": 2, "result": "quick"}
        inbound.cancel_all()
        assert (await peer.heard())["id"] == 1
        peer.leave()


async def test_every_open_request_is_answered_when_all_are_taken_back() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        inbound = await tasks.start(serve, connection, forever)
        peer.say(*({"id": n, "method": "m"} for n in range(20)))
        await connection.caught_up(5)
        assert len(inbound) == 20
        inbound.cancel_all()
        answers = [await peer.heard() for _ in range(20)]
        assert sorted(answer["id"] for answer in answers) == list(range(20))
        assert {answer["error"]["code"] for answer in answers} == {jsonrpc.REQUEST_CANCELLED}
        peer.leave()
