"""Case 41: two agents with the same ids, on one server, at the same time."""

import anyio
import pytest

from tests.mcp import fake
from tests.mcp.fake import Fake, Seen
from tests.mcp.test_http_front import endpoint
from tests.mcp.web import Web
from tests.raw import Peer

pytestmark = pytest.mark.anyio


async def test_each_gets_its_own_answer() -> None:
    async def echoes(server: Fake, peer: Peer, seen: Seen) -> None:
        block = {"type": "text", "text": seen.message["params"]["arguments"]["text"]}
        await peer.send(fake.reply(200, fake.answer(seen.id, {"content": [block]})))

    server = Fake(eras=("legacy",))
    async with endpoint(server) as first:
        second = Web(f"http://127.0.0.1:{first.port}{first.path}")
        await first.open()
        await second.open()
        server.acts["tools/call"] = [echoes] * 200
        wrong: list[str] = []

        async def call(web: Web, text: str) -> None:
            params = {"name": "echo", "arguments": {"text": text}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            found = (await web.post(message)).result["content"][0]["text"]
            if found != text:
                wrong.append(found)

        for _ in range(100):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, first, "A")
                tasks.start_soon(call, second, "B")
    assert wrong == []
