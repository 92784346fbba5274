"""JSON-RPC over pipes: wire order kept, every open call settled once, whatever the peer does."""

import time
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.errors import RequestFailed
from bridge.rpc import connection as connection_module
from bridge.rpc.connection import Connection, ConnectionEnded
from bridge.wire import codec
from bridge.wire.jsonrpc import Malformed, Request, Response
from bridge.wire.lines import LineTooLong
from tests.rpc.pair import Recorder, connected

pytestmark = pytest.mark.anyio


async def run(connection: Connection, recorder: Recorder, reason: str = "it left") -> None:
    await connection.run(recorder)
    connection.end(reason)


async def test_a_result_comes_back_to_its_caller() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        tasks.start_soon(run, connection, Recorder())
        pending = [connection.start("m", {"n": n}) for n in range(3)]
        calls = [await peer.heard() for _ in range(3)]
        assert [call["params"]["n"] for call in calls] == [0, 1, 2]
        for call in reversed(calls):
            peer.say({"id": call["id"], "result": call["params"]["n"]})
        assert [await call.result() for call in pending] == [0, 1, 2]
        peer.leave()


async def test_a_request_is_on_its_way_before_anybody_waits() -> None:
    async with connected() as (connection, peer):
        connection.start("first", {})
        connection.notify("second", {})
        connection.start("third", {})
        assert [(await peer.heard())["method"] for _ in range(3)] == ["first", "second", "third"]


async def test_everything_is_handled_in_wire_order() -> None:
    order: list[str] = []
    async with connected() as (connection, peer):
        recorder = Recorder()
        recorder.came = order

        def settle(response: Response) -> None:
            order.append(f"response {response.id.decode()}")

        for _ in range(2):
            connection.call("m", {}, settle)
        peer.say(
            {"method": "a"},
            {"id": 2, "result": {}},
            {"method": "b"},
            {"id": 1, "error": {"code": 1, "message": "no"}},
            {"method": "c"},
        )
        peer.leave()
        await connection.run(recorder)
        assert order == ["a", "response 2", "b", "response 1", "c"]


@settings(max_examples=15)
@given(st.lists(st.sampled_from(["call", "text", "blank", "noise"]), max_size=30), st.data())
def test_any_chunking_delivers_the_same(kinds: list[str], data: st.DataObject) -> None:
    made = {
        "call": b'{"jsonrpc":"2.0","method":"m"}\n',
        "text": '{"jsonrpc":"2.0","method":"\u2028é🎉"}\r\n'.encode(),
        "blank": b"\n",
        "noise": b"[tool] thinking\n",
    }
    expected = {"call": "m", "text": "\u2028é🎉", "noise": "noise"}
    stream = b"".join(made[kind] for kind in kinds)
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))

    async def main() -> list[Any]:
        recorder = Recorder()
        async with connected() as (connection, peer), anyio.create_task_group() as tasks:
            tasks.start_soon(run, connection, recorder)
            for start, end in zip([0, *places], [*places, len(stream)], strict=True):
                peer.writer.post(stream[start:end])
                await anyio.lowlevel.checkpoint()
            peer.leave()
        return ["noise" if isinstance(item, Malformed) else item for item in recorder.came]

    assert anyio.run(main) == [expected[kind] for kind in kinds if kind != "blank"]


async def test_the_end_of_input_settles_every_open_call_oldest_first() -> None:
    settled: list[bytes] = []
    async with connected() as (connection, peer):
        for _ in range(3):
            connection.call("m", {}, lambda response: settled.append(response.id))
        peer.say({"id": 2, "result": {}})
        peer.leave()
        await run(connection, Recorder(), "gone for good")
        assert settled == [b"2", b"1", b"3"]
        late = connection.start("m", {})
        with pytest.raises(ConnectionEnded, match="gone for good"):
            await late.result()
        connection.end("another reason")
        assert connection.ended == "gone for good"


async def test_a_call_made_while_the_end_settles_the_others_is_settled_too() -> None:
    settled: list[bytes] = []
    async with connected() as (connection, peer):

        def again(response: Response) -> None:
            settled.append(response.id)
            if len(settled) < 3:
                connection.call("m", {}, again)

        connection.call("m", {}, again)
        peer.leave()
        await run(connection, Recorder())
        assert settled == [b"1", b"2", b"3"]


async def test_an_error_is_raised_with_all_that_was_said() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        tasks.start_soon(run, connection, Recorder())
        call = connection.start("m", {})
        peer.say({"id": 1, "error": {"code": -5, "message": "no", "data": {"details": "why"}}})
        with pytest.raises(RequestFailed) as caught:
            await call.result()
        error = caught.value
        assert (error.code, error.message, error.data) == (-5, "no", {"details": "why"})
        peer.leave()


@pytest.mark.parametrize("ident", [b"1", b'"1"', b"1.0"])
async def test_an_answer_whose_id_changed_its_type_is_still_ours(ident: bytes) -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        recorder = Recorder()
        tasks.start_soon(run, connection, recorder)
        call = connection.start("m", {})
        peer.write(b'{"jsonrpc":"2.0","id":%s,"result":7}' % ident)
        assert await call.result() == 7
        peer.leave()
    assert recorder.came == []


@pytest.mark.parametrize("ident", [b"9", b'"x"', b"null", b'""', b"1.5"])
async def test_an_answer_to_nothing_is_noise(ident: bytes) -> None:
    async with connected() as (connection, peer):
        recorder = Recorder()
        connection.call("m", {}, lambda _: None)
        peer.write(b'{"jsonrpc":"2.0","id":%s,"result":7}' % ident)
        peer.leave()
        await connection.run(recorder)
    assert [type(item) for item in recorder.came] == [Malformed]


async def test_an_answer_given_twice_counts_once() -> None:
    settled: list[bytes] = []
    async with connected() as (connection, peer):
        recorder = Recorder()
        connection.call("m", {}, lambda response: settled.append(bytes(response.result)))
        peer.say({"id": 1, "result": "first"}, {"id": 1, "result": "second"})
        peer.leave()
        await connection.run(recorder)
    assert settled == [b'"first"']
    assert [type(item) for item in recorder.came] == [Malformed]


async def test_a_broken_request_is_refused_by_its_id() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        tasks.start_soon(run, connection, Recorder())
        peer.write(b'{"jsonrpc":"2.0","id":"a\\/b","method":5}')
        assert (await peer.line()).startswith(b'{"jsonrpc":"2.0","id":"a\\/b","error":')
        peer.leave()


async def test_a_caller_that_is_cancelled_takes_its_request_back() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        recorder = Recorder()
        tasks.start_soon(run, connection, recorder)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as callers:
                callers.start_soon(connection.request, "m", {})
                assert (await peer.heard())["id"] == 1
                scope.cancel()
        taken_back = await peer.heard()
        assert taken_back == {"method": "$/cancel_request", "params": {"requestId": 1}}
        peer.say({"id": 1, "result": "too late"})
        peer.leave()
    assert [type(item) for item in recorder.came] == [Malformed]


async def test_what_acts_on_a_result_does_so_before_the_next_message() -> None:
    async with connected() as (connection, peer):
        recorder = Recorder()
        connection.start("m", {}, recorder.came.append)
        peer.say({"method": "before"}, {"id": 1, "result": "it"}, {"method": "after"})
        peer.leave()
        await connection.run(recorder)
    assert recorder.came == ["before", "it", "after"]


async def test_what_acts_on_a_result_may_refuse_it() -> None:
    def refuse(_: object) -> None:
        raise RequestFailed(None, "not like this")

    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        tasks.start_soon(run, connection, Recorder())
        call = connection.start("m", {}, refuse)
        peer.say({"id": 1, "result": {}})
        with pytest.raises(RequestFailed, match="not like this"):
            await call.result()
        peer.leave()


async def test_params_that_cannot_be_written_leave_no_trace() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    async with connected() as (connection, peer):
        with pytest.raises(codec.JSONError):
            connection.start("m", deep)
        connection.reply(b"7", deep)
        refused = await peer.heard()
        assert (refused["id"], refused["error"]["code"]) == (7, -32603)
        assert connection._open == {}


@pytest.mark.parametrize("depth", [900, 950, 980, 985, 990, 995, 2000])
async def test_a_result_that_cannot_be_read_is_an_error_of_its_own(depth: int) -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        tasks.start_soon(run, connection, Recorder())
        call = connection.start("m", {})
        peer.write(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * depth + b"]" * depth + b"}")
        outcome: Any = None
        try:
            outcome = await call.result()
        except codec.JSONError as error:
            outcome = error
        assert isinstance(outcome, list if depth < 950 else list | codec.JSONError)
        assert isinstance(outcome, codec.JSONError if depth > 1000 else list | codec.JSONError)
        peer.leave()


async def test_a_line_over_the_ceiling_ends_the_reading() -> None:
    async with connected(ceiling=300_000) as (connection, peer):
        recorder = Recorder()
        peer.say({"method": "fine"})
        peer.write(b"x" * 400_000)
        with pytest.raises(LineTooLong):
            await connection.run(recorder)
    assert recorder.came == ["fine"]


async def test_the_last_line_may_lack_its_end() -> None:
    async with connected() as (connection, peer):
        recorder = Recorder()
        peer.writer.post(b'{"jsonrpc":"2.0","method":"last"}')
        peer.leave()
        await connection.run(recorder)
    assert recorder.came == ["last"]


async def test_a_handler_without_room_holds_the_peer_back_and_loses_nothing() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        recorder = Recorder()
        recorder.roomy = anyio.Event()
        tasks.start_soon(run, connection, recorder)
        line = b'{"jsonrpc":"2.0","method":"m","params":"%s"}' % (b"x" * 1000)
        for _ in range(2000):
            peer.write(line)
        await anyio.wait_all_tasks_blocked()
        held = len(recorder.came)
        assert peer.writer.queued > 1_000_000
        assert 0 < held < 1000
        recorder.roomy.set()
        await peer.writer.drained()
        peer.leave()
    assert len(recorder.came) == 2000


async def test_a_flood_of_tiny_lines_is_taken_in_small_pieces() -> None:
    """A megabyte of such lines at once would keep the loop from all else for seconds."""

    class Slow(Recorder):
        """It takes its time over each piece."""

        def __init__(self) -> None:
            super().__init__()
            self.pieces: list[int] = []
            self._begins = True

        def noise(self, noise: Malformed) -> None:
            super().noise(noise)
            if self._begins:
                time.sleep(0.025)
            self._begins = False

        async def room(self) -> None:
            self.pieces.append(len(self.came) - sum(self.pieces))
            self._begins = True

    recorder = Slow()
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        peer.write(*[b"y"] * 65536)
        tasks.start_soon(connection.run, recorder)
        await peer.writer.drained()
        peer.leave()
    assert len(recorder.came) == 65536
    assert all(size <= 32768 // 2**n + 1 for n, size in enumerate(recorder.pieces[:6]))


async def test_a_peer_that_is_read_quickly_is_read_in_large_pieces() -> None:
    sizes = [connection_module._paced(size, 0.001) for size in (2048, 30_000, 65536)]
    assert sizes == [4096, 60_000, 65536]
    assert [connection_module._paced(size, 1) for size in (2048, 65536)] == [2048, 32768]


async def test_a_tap_sees_every_byte_both_ways() -> None:
    seen: list[tuple[str, bytes]] = []
    async with connected(tap=lambda way, data: seen.append((way, data))) as (connection, peer):
        connection.call("m", {}, lambda _: None)
        connection.notify("n", {})
        connection.reply(b"5", {})
        connection.fail(b"6", -1, "no")
        sent = b"".join([await peer.line() + b"\n" for _ in range(4)])
        written = b'noise\n\n{"jsonrpc":"2.0","id":1,"result":{}}\r\nrest'
        peer.writer.post(written)
        peer.leave()
        await connection.run(Recorder())
    assert b"".join(data for way, data in seen if way == "in") == written
    assert b"".join(data for way, data in seen if way == "out") == sent


async def test_what_a_handler_takes_at_first_sight_goes_no_further() -> None:
    class Quick(Recorder):
        def fast(self, line: bytes) -> bool:
            return line.startswith(b"quick")

    async with connected() as (connection, peer):
        recorder = Quick()
        peer.writer.post(b"quick one\n\nquick two")
        peer.leave()
        await connection.run(recorder)
    assert recorder.came == []


async def test_being_caught_up_is_having_seen_all_that_was_written() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        recorder = Recorder()
        tasks.start_soon(run, connection, recorder)
        await connection.caught_up(5)
        for _ in range(100):
            peer.say({"method": "m"})
        await connection.caught_up(5)
        assert recorder.came == ["m"] * 100
        peer.leave()
    await connection.caught_up(5)


async def test_catching_up_with_a_reader_held_back_is_bounded() -> None:
    async with connected() as (connection, peer), anyio.create_task_group() as tasks:
        recorder = Recorder()
        recorder.roomy = anyio.Event()
        tasks.start_soon(run, connection, recorder)
        peer.say({"method": "m"})
        with anyio.fail_after(5):
            await connection.caught_up(0.05)
        recorder.roomy.set()
        peer.leave()


async def test_requests_reach_the_handler_with_their_bytes() -> None:
    async with connected() as (connection, peer):
        recorder = Recorder()
        peer.write(b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"n": 1.0}}')
        peer.leave()
        await connection.run(recorder)
    (request,) = recorder.came
    assert isinstance(request, Request)
    assert (request.id, bytes(request.params)) == (b'"a"', b'{"n": 1.0}')
