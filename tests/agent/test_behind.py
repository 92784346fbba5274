"""What is put behind our proxies is replaced in place; all else passes as it came."""

import json
from typing import Any

import pytest

from bridge.agent.behind import Behind, with_param
from bridge.wire.codec import Raw

pytestmark = pytest.mark.anyio


class Proxies:
    """Proxies that note what they were asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def servers(self, name: str, given: list[Any], http: bool) -> list[Any]:
        self.asked.append((name, http))
        if given == [{"name": "broken"}]:
            raise ValueError("no such server")
        return [{"name": f"behind {server['name']}"} for server in given]

    async def model(self, url: str) -> str:
        return f"http://behind/{url}"


def line(method: str, ident: Any = 1, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
    return json.dumps(message).encode()


def test_only_a_parameter_of_a_line_is_changed() -> None:
    text = (
        b'{ "id":1.0,"x":{"mcpServers":[1]}, "params" : {"_meta":{"mcpServers":[{"a":1}]},'
        b'"mcpServers" : [{"a":1}] ,"cwd":"\xc3\xa9\\u00e9"},"method":"session/new"}\r'
    )
    changed = with_param(text, "mcpServers", [{"b": 2}])
    assert changed == text.replace(b'"mcpServers" : [{"a":1}]', b'"mcpServers" : [{"b":2}]')
    bom = b'\xef\xbb\xbf{"params":{"mcpServers":[]}}'
    assert with_param(bom, "mcpServers", [{}]) == b'\xef\xbb\xbf{"params":{"mcpServers":[{}]}}'


@pytest.mark.parametrize(
    "method", ["session/new", "session/load", "session/resume", "session/fork"]
)
async def test_a_session_s_servers_are_replaced(method: str) -> None:
    proxies = Proxies()
    behind = Behind(proxies.servers, proxies.model)
    changed = await behind.changed(line(method, cwd="/", mcpServers=[{"name": "a"}]))
    assert json.loads(changed)["params"] == {"cwd": "/", "mcpServers": [{"name": "behind a"}]}


@pytest.mark.parametrize(
    ("result", "http"),
    [
        (b'{"agentCapabilities":{"mcpCapabilities":{"http":true}}}', True),
        (b'{"agentCapabilities":{"mcpCapabilities":{"http":false}}}', False),
        (b'{"capabilities":{"session":{"mcp":{"http":{}}}}}', True),
        (b'{"capabilities":{"session":{"mcp":{}}}}', False),
        (b"7", False),
    ],
)
async def test_the_agent_s_answer_says_whether_it_reaches_http(result: bytes, http: bool) -> None:
    proxies = Proxies()
    behind = Behind(proxies.servers)
    behind.initialized(Raw(result))
    await behind.changed(line("session/new", mcpServers=[{"name": "a"}]))
    assert proxies.asked == [("relay-1", http)]


async def test_a_provider_s_address_is_replaced_and_its_headers_stay() -> None:
    proxies = Proxies()
    asked = line("providers/set", baseUrl="u", headers={"K": "v"})
    changed = json.loads(await Behind(None, proxies.model).changed(asked))["params"]
    assert changed == {"baseUrl": "http://behind/u", "headers": {"K": "v"}}
    assert await Behind(proxies.servers).changed(asked) == asked


@pytest.mark.parametrize(
    "given",
    [
        line("session/new", cwd="/"),
        line("session/new", mcpServers=[]),
        line("session/new", mcpServers="x"),
        line("session/new", mcpServers=[{"name": "broken"}]),
        line("session/prompt", mcpServers=[{"name": "a"}]),
        line("providers/set", baseUrl=7),
        b'{"jsonrpc":"2.0","method":"session/new","params":{"mcpServers":[{"name":"a"}]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":[1]}',
        b"noise",
        b"",
    ],
)
async def test_what_brings_no_address_passes_as_it_came(given: bytes) -> None:
    proxies = Proxies()
    assert await Behind(proxies.servers, proxies.model).changed(given) == given
