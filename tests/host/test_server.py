"""The host's pipes: what a host writes never ends the daemon, every frame goes out whole."""

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from bridge.errors import BridgeError
from bridge.host import responses, server
from bridge.host.server import EVENTS, HostServer
from bridge.io.pipes import FdReader, FdWriter
from bridge.wire import packets
from bridge.wire.codec import Raw
from bridge.wire.packets import PacketFramer

pytestmark = pytest.mark.anyio


class Speaking:
    """A server whose writer runs, and the host's ends of its pipes."""

    def __init__(self) -> None:
        self._in, into = os.pipe()
        out_of, out = os.pipe()
        self.stdin, self.stdout = FdWriter(into), FdReader(out_of)
        self.writer = FdWriter(out)
        self.reader = FdReader(self._in)
        self.taps: list[tuple[str, bytes]] = []
        self.server = HostServer(self.writer, tap=lambda way, body: self.taps.append((way, body)))
        self.requests: list[dict[str, Any]] = []
        self.prefixed = True
        self._framer = PacketFramer()
        self._bodies: list[bytes] = []

    def say(self, *values: Any, prefixed: bool = True) -> None:
        self.prefixed = prefixed
        for value in values:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.stdin.post(*packets.frame(body, prefixed=prefixed))

    async def run(self) -> None:
        """Serves to the end of input."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.server.run, self.reader, self.requests.append)
            await self.stdin.drained()
            self.stdin.close()

    async def body(self) -> bytes:
        while not self._bodies:
            data = await self.stdout.receive()
            assert data
            self._bodies.extend(self._framer.feed(data))
        return self._bodies.pop(0)

    async def frame(self) -> dict[str, Any]:
        return json.loads(await self.body())


@asynccontextmanager
async def speaking() -> AsyncGenerator[Speaking]:
    both = Speaking()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(both.writer.run)
            tasks.start_soon(both.stdin.run)
            try:
                yield both
            finally:
                tasks.cancel_scope.cancel()
                for end in (both.writer, both.stdin, both.stdout, both.reader):
                    end.close()


NOT_REQUESTS = [
    b"",
    b"not json",
    b"[]",
    b"42",
    b"null",
    b'"text"',
    b"true",
    b"\xff\xfe",
    b"[" * 100_000,
    {},
    {"operation": None},
    {"operation": 7},
    {"op": "prompt"},
]


@pytest.mark.parametrize("prefixed", [True, False])
async def test_what_is_no_request_is_refused_and_the_stream_stays_in_step(prefixed: bool) -> None:
    bad = [value for value in NOT_REQUESTS if prefixed or value != b""]
    async with speaking() as host:
        host.say(*bad, {"id": 1, "operation": "status"}, prefixed=prefixed)
        await host.run()
        for _ in bad:
            refused = await host.frame()
            assert refused["ok"] is False
            assert (refused["id"], refused["code"]) == (None, "invalid_request")
            assert refused["error"]
        assert host.requests == [{"id": 1, "operation": "status"}]


async def test_what_is_no_object_is_called_by_its_name_in_json() -> None:
    values = {"array": [], "string": "x", "boolean": True, "null": None, "number": 1.5}
    async with speaking() as host:
        host.say(*values.values())
        await host.run()
        for kind in values:
            assert (await host.frame())["error"] == f"the packet is a JSON {kind}, not an object"


@pytest.mark.parametrize("ident", [3, "three", 3.5, -1, 2**70, "\ud83d"])
async def test_a_refusal_names_the_id_if_it_could_be_read(ident: Any) -> None:
    async with speaking() as host:
        host.say({"id": ident}, {"id": ident, "operation": 1})
        await host.run()
        assert (await host.frame())["id"] == ident
        assert (await host.frame())["id"] == ident


@pytest.mark.parametrize("ident", [[], {}, True, False, [1], float("nan"), float("inf")])
async def test_an_id_that_is_neither_text_nor_number_is_refused(ident: Any) -> None:
    async with speaking() as host:
        host.say({"id": ident, "operation": "status"})
        await host.run()
        refused = await host.frame()
        assert (refused["id"], refused["code"]) == (None, "invalid_request")
        assert host.requests == []


@pytest.mark.parametrize("ident", [0, "", "a", 1.5])
async def test_an_id_in_flight_is_refused_until_it_was_answered(ident: Any) -> None:
    request = {"id": ident, "operation": "status"}
    async with speaking() as host:
        host.say(request, request, request)
        await host.run()
        assert host.requests == [request]
        for _ in range(2):
            refused = await host.frame()
            assert (refused["id"], refused["code"]) == (ident, "invalid_request")
        host.server.send({"id": ident, "ok": True})
        assert await host.frame() == {"id": ident, "ok": True}
        host.server._take(json.dumps(request).encode(), host.requests.append)
        assert host.requests == [request] * 2


async def test_requests_without_an_id_are_never_in_each_other_s_way() -> None:
    async with speaking() as host:
        host.say({"operation": "status"}, {"id": None, "operation": "status"})
        await host.run()
        assert len(host.requests) == 2


@pytest.mark.parametrize("size", [packets.CEILING + 1, 200 << 20, (1 << 56) - 1])
async def test_a_prefix_over_the_ceiling_is_refused_and_ends_the_reading(size: int) -> None:
    async with speaking() as host:
        host.say({"id": 1, "operation": "status"})
        host.stdin.post(size.to_bytes(8, "big"))
        await host.server.run(host.reader, host.requests.append)
        refused = await host.frame()
        assert (refused["id"], refused["code"]) == (None, "invalid_request")
        assert str(size) in refused["error"]
        assert len(host.requests) == 1


async def test_the_last_line_may_lack_its_end_and_a_torn_packet_is_dropped() -> None:
    async with speaking() as host:
        host.stdin.post(b'{"operation":"status"}')
        await anyio.wait_all_tasks_blocked()
        await host.run()
        assert host.requests == [{"operation": "status"}]
    async with speaking() as host:
        host.stdin.post(*packets.frame(b'{"operation":"status"}', prefixed=True), b"\0\0")
        await anyio.wait_all_tasks_blocked()
        await host.run()
        assert len(host.requests) == 1


@pytest.mark.parametrize(("prefixed", "first"), [(True, b"\0"), (False, b"{")])
async def test_the_answer_comes_in_the_framing_of_the_question(
    prefixed: bool, first: bytes
) -> None:
    async with speaking() as host:
        host.say({"id": 1, "operation": "status"}, prefixed=prefixed)
        await host.run()
        host.server.send({"id": 1, "ok": True, "result": {"text": "é\u2028\u0085"}})
        data = await host.stdout.receive()
        assert data[:1] == first
        assert "\u2028".encode() not in data
        host._bodies.extend(host._framer.feed(data))
        assert (await host.frame())["result"]["text"] == "é\u2028\u0085"


async def test_events_are_counted_and_only_those_asked_for_are_sent() -> None:
    async with speaking() as host:
        host.say({"id": 1, "operation": "status"})
        await host.run()
        host.server.event("update", "", 1, {"a": 1})
        assert host.server.subscribe(["turn", "update", "nonsense"]) == ["update", "turn"]
        assert host.server.wants("update")
        assert not host.server.wants("stderr")
        host.server.event("stderr", "", None, {"text": "no"})
        host.server.event("update", "s", 3, {"update": Raw(b'{"n": 1.0}')})
        host.server.update("", None, Raw(b"{}"), replay=True)
        host.server.event("turn", "s", 3, {"state": "ended"})
        first = await host.body()
        assert first == b'{"event":"update","session":"s","turn":3,"seq":1,"update":{"n": 1.0}}'
        replayed = await host.frame()
        assert (replayed["replay"], replayed["turn"], replayed["seq"]) == (True, None, 2)
        assert (await host.frame())["seq"] == 3


async def test_every_event_there_is_can_be_subscribed() -> None:
    async with speaking() as host:
        assert host.server.subscribe(list(reversed(EVENTS))) == list(EVENTS)


async def test_an_answer_that_is_too_large_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "CEILING", 2000)
    monkeypatch.setattr(responses, "CUT_REPLY", 100)
    monkeypatch.setattr(responses, "_SHORT", 100)
    async with speaking() as host:
        host.say({"id": 1, "operation": "status"})
        await host.run()
        host.server.subscribe(["update"])
        four = {"stop_reason": "end_turn", "response_metadata": {}, "update_metadata": []}
        host.server.send({"id": 1, "ok": True, "result": {"reply": "r" * 3000, **four}})
        cut = await host.frame()
        assert (cut["id"], cut["ok"], cut["code"]) == (1, False, "limit")
        assert cut["result"] == {"reply": "r" * 100, **four}
        host.server.update("s", 1, Raw(b'"' + b"u" * 3000 + b'"'), replay=False)
        event = await host.frame()
        assert (event["event"], event["session"], event["turn"]) == ("update", "s", 1)
        assert event["oversize"] > 3000
        assert "update" not in event


async def test_what_cannot_be_written_is_answered_all_the_same() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    async with speaking() as host:
        host.say({"id": 1, "operation": "status"})
        await host.run()
        host.server.subscribe(["turn"])
        host.server.send({"id": 1, "ok": True, "result": {"reply": "r", "response_metadata": deep}})
        answer = await host.frame()
        assert (answer["id"], answer["ok"], answer["code"]) == (1, False, "limit")
        assert answer["result"]["reply"] == "r"
        assert answer["result"]["response_metadata"] == {}
        host.server.event("turn", "", 1, {"state": "ended", "result": deep})
        event = await host.frame()
        assert (event["event"], event["state"], "result" in event) == ("turn", "ended", False)


async def test_a_host_that_reads_nothing_holds_agents_back_until_it_reads() -> None:
    async with speaking() as host, anyio.create_task_group() as tasks:
        host.say({"id": 1, "operation": "status"})
        await host.run()
        host.server.subscribe(["update"])
        with anyio.fail_after(5):
            await host.server.room()
        count = 0
        while host.writer.queued <= server.HIGH_WATER:
            host.server.event("update", "", 1, {"n": count, "padding": "x" * 10_000})
            count += 1
        passed: list[str] = []

        async def wait(name: str) -> None:
            await host.server.room()
            passed.append(name)

        tasks.start_soon(wait, "one")
        tasks.start_soon(wait, "two")
        await anyio.wait_all_tasks_blocked()
        assert passed == []
        assert [(await host.frame())["n"] for _ in range(count)] == list(range(count))
        await anyio.wait_all_tasks_blocked()
        assert sorted(passed) == ["one", "two"]


async def test_a_host_that_asks_without_reading_is_held_back_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "UNREAD_CEILING", 1 << 20)
    async with speaking() as host, anyio.create_task_group() as tasks:
        answer = {"ok": True, "result": "x" * 50_000}

        def reply(request: dict[str, Any]) -> None:
            host.requests.append(request)
            host.server.send({"id": request["id"], **answer})

        tasks.start_soon(host.server.run, host.reader, reply)
        for number in range(30_000):
            host.say({"id": number, "operation": "status"})
        await anyio.wait_all_tasks_blocked()
        held = len(host.requests)
        assert held < 15_000
        for number in range(held):
            assert (await host.frame())["id"] == number
        await anyio.wait_all_tasks_blocked()
        assert len(host.requests) > held
        tasks.cancel_scope.cancel()


async def test_a_tap_sees_the_bodies_both_ways() -> None:
    async with speaking() as host:
        host.say({"id": 1, "operation": "status"}, b"junk")
        await host.run()
        host.server.send({"id": 1, "ok": True})
        ways = [way for way, _ in host.taps]
        assert ways == ["in", "in", "out", "out"]
        assert host.taps[-1][1] == b'{"id":1,"ok":true}'


async def test_a_refusal_of_our_own_has_words_code_and_origin() -> None:
    async with speaking() as host:
        host.server.refuse("x", BridgeError("no", code="limit", origin="host"))
        host._framer = PacketFramer()
        expected = {"id": "x", "ok": False, "error": "no", "code": "limit", "origin": "host"}
        assert await host.frame() == expected
