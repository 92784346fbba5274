"""Tool calls that an agent leaves running in a turn it was told to cancel: ended, and no others."""

from pathlib import Path
from typing import Any

import pytest

from tests.peers.agent import AgentLog, scripted
from tests.peers.host import Host
from tests.peers.processes import wait_until
from tests.peers.servers import mcp_server

LOOPS = ["asyncio", "uvloop", "trio"]
FAILURE = "dev.acp-mcp-bridge/failure"


def leave(seconds: float) -> str:
    """A call in the background, and a turn that runs until it is cancelled."""
    return f'leave tiny wait {{"seconds":{seconds}}}\nwait /never'


def left(log: AgentLog) -> list[dict[str, Any]]:
    return [event["result"] for event in log.events("left")]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("options", [(), ("without=http",)], ids=["http", "shim"])
def test_what_a_cancelled_turn_leaves_running_is_ended(
    tmp_path: Path, loop: str, options: tuple[str, ...]
) -> None:
    with (
        mcp_server(tmp_path / "calls") as tools,
        Host(tmp_path, "--loop", loop) as host,
    ):
        host.hello()
        logs = {name: AgentLog(tmp_path / f"{name}.ndjson") for name in ("a", "b")}
        for name, log in logs.items():
            env = {"SCRIPTED_LOG": str(log.path)}
            config = {"command": scripted(*options), "mcp_urls": {"tiny": tools.url}, "env": env}
            assert host.call("open", session=name, config=config)["ok"] is True
        turn = host.start(None, leave(60), session="a")
        other = host.start(None, leave(61), session="b")
        own = host.send("call_tool", session="a", name="tiny_wait", arguments={"seconds": 62})
        tools.until(lambda log: sum(r.get("method") == "tools/call" for r in log) == 3)

        host.call("cancel", session="a")
        answer = host.answer(turn)
        assert answer["result"]["stop_reason"] == "cancelled"
        # It begins before what is left is ended, and ends after it.
        after = host.start(None, 'call tiny wait {"seconds":2}', session="a")
        event = host.event("mcp", session="a", outcome="cancelled")
        assert (event["tool"], event["attempt"]) == ("wait", 1)
        assert "cancelled" in event["cause"]
        assert "waited" in host.answer(after)["result"]["reply"]

        assert wait_until(lambda: left(logs["a"]), 10)
        (result,) = left(logs["a"])
        assert result["isError"] is True
        assert "the turn it was made in was cancelled" in result["content"][0]["text"]
        assert "unknown" in result["content"][0]["text"]
        assert (result["_meta"][FAILURE]["code"], result["_meta"][FAILURE]["attempts"]) == (
            "cancelled",
            1,
        )
        ended = [r for r in tools.log() if "cancelled" in r]
        assert [r["params"]["arguments"]["seconds"] for r in ended] == [60]
        assert len(host.events("mcp", tool="wait", outcome="cancelled")) == 1
        assert left(logs["b"]) == []

        host.call("cancel", session="b")
        assert host.answer(other)["result"]["stop_reason"] == "cancelled"
        assert wait_until(lambda: left(logs["b"]), 10)
        assert own is not None
        host.shutdown()


def test_a_turn_that_ends_by_itself_leaves_its_calls_alone(tmp_path: Path) -> None:
    with mcp_server(tmp_path / "calls") as tools, Host(tmp_path) as host:
        host.hello()
        leaving = 'leave tiny wait {"seconds":2}'
        answer = host.prompt(scripted(), leaving, mcp_urls={"tiny": tools.url})
        assert answer["result"]["stop_reason"] == "end_turn"
        assert host.event("mcp", tool="wait", outcome="answer")
        assert wait_until(lambda: left(host.log), 10)
        assert "waited" in str(left(host.log))
        host.shutdown()


def test_a_turn_that_ran_out_of_time_leaves_nothing_running_either(tmp_path: Path) -> None:
    with mcp_server(tmp_path / "calls") as tools, Host(tmp_path) as host:
        host.hello()
        given = {"mcp_urls": {"tiny": tools.url}, "turn_timeout": 1.5}
        answer = host.prompt(scripted(), leave(60), **given)
        assert answer["code"] == "timeout"
        tools.until(lambda log: [r for r in log if "cancelled" in r])
        assert wait_until(lambda: left(host.log), 10)
        host.shutdown()
