"""stdio servers: a process an attempt, deaths told with their last words, nothing left running."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from bridge.mcp.call import moment
from bridge.mcp.service import McpProxy
from bridge.mcp.stdio_channel import StdioChannel
from bridge.wire import codec
from tests.mcp.callers import FAILURE, QUICK, Silent, hub_of, one_call, outcome
from tests.mcp.test_relay import note

pytestmark = pytest.mark.anyio

Json = dict[str, Any]
SERVER = Path(__file__).with_name("line_server.py")


class Lines:
    """A proxy's stdio server, and the file its calls are noted in."""

    def __init__(self, path: Path, *modes: str, env: Json | None = None) -> None:
        self.calls_file = path / "calls"
        pairs = {"CALLS": str(self.calls_file), **(env or {})}
        self.entry = {
            "name": "s",
            "command": sys.executable,
            "args": ["-I", "-S", str(SERVER), *modes],
            "env": [{"name": name, "value": value} for name, value in pairs.items()],
        }
        self.events: list[Json] = []

    async def call(self, options: Json | None = None, arguments: Json | None = None) -> Json:
        async with McpProxy(self.events.append) as proxy:
            proxy.mount("a", [self.entry], {"s": {**QUICK, **(options or {})}})
            return codec.decode(await proxy.call_tool("a", "s_echo", arguments or {}))

    @property
    def noted(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.mark.parametrize("modes", [(), ("modern",), ("noise",)])
async def test_a_call_is_carried_out_by_a_process(tmp_path: Path, modes: tuple[str, ...]) -> None:
    lines = Lines(tmp_path, *modes)
    result = await lines.call(arguments={"a": [1.5, None, "é\u2028"]})
    assert json.loads(result["content"][0]["text"]) == {"a": [1.5, None, "é\u2028"]}
    assert [event["outcome"] for event in lines.events] == ["answer"]
    assert lines.events[0]["era"] == ("modern" if "modern" in modes else "legacy")


async def test_each_call_has_a_process_of_its_own(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "pid")
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry])
        pids = [
            json.loads(codec.decode(await proxy.call_tool("a", "s_echo", {}))["content"][0]["text"])
            for _ in range(3)
        ]
    assert len(set(pids)) == 3
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    "delivery, executions, expected",
    [
        ("at-least-once", 2, "answered"),
        ("safe", 1, "outcome_unknown"),
        ("never", 1, "outcome_unknown"),
    ],
)
async def test_a_death_in_mid_call_is_retried_as_the_mode_allows(
    tmp_path: Path, delivery: str, executions: int, expected: str
) -> None:
    lines = Lines(tmp_path, "die-once")
    result = await lines.call({"delivery": delivery})
    assert len(lines.noted) == executions
    assert outcome(result) == expected
    cause = lines.events[0]["cause"]
    assert "exit code 9" in cause
    assert "out of memory, really" in cause


async def test_a_death_is_told_with_its_last_words(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "die")
    result = await lines.call({"attempts": 2})
    assert outcome(result) == "mcp_failed"
    text = result["content"][0]["text"]
    assert "exit code 9" in text
    assert "out of memory, really" in text
    assert len(lines.noted) == 2


async def test_a_server_that_dies_at_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "refuse")
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**QUICK, "attempts": 3}})
        result = codec.decode(await one_call(proxy, "s", "echo"))
        catalogue = hub_of(proxy).catalogues["s"]
        assert catalogue.failure is not None
        assert "config missing: set FOO" in catalogue.failure
    text = result["content"][0]["text"]
    assert "exit code 1" in text
    assert "config missing: set FOO" in text
    assert [event["outcome"] for event in lines.events] == ["opening"] * 3


@pytest.mark.parametrize("mode", ["leave-child", "close-stdout"])
async def test_the_end_of_a_server_is_seen_whoever_holds_its_pipe(
    tmp_path: Path, mode: str
) -> None:
    lines = Lines(tmp_path, mode)
    result = await lines.call()
    assert outcome(result) == "answered"
    assert len(lines.noted) == 2
    assert ("exit code 3" if mode == "leave-child" else "stdout") in lines.events[0]["cause"]


async def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    lines = Lines(tmp_path)
    lines.entry["command"] = "no-such-mcp-server"
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**QUICK, "attempts": 1}})
        result = codec.decode(await one_call(proxy, "s", "echo"))
    assert "no-such-mcp-server" in result["content"][0]["text"]
    assert [event["outcome"] for event in lines.events] == ["connect"]


async def test_a_result_over_the_ceiling_is_refused(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "big")
    result = await lines.call({"max_result_bytes": 50_000})
    assert outcome(result) == "mcp_failed"
    assert "max_result_bytes" in result["content"][0]["text"]
    assert len(lines.noted) == 1


async def test_a_timeout_tells_the_server_and_ends_it(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "hang")
    result = await lines.call({"tools": {"echo": {"timeout": 0.5}}})
    assert result["_meta"][FAILURE]["code"] == "timeout"
    assert len(lines.noted) == 1


async def test_progress_comes_before_the_answer(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "progress")
    caller = Silent()
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry])
        await one_call(proxy, "s", "echo", {"progressToken": "t"}, caller)
    assert caller.told == [
        note("notifications/progress", {"progressToken": "t", "progress": value})
        for value in (1, 2)
    ]


async def test_a_server_sees_the_short_list_and_its_own_variables(tmp_path: Path) -> None:
    lines = Lines(tmp_path, "env", env={"KEY": "value"})
    environment = {**os.environ, "SECRET_OF_OURS": "1"}
    async with McpProxy(lines.events.append, environment=environment) as proxy:
        proxy.mount("a", [lines.entry])
        result = codec.decode(await proxy.call_tool("a", "s_echo", {}))
    seen = json.loads(result["content"][0]["text"])
    assert seen["KEY"] == "value"
    assert seen["PATH"] == os.environ["PATH"]
    assert "SECRET_OF_OURS" not in seen
    assert set(seen) <= {
        *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "KEY", "CALLS"),
        *("ACP_MCP_BRIDGE_FAMILY", "LC_CTYPE"),
    }


class _Slow(Silent):
    """Takes nothing until the server's process has gone and its pipe was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gone = anyio.Event()

    async def tell(self, message: bytes) -> None:
        await self.gone.wait()
        await super().tell(message)


@pytest.mark.parametrize("delivery", ["at-least-once", "safe"])
async def test_an_answer_is_read_after_the_end_however_slow_the_caller_is(
    tmp_path: Path, delivery: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, slow = Lines(tmp_path, "exit"), _Slow()
    end_reading = StdioChannel._end_reading

    async def ended(channel: StdioChannel) -> None:
        await end_reading(channel)
        slow.gone.set()

    monkeypatch.setattr(StdioChannel, "_end_reading", ended)
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**QUICK, "delivery": delivery}})
        await hub_of(proxy).listed(20)
        result = codec.decode(await one_call(proxy, "s", "echo", None, slow, {"a": 1}))
    assert result["content"][0]["text"] == '{"a": 1}'
    assert len(lines.noted) == 1
    assert [message["params"]["data"] for message in slow.told] == [1, 2]


@pytest.mark.parametrize("keep_alive", [False, True])
async def test_bytes_that_are_no_text_cost_a_letter(tmp_path: Path, keep_alive: bool) -> None:
    result = await Lines(tmp_path, "latin1").call({"keep_alive": keep_alive, "timeout": 20})
    assert result["content"] == [{"type": "text", "text": "caf\ufffd"}]


class _Told(Silent):
    """Knows when it has been told something."""

    def __init__(self) -> None:
        super().__init__()
        self.first = anyio.Event()

    async def tell(self, message: bytes) -> None:
        self.first.set()


@pytest.mark.parametrize("keep_alive", [False, True])
async def test_a_call_that_is_ended_is_cancelled_at_the_process(
    tmp_path: Path, keep_alive: bool
) -> None:
    lines, caller = Lines(tmp_path, "hang-on-request"), _Told()
    results: list[Json] = []
    async with McpProxy(lines.events.append) as proxy:
        proxy.mount("a", [lines.entry], {"s": {**QUICK, "keep_alive": keep_alive}})
        await hub_of(proxy).listed(20)

        async def call() -> None:
            token = {"progressToken": 1}
            found = await one_call(proxy, "s", "echo", token, caller, {"hang": True})
            results.append(codec.decode(found))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await caller.first.wait()
            hub_of(proxy).end_calls(before=moment())
    assert outcome(results[0]) == "cancelled"
    assert lines.noted == ["cancelled"]
    assert [event["outcome"] for event in lines.events] == ["cancelled"]
