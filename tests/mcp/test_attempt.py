"""Attempts: what they carry, how they end, and what is told of them."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.errors import RequestFailed
from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp import fake
from tests.mcp.callers import ATTEMPT, FAILURE, KEY, QUICK, called, hub_of, one_call, outcome
from tests.mcp.fake import Act, Fake, Seen
from tests.mcp.test_catalogue import entry
from tests.raw import Peer

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
ERAS = ["legacy", "modern"]


@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
async def test_a_server_that_is_not_there_yet_is_tried_until_it_is(delivery: str) -> None:
    server = Fake(eras=("legacy",))
    async with server.running():
        port = server.port
    events: list[Json] = []
    refused = anyio.Event()

    def on_event(event: Json) -> None:
        events.append(event)
        refused.set()

    async with McpProxy(on_event) as proxy, anyio.create_task_group() as tasks:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
        proxy.mount("a", [entry], {"s": {"delivery": delivery, "backoff": {"initial": 0.01}}})

        async def come_up() -> None:
            await refused.wait()
            async with server.running(port):
                await answered_once.wait()

        answered_once = anyio.Event()
        tasks.start_soon(come_up)
        # At the server's own URL a call needs no listing first.
        result = codec.decode(await one_call(proxy, "s", "echo"))
        answered_once.set()
    assert outcome(result) == "answered"
    assert events[0]["outcome"] == "connect"
    assert server.executed["echo"] == 1


async def test_the_last_attempt_says_so() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.executing(fake.says(500, "out of paper"))] * 9
        result, events = await called(server, {})
    assert [event["attempt"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert server.executed["echo"] == 6
    failure = result["_meta"][FAILURE]
    assert (failure["code"], failure["attempts"]) == ("mcp_failed", 6)
    assert result["isError"] is True
    (block,) = result["content"]
    for word in ("'echo'", "'s'", "6 attempts", "HTTP 500", "out of paper", "unknown"):
        assert word in block["text"]


async def test_outcome_unknown_is_said_in_words_too() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.executing(fake.closes)]
        result, _ = await called(server, {"delivery": "safe"})
    (block,) = result["content"]
    assert "The outcome is unknown" in block["text"]
    assert "1 attempt:" in block["text"]


@pytest.mark.parametrize(
    "annotations, delivery, executions, expected",
    [
        ({"readOnlyHint": True}, "safe", 2, "answered"),
        ({"idempotentHint": True}, "safe", 2, "answered"),
        ({"destructiveHint": True}, "at-least-once", 1, "outcome_unknown"),
        ({"idempotentHint": False}, "at-least-once", 1, "outcome_unknown"),
        ({"readOnlyHint": True, "idempotentHint": False}, "at-least-once", 2, "answered"),
        ({"readOnlyHint": True}, "never", 1, "outcome_unknown"),
        ({"readOnlyHint": "yes", "idempotentHint": 1}, "safe", 1, "outcome_unknown"),
        ({"title": "t"}, "at-least-once", 2, "answered"),
    ],
)
async def test_a_tools_own_word_counts(
    annotations: Json, delivery: str, executions: int, expected: str
) -> None:
    tool = {**fake.TOOL, "annotations": annotations}
    async with Fake(eras=("legacy",), tools=[tool]).running() as server:
        server.acts["tools/call"] = [fake.executing(fake.closes)]
        result, _ = await called(server, {"delivery": delivery})
    assert server.executed["echo"] == executions
    assert outcome(result) == expected


@pytest.mark.parametrize(
    "listings, executions", [(2, 1), (9, 2)], ids=["listed in time", "never listed"]
)
async def test_a_tool_that_was_not_listed_is_before_it_may_be_executed_again(
    listings: int, executions: int
) -> None:
    tool = {**fake.TOOL, "annotations": {"destructiveHint": True}}
    async with Fake(eras=("legacy",), tools=[tool]).running() as server:
        server.acts["tools/list"] = [fake.says(500)] * listings
        server.acts["tools/call"] = [fake.executing(fake.closes)]
        async with McpProxy(lambda event: None) as proxy:
            proxy.mount("a", [entry("s", server)], {"s": QUICK})
            await hub_of(proxy).listed(20)
            result = codec.decode(await one_call(proxy, "s", "echo"))
    assert server.executed["echo"] == executions
    assert outcome(result) == ("outcome_unknown" if executions == 1 else "answered")


async def test_a_tools_policy_goes_before_its_servers() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.executing(fake.closes)]
        result, _ = await called(server, {"tools": {"echo": {"delivery": "never"}}})
    assert server.executed["echo"] == 1
    assert outcome(result) == "outcome_unknown"


@pytest.mark.parametrize("era", ERAS)
async def test_all_attempts_of_a_call_carry_one_key_and_their_number(era: str) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [fake.closes, fake.says(503)]
        await called(server, {})
    metas = [seen.meta for seen in server.steps("tools/call")]
    assert [meta[ATTEMPT] for meta in metas] == [1, 2, 3]
    assert len({meta[KEY] for meta in metas}) == 1
    assert len({seen.id for seen in server.seen if seen.id is not None}) == len(
        [seen for seen in server.seen if seen.id is not None]
    )


async def test_two_calls_have_two_keys() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        await called(server, {})
        await called(server, {})
    first, second = [seen.meta[KEY] for seen in server.steps("tools/call")]
    assert first != second


async def test_each_attempt_has_a_session_of_its_own_and_ends_it() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.closes, fake.says(500), fake.says(429)]
        await called(server, {})
    calls = [seen.headers["mcp-session-id"] for seen in server.steps("tools/call")]
    assert len(set(calls)) == 4
    assert sorted(server.ended) == sorted(server.opened)
    assert len(set(server.ended)) == len(server.ended)


@pytest.mark.parametrize(
    "farewell", [fake.says(500), fake.says(405), fake.closes, fake.resets, fake.hangs]
)
async def test_a_farewell_that_fails_neither_fails_nor_repeats_the_call(farewell: Act) -> None:
    events: list[Json] = []
    async with Fake(eras=("legacy",)).running() as server, McpProxy(events.append) as proxy:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
        proxy.mount("a", [entry])
        await proxy.list_tools("a")
        await server.until(lambda: len(server.ended) == 1)
        server.acts["DELETE"] = [farewell]
        # The answer is there while the farewell hangs.
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
        await server.until(lambda: len(server.steps("DELETE")) == 2)
    assert outcome(result) == "answered"
    assert server.executed["echo"] == 1
    assert len(server.steps("DELETE")) == len(server.opened) == 2


async def test_an_answer_is_not_kept_waiting_by_a_stream_that_stays_open() -> None:
    async def answers_and_stays(server: Fake, peer: Peer, seen: Seen) -> None:
        result = server.answer_to(seen)
        await peer.send(fake.STREAM + fake.event(fake.answer(seen.id, result)))
        await fake.silence(peer)

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [answers_and_stays]
        result, events = await called(server, {})
    assert outcome(result) == "answered"
    assert len(events) == 1


@pytest.mark.parametrize("status", [200, 400, 404, 429, 500, 503])
@pytest.mark.parametrize("era", ERAS)
async def test_an_error_with_our_id_is_an_answer_at_any_status(status: int, era: str) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [fake.refuses(-32050, status)]
        with pytest.raises(RequestFailed) as caught:
            await called(server, {})
    assert caught.value.code == -32050
    assert len(server.steps("tools/call")) == 1


async def test_a_tools_own_error_is_an_answer() -> None:
    failed = {"isError": True, "content": [{"type": "text", "text": "no such row"}]}
    async with Fake(eras=("legacy",), result=failed).running() as server:
        result, events = await called(server, {})
    assert result == failed
    assert len(events) == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["body", "stream"])
async def test_a_result_over_the_ceiling_is_refused_once(era: str, way: str) -> None:
    huge = {"content": [{"type": "text", "text": "x" * 5000}]}

    async def streams(server: Fake, peer: Peer, seen: Seen) -> None:
        found = fake.answer(seen.id, server.answer_to(seen))
        await peer.send(fake.STREAM + fake.event(found))
        await peer.close()

    async with Fake(eras=(era,), result=huge).running() as server:
        if way == "stream":
            server.acts["tools/call"] = [streams]
        result, events = await called(server, {"max_result_bytes": 4000})
    assert outcome(result) == "mcp_failed"
    assert "max_result_bytes" in result["content"][0]["text"]
    assert [event["outcome"] for event in events] == ["rejected"]
    assert server.executed["echo"] == 1


@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
@pytest.mark.parametrize("era", ERAS)
async def test_the_calls_own_timeout_is_not_replayed(era: str, delivery: str) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [fake.executing(fake.hangs)]
        result, events = await called(
            server, {"tools": {"echo": {"timeout": 0.2}}, "delivery": delivery}
        )
    assert outcome(result) == "timeout"
    assert [event["outcome"] for event in events] == ["timeout"]
    assert server.executed["echo"] == 1
    if era == "legacy":
        (cancelled,) = server.steps("notifications/cancelled")
        (call,) = server.steps("tools/call")
        assert cancelled.message["params"]["requestId"] == call.id
        assert cancelled.headers["mcp-session-id"] == call.headers["mcp-session-id"]
        assert sorted(server.ended) == sorted(server.opened)


async def test_a_session_that_does_not_open_in_time_is_tried_again() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        events: list[Json] = []
        async with McpProxy(events.append) as proxy:
            entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
            policy = {**QUICK, "tools": {"echo": {"timeout": 0.2}}, "delivery": "never"}
            proxy.mount("a", [entry], {"s": policy})
            await proxy.list_tools("a")
            server.acts["initialize"] = [fake.hangs]
            result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
    assert outcome(result) == "answered"
    assert [event["outcome"] for event in events] == ["opening", "answer"]


async def test_progress_extends_the_timeout_up_to_the_total() -> None:
    beats = 0

    async def gets_on(server: Fake, peer: Peer, seen: Seen) -> None:
        nonlocal beats
        await peer.send(fake.STREAM)
        while True:
            beats += 1
            params = {"progressToken": seen.meta["progressToken"], "progress": beats}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await peer.send(fake.event(note))
            await anyio.sleep(0.05)

    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [gets_on]
        policy = {"timeout": 0.3, "total_timeout": 0.9}
        events: list[Json] = []
        async with McpProxy(events.append) as proxy:
            entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
            proxy.mount("a", [entry], {"s": policy})
            result = codec.decode(await one_call(proxy, "s", "echo", {"progressToken": "t"}))
    assert outcome(result) == "timeout"
    assert beats * 0.05 > 0.3
    assert len(events) == 1


async def test_a_wait_that_the_total_leaves_no_time_for_is_not_begun() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.says(503, "busy", {"Retry-After": "30"})]
        result, events = await called(server, {"total_timeout": 5})
    assert outcome(result) == "mcp_failed"
    assert "total_timeout" in result["content"][0]["text"]
    assert len(events) == 1


async def test_retry_after_is_waited_for() -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fake.says(503, "busy", {"Retry-After": "0.3"})]
        _, events = await called(server, {})
    assert events[1]["waited"] >= 0.3
    assert events[0]["status"] == 503


async def test_an_event_tells_of_each_attempt_and_of_no_secret() -> None:
    async def echoes(server: Fake, peer: Peer, seen: Seen) -> None:
        await peer.send(fake.reply(500, f"your key was {seen.headers['authorization']}"))

    events: list[Json] = []
    async with Fake(eras=("legacy",)).running() as server, McpProxy(events.append) as proxy:
        headers = [{"name": "Authorization", "value": "Bearer s3cret-value"}]
        entry = {"type": "http", "name": "s", "url": server.url, "headers": headers}
        proxy.mount("a", [entry], {"s": QUICK})
        await proxy.list_tools("a")
        server.acts["tools/call"] = [echoes] * 6
        result = await proxy.call_tool("a", "s_echo", {"password": "hunter22"})
    assert len(events) == 6
    assert b"s3cret" not in bytes(result)
    text = repr(events)
    assert "s3cret" not in text
    assert "hunter22" not in text
    first = events[0]
    assert (first["event"], first["session"], first["server"]) == ("mcp", "a", "s")
    assert (first["tool"], first["attempt"], first["era"]) == ("echo", 1, "legacy")
    assert first["cause"].startswith("HTTP 500: your key was")
    assert first["seconds"] >= 0
    assert first["started"] > 0


async def test_parallel_calls_are_bounded_and_run_at_once_up_to_that() -> None:
    release = anyio.Event()
    server = Fake(eras=("legacy",))

    async def waits(server: Fake, peer: Peer, seen: Seen) -> None:
        await release.wait()
        await server.behave(peer, seen)

    async with server.running(), McpProxy(lambda event: None) as proxy:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
        proxy.mount("a", [entry], {"s": {"max_parallel": 3}})
        await proxy.list_tools("a")
        server.acts["tools/call"] = [waits] * 3
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(proxy.call_tool, "a", "s_echo", {})
            await server.until(lambda: len(server.steps("tools/call")) == 3)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert len(server.steps("initialize")) == 1 + 3
            release.set()
    assert server.executed == {"echo": 8}


async def test_waiting_for_a_slot_counts_against_the_total() -> None:
    async with Fake(eras=("legacy",)).running() as server, McpProxy(lambda event: None) as proxy:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
        proxy.mount("a", [entry], {"s": {"max_parallel": 1, "total_timeout": 0.2}})
        await proxy.list_tools("a")
        slots = hub_of(proxy).servers["s"].slots
        await slots.acquire()
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
        slots.release()
        assert outcome(result) == "mcp_failed"
        assert outcome(codec.decode(await proxy.call_tool("a", "s_echo", {}))) == "answered"
    assert server.executed == {"echo": 1}
