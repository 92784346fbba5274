"""`keep_alive`: one process for many calls, replaced when it dies."""

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.mcp.service import McpProxy
from bridge.wire import codec
from tests.mcp.callers import QUICK, Silent, one_call, outcome
from tests.mcp.test_relay import note
from tests.mcp.test_stdio_channel import Lines

pytestmark = pytest.mark.anyio

KEPT = {**QUICK, "keep_alive": True}


def text(result: Any) -> str:
    return codec.decode(result)["content"][0]["text"]


@pytest.mark.parametrize("modes", [(), ("modern",)])
async def test_calls_share_one_process_that_ends_with_the_proxy(
    tmp_path: Path, modes: tuple[str, ...]
) -> None:
    lines = Lines(tmp_path, "pid", *modes)
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": KEPT})
        pids = {text(await proxy.call_tool("a", "s_echo", {})) for _ in range(4)}
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(pids.pop()), 0)


async def test_each_of_many_calls_at_once_gets_its_own_answer_and_progress(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "progress")
    callers = [Silent() for _ in range(10)]
    answers: dict[int, Any] = {}
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": KEPT})

        async def call(number: int) -> None:
            token = {"progressToken": number}
            answers[number] = await one_call(
                proxy, "s", "echo", token, callers[number], {"n": number}
            )

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(call, number)
    for number, caller in enumerate(callers):
        assert json.loads(text(answers[number])) == {"n": number}
        assert caller.told == [
            note("notifications/progress", {"progressToken": number, "progress": value})
            for value in (1, 2)
        ]


@pytest.mark.parametrize(
    "delivery, executions, expected",
    [("at-least-once", 2, "answered"), ("safe", 1, "outcome_unknown")],
)
async def test_a_death_in_mid_call_is_retried_as_the_mode_allows_on_a_new_process(
    tmp_path: Path, delivery: str, executions: int, expected: str
) -> None:
    lines = Lines(tmp_path, "die-once")
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**KEPT, "delivery": delivery}})
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
        assert outcome(result) == expected
        assert len(lines.noted) == executions
        # And it is there again for the next one.
        assert outcome(codec.decode(await proxy.call_tool("a", "s_echo", {}))) == "answered"
    assert "exit code 9" in lines.events[0]["cause"]


@pytest.mark.parametrize("delivery", ["at-least-once", "safe", "never"])
async def test_a_call_that_a_closed_stdin_did_not_take_is_made_by_a_new_process(
    tmp_path: Path, delivery: str
) -> None:
    lines = Lines(tmp_path, "close-stdin")
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**KEPT, "delivery": delivery}})
        for number in range(2):
            result = codec.decode(await proxy.call_tool("a", "s_echo", {"n": number}))
            assert json.loads(result["content"][0]["text"]) == {"n": number}
    assert len(lines.noted) == 2
    assert [event["outcome"] for event in lines.events] == ["answer", "opening", "answer"]
    assert "closed its stdin" in lines.events[1]["cause"]


async def test_a_server_that_cannot_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "refuse")
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**KEPT, "attempts": 2}})
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert "config missing: set FOO" in result["content"][0]["text"]
    assert [event["outcome"] for event in lines.events] == ["opening", "opening"]


async def test_a_timeout_tells_the_server_and_leaves_it_to_the_others(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "hang-on-request")
    policy = {**KEPT, "tools": {"echo": {"timeout": 0.3}}}
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": policy})
        result = codec.decode(await proxy.call_tool("a", "s_echo", {"hang": True}))
        assert outcome(result) == "timeout"
        assert outcome(codec.decode(await proxy.call_tool("a", "s_echo", {}))) == "answered"
    assert "cancelled" in lines.noted


@pytest.mark.parametrize("delivery", ["at-least-once", "safe"])
async def test_an_answer_over_the_limit_is_not_asked_for_again(
    tmp_path: Path, delivery: str
) -> None:
    lines = Lines(tmp_path, "big")
    async with McpProxy(lines.events.append) as proxy:
        options = {**KEPT, "delivery": delivery, "max_result_bytes": 50_000}
        proxy.mount("a", [lines.entry], {"s": options})
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
    assert outcome(result) == "mcp_failed"
    assert "max_result_bytes" in result["content"][0]["text"]
    assert len(lines.noted) == 1
    assert [event["outcome"] for event in lines.events] == ["rejected"]


async def test_a_process_that_never_opens_is_replaced(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "silent-once")
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**KEPT, "timeout": 1.5}})
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert outcome(result) == "answered"
    assert len(lines.noted) == 1


@pytest.mark.parametrize("form", ["ids-as-text", "ids-as-floats"])
async def test_an_answer_finds_its_call_in_whatever_form_its_id_is(
    tmp_path: Path, form: str
) -> None:
    lines = Lines(tmp_path, form)
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**KEPT, "timeout": 20, "attempts": 1}})
        result = codec.decode(await proxy.call_tool("a", "s_echo", {"n": 1}))
    assert json.loads(result["content"][0]["text"]) == {"n": 1}
