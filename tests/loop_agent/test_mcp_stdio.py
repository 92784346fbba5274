"""The stdio transport, with real processes that answer lines with lines."""

import json
import sys

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from bridge.errors import BridgeError
from bridge.io.family import Family
from bridge.loop_agent.mcp_stdio import ServerEnded, stdio_transport
from protocol_schemas.agent_requests import McpServer, NamedValue
from tests.peers.processes import alive

pytestmark = pytest.mark.anyio

ECHO = """
import json, os, sys
print("starting up", flush=True)
print(flush=True)
for line in sys.stdin:
    ident = json.loads(line)["id"]
    result = {"env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()}
    print(json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}), flush=True)
"""


def python(program: str, **env: str) -> McpServer:
    pairs = [NamedValue(name, value) for name, value in env.items()]
    return McpServer(name="x", command=sys.executable, args=["-c", program], env=pairs)


async def test_messages_go_both_ways_and_noise_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-CANARY")
    with anyio.fail_after(30):
        async with stdio_transport(python(ECHO, GIVEN="é"), "/", Family()) as (incoming, outgoing):
            request = JSONRPCRequest(jsonrpc="2.0", id=7, method="x", params={})
            await outgoing.send(SessionMessage(request))
            answer = await incoming.receive()
    assert isinstance(answer, SessionMessage)
    assert isinstance(answer.message, JSONRPCResponse)
    assert answer.message.id == 7
    result = answer.message.result
    assert (result["cwd"], result["env"]["GIVEN"]) == ("/", "é")
    assert "sk-CANARY" not in json.dumps(result)
    assert not alive(result["pid"])


async def test_a_server_that_ends_says_how() -> None:
    quits = python("import sys; print('bad config', file=sys.stderr); sys.exit(4)")
    with pytest.raises(BaseExceptionGroup) as caught, anyio.fail_after(30):
        async with stdio_transport(quits, None, Family()) as (incoming, _):
            await incoming.receive()
    ended = caught.value.split(ServerEnded)[0]
    assert ended is not None
    assert "exit code 4" in str(ended.exceptions[0])
    assert "bad config" in str(ended.exceptions[0])


async def test_a_command_that_is_not_there_is_said() -> None:
    missing = McpServer(name="x", command="/no/such/thing")
    with pytest.raises(BridgeError, match="/no/such/thing"):
        async with stdio_transport(missing, None, Family()):
            pass
