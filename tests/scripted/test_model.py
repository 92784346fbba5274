"""The scripted model server, asked over real sockets."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from httpx2 import AsyncClient

from bridge.scripted.model import scripted_model
from tests.peers.processes import wait_until

pytestmark = pytest.mark.anyio
USER = [{"role": "user", "content": "SAY hello"}]
SAID = [{"role": "user", "parts": [{"text": "SAY hello"}]}]


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/v1/chat/completions", {"messages": USER}, '"content":"hello"'),
        ("/chat/completions", {"messages": USER, "stream": True}, '"content":"hello"'),
        ("/v1/responses", {"input": USER, "stream": True}, '"delta":"hello"'),
        ("/v1/messages?beta=true", {"messages": USER}, '"text":"hello"'),
        ("/v1/messages/count_tokens", {"messages": USER}, '"input_tokens":11'),
        ("/v1beta/models/m:generateContent", {"contents": SAID}, '"text":"hello"'),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": SAID}, '"text":"hello"'),
        ("/v1beta/models/m:countTokens", {"contents": SAID}, '"totalTokens":11'),
    ],
)
async def test_every_wire_answers(path: str, body: dict[str, object], text: str) -> None:
    async with scripted_model() as model, AsyncClient(base_url=model.url) as client:
        response = await client.post(path, json=body, headers={"X-Test": "1"})
    assert response.status_code == 200
    assert text in response.text
    [request] = model.requests
    assert (request.path, request.body, request.outcome) == (path, body, "answered")
    assert request.headers["x-test"] == "1"


async def test_models_are_listed_and_other_routes_are_not_found() -> None:
    async with scripted_model() as model, AsyncClient(base_url=model.url) as client:
        assert (await client.get("/v1/models")).json()["data"][0]["id"] == "scripted"
        assert (await client.get("/v1/chat/completions")).status_code == 404
        assert (await client.post("/v1/embeddings", json={})).status_code == 404


async def test_what_is_not_json_is_refused_with_words() -> None:
    async with scripted_model() as model, AsyncClient(base_url=model.url) as client:
        response = await client.post("/v1/chat/completions", content=b"{no")
    assert response.status_code == 400
    assert "not JSON" in response.json()["error"]["message"]


async def test_a_scripted_failure_and_a_strict_refusal_have_their_status() -> None:
    failing = {"messages": [{"role": "user", "content": "FAIL 529"}]}
    null = {"messages": [{"role": "assistant", "content": None}]}
    async with scripted_model(strict="null") as model, AsyncClient(base_url=model.url) as client:
        assert (await client.post("/v1/messages", json=failing)).status_code == 529
        assert (await client.post("/v1/messages", json=failing)).status_code == 200
        assert (await client.post("/v1/chat/completions", json=null)).status_code == 400


async def test_a_client_that_leaves_in_mid_stream_is_noted() -> None:
    body = {"messages": [{"role": "user", "content": "SLOW 60"}], "stream": True}
    with anyio.fail_after(10):
        async with scripted_model() as model, AsyncClient(base_url=model.url) as client:
            async with client.stream("POST", "/v1/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    if "w1 " in line:
                        break
            await model.until(lambda model: model.requests[0].outcome == "left")


def test_as_a_process_it_says_where_it_is_and_logs(tmp_path: Path) -> None:
    log = tmp_path / "model.ndjson"
    command = [sys.executable, "-m", "bridge.scripted.model", "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        anyio.run(_ask, url)
        assert wait_until(lambda: log.read_text().count("\n") == 2)
        process.send_signal(signal.SIGTERM)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert records[0]["path"] == "/v1/models"
    assert records[1] == {"number": 1, "outcome": "answered"}


async def _ask(url: str) -> None:
    async with AsyncClient() as client:
        assert (await client.get(f"{url}/v1/models")).status_code == 200
