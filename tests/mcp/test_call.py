"""Fault injection: every failure at every step times every delivery mode, on a raw-socket server.

The number of executions and attempts, and the outcome, are exactly what MCP_PROXY.md's table says.
"""

from typing import Any

import pytest

from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp import fake
from tests.mcp.callers import QUICK, called, outcome
from tests.mcp.fake import Act, Fake

pytestmark = pytest.mark.anyio

Json = dict[str, Any]

# What can go wrong once the call has been written, and may have been executed.
LOST: dict[str, Act] = {
    "closed without a byte": fake.closes,
    "reset without a byte": fake.resets,
    "half a head": fake.sends(b"HTTP/1.1 200 OK\r\nContent-"),
    "half a body": fake.sends(fake.reply(200, '{"jsonrpc":"2.0",', length=100)),
    "half a body and a reset": fake.sends(fake.reply(200, '{"jsonrpc":', length=100), "reset"),
    "no HTTP": fake.sends(b"SMTP ready\r\n\r\n"),
    "a stream that ends": fake.sends(fake.STREAM),
    "a stream that ends in an event": fake.sends(fake.STREAM + b'data: {"jsonrpc":"2.0",'),
    "408": fake.says(408),
    "425": fake.says(425),
    "500": fake.says(500),
    "500 with an error of no id": fake.says(500, fake.error(None, -32603)),
    "502 with a page": fake.says(502, "<html>bad gateway</html>"),
    "504": fake.says(504),
    "202 without an answer": fake.says(202, b""),
    "200 without a body": fake.says(200, b""),
    "200 with a page": fake.says(200, "<html>log in</html>", {"Content-Type": "text/html"}),
    "broken JSON": fake.says(200, "{nope", {"Content-Type": "application/json"}),
    "an answer to another id": fake.says(200, fake.answer(999_999, {})),
    "an answer with nothing in it": fake.says(200, {"jsonrpc": "2.0", "id": 1}),
}
# What shows that it was not.
REFUSED: dict[str, Act] = {
    "429": fake.says(429, "slow down", {"Retry-After": "0"}),
    "503": fake.says(503, "busy"),
}
FINAL: dict[str, Act] = {
    "401": fake.says(401, "who?", {"WWW-Authenticate": "Bearer"}),
    "403": fake.says(403),
    "405": fake.says(405),
    "413": fake.says(413),
    "418": fake.says(418),
    "a redirect to another origin": fake.says(307, b"", {"Location": "http://127.0.0.2:9/x"}),
    "a redirect to another scheme": fake.says(308, b"", {"Location": "https://127.0.0.1/x"}),
    "a redirect that would drop the body": fake.says(302, b"", {"Location": "/other"}),
    "a redirect to no address": fake.says(307, b"", {"Location": "http://127.0.0.1:99999/x"}),
    "a redirect in circles": fake.says(307, b"", {"Location": "/mcp"}),
}
ERAS = ["legacy", "modern"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
@pytest.mark.parametrize("fault", LOST)
async def test_a_lost_answer(fault: str, delivery: str, era: str) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [fake.executing(LOST[fault])]
        result, events = await called(server, {"delivery": delivery})
    replayed = delivery == "at-least-once"
    assert server.executed["echo"] == (2 if replayed else 1)
    assert len(events) == (2 if replayed else 1)
    assert outcome(result) == ("answered" if replayed else "outcome_unknown")
    assert events[0]["outcome"] == "lost"
    assert server.opened == sorted(server.ended)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
@pytest.mark.parametrize("fault", REFUSED)
async def test_a_call_turned_away_is_made_again(fault: str, delivery: str, era: str) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [REFUSED[fault]] * 2
        result, events = await called(server, {"delivery": delivery})
    assert server.executed["echo"] == 1
    assert outcome(result) == "answered"
    assert [event["outcome"] for event in events] == ["refused", "refused", "answer"]
    assert server.opened == sorted(server.ended)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
@pytest.mark.parametrize("fault", FINAL)
async def test_what_another_attempt_would_not_change(fault: str, delivery: str, era: str) -> None:
    async with Fake(eras=(era,)).running() as server:
        server.acts["tools/call"] = [FINAL[fault]] * 6
        result, events = await called(server, {"delivery": delivery})
    assert server.executed["echo"] == 0
    assert outcome(result) == "mcp_failed"
    assert [event["outcome"] for event in events] == ["rejected"]
    assert server.opened == sorted(server.ended)


@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
@pytest.mark.parametrize(
    "fault",
    [
        fake.says(404, fake.error(None, -32001, "Session not found")),
        fake.says(404, "gone"),
        fake.says(400, "Bad Request: no valid session ID provided"),
    ],
)
async def test_a_session_that_is_lost_was_not_executed_in(fault: Act, delivery: str) -> None:
    async with Fake(eras=("legacy",)).running() as server:
        server.acts["tools/call"] = [fault]
        result, events = await called(server, {"delivery": delivery})
    assert server.executed["echo"] == 1
    assert outcome(result) == "answered"
    assert [event["outcome"] for event in events] == ["session", "answer"]
    assert server.opened == sorted(server.ended)


# The steps before the call is written: nothing was executed, whatever the fault.
OPENING = {**LOST, **REFUSED}


@pytest.mark.parametrize("delivery", ["at-least-once", "never"])
@pytest.mark.parametrize("fault", OPENING)
async def test_a_fault_at_initialize(fault: str, delivery: str) -> None:
    async with Fake(eras=("legacy",)).running() as server:
        result, events = await opening(server, "initialize", OPENING[fault], delivery)
    assert server.executed["echo"] == 1
    assert outcome(result) == "answered"
    assert [event["outcome"] for event in events[:-1]] != ["answer"]
    assert len(events) == 2
    assert server.opened == sorted(server.ended)


@pytest.mark.parametrize("delivery", ["at-least-once", "never"])
@pytest.mark.parametrize("fault", [name for name in OPENING if name not in ("200 with a page",)])
async def test_a_fault_at_initialized(fault: str, delivery: str) -> None:
    async with Fake(eras=("legacy",)).running() as server:
        result, events = await opening(
            server, "notifications/initialized", OPENING[fault], delivery
        )
    assert server.executed["echo"] == 1
    assert len(events) <= 2
    assert outcome(result) == "answered"
    assert server.opened == sorted(server.ended)


async def opening(server: Fake, step: str, act: Act, delivery: str) -> tuple[Json, list[Json]]:
    """A call whose first attempt meets a fault before the call is written."""
    events: list[Json] = []
    async with McpProxy(events.append) as proxy:
        entry = {"type": "http", "name": "s", "url": server.url, "headers": []}
        proxy.mount("a", [entry], {"s": {**QUICK, "delivery": delivery}})
        await proxy.list_tools("a")
        await server.until(lambda: len(server.opened) == len(server.ended))
        server.acts[step] = [act]
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
        await server.until(lambda: len(server.opened) == len(server.ended))
    await server.until(lambda: server.connections == 0)
    return result, events
