"""The list of models that stands in for an upstream's, in each API's shape, and when it does."""

import json
from typing import Any

import pytest

from bridge.model.models_list import asked_for, listing
from tests.model.harness import answer, standing

pytestmark = pytest.mark.anyio

NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
LIST = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{"data":[]}'


def listed(*names: str, path: str = "/v1/models", **fields: str) -> Any:
    headers = {name.replace("_", "-").encode(): value.encode() for name, value in fields.items()}
    return json.loads(listing(names, path, headers))


def test_each_api_gets_its_own_shape() -> None:
    openai = listed("a", "b")
    assert openai["object"] == "list"
    assert [(m["id"], m["object"]) for m in openai["data"]] == [("a", "model"), ("b", "model")]
    anthropic = listed("a", "b", anthropic_version="2023-06-01")
    assert (anthropic["first_id"], anthropic["last_id"], anthropic["has_more"]) == ("a", "b", False)
    assert anthropic["data"][0]["type"] == "model"
    assert listed(anthropic_version="1")["data"] == []
    for gemini in (listed("g", path="/v1beta/models"), listed("models/g", x_goog_api_key="k")):
        assert gemini["models"][0]["name"] == "models/g"


@pytest.mark.parametrize(
    "path, expected",
    [("/v1/models", True), ("/models/", True), ("/v1/models/gpt", False), ("/v1/model", False)],
)
def test_only_the_list_is_stood_in_for(path: str, expected: bool) -> None:
    assert asked_for(path) is expected


async def get(stand: Any, path: bytes = b"/v1/models?limit=1000") -> tuple[bytes, Any]:
    answered = await stand.exchange(stand.request(b"", path, method=b"GET"))
    head, _, body = answered.partition(b"\r\n\r\n")
    return head.split(b" ")[1], body


@pytest.mark.parametrize("status", [b"404 Not Found", b"405 No", b"501 No"])
async def test_an_upstream_without_a_list_is_stood_in_for(status: bytes) -> None:
    response = b"HTTP/1.1 %b\r\nContent-Length: 2\r\n\r\nno" % status
    async with standing(answer(response), tap=True, models=["given"]) as stand:
        body = b'{"model":"seen","messages":[]}'
        await stand.exchange(stand.request(body))
        await stand.exchange(stand.request(body, b"/v1/messages"))
        code, listed = await get(stand)
        assert code == b"200"
        assert [m["id"] for m in json.loads(listed)["data"]] == ["given", "seen"]
        event = await stand.event(2)
        assert (event["purpose"], event["stand_in"]) == ("models", True)
        assert (event["status"], event["outcome"]) == (int(status[:3]), "complete")
        assert [record[0] for record in stand.taps if record[0] == "stand_in"] == ["stand_in"]
        assert len(stand.requests) == 3


async def test_a_list_that_is_there_and_any_other_answer_are_passed_on() -> None:
    other = b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno"
    async with standing(answer(LIST, other)) as stand:
        assert await get(stand) == (b"200", b'{"data":[]}')
        assert await get(stand) == (b"401", b"no")
        assert not any("stand_in" in event for event in stand.events)


async def test_one_model_a_head_and_a_switched_off_list_are_passed_on() -> None:
    async with standing(answer(NOT_FOUND)) as stand:
        assert await get(stand, b"/v1/models/m") == (b"404", b"no")
        peer = await stand.dial()
        await peer.send(stand.request(b"", b"/v1/models", method=b"HEAD"))
        assert (await peer.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 404 ")
        await peer.close()
    async with standing(answer(NOT_FOUND), answer_models=False) as stand:
        assert await get(stand) == (b"404", b"no")
