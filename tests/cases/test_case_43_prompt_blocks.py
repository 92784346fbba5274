"""Case 43: a block that is no text reaches the agent as it is, or is refused by name."""

from typing import Any

import pytest

from tests.cases.conftest import Spawn
from tests.peers.agent import scripted

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhf"
    "DwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(url: str = f"data:image/png;base64,{PNG}") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


QUESTION = [text("what is"), image(), text("say this?")]


def test_an_image_goes_through_in_its_place(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    assert host.reply(scripted(), QUESTION) == "this?"
    host.shutdown()
    [blocks] = host.log.prompts()
    assert [block["type"] for block in blocks] == ["text", "image", "text"]
    assert (blocks[1]["data"], blocks[1]["mimeType"]) == (PNG, "image/png")
    assert [blocks[0]["text"], blocks[2]["text"]] == ["what is", "say this?"]


def test_an_agent_without_images_gets_none(spawn: Spawn, talk: dict[str, str]) -> None:
    host = spawn(**talk)
    agent = scripted("without=image")
    response = host.prompt(agent, QUESTION)
    assert response["ok"] is False
    assert "image" in response["error"]
    assert host.reply(agent, "say text goes") == "text goes"
    host.shutdown()
    assert len(host.log.prompts()) == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/cat.png",
        "data:image/png,raw",
        "data:text/plain;base64,aGk=",
        "file:///etc/passwd",
        "",
    ],
)
def test_an_image_that_is_not_inline_is_refused(
    spawn: Spawn, talk: dict[str, str], url: str
) -> None:
    host = spawn(**talk)
    response = host.prompt(scripted(), [text("look"), image(url)])
    assert response["ok"] is False
    assert "image" in response["error"]
    host.shutdown()
    assert host.log.prompts() == []


BLOCKS = {
    "image": {"type": "image", "data": PNG, "mimeType": "image/png"},
    "audio": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    "embedded": {
        "type": "resource",
        "resource": {
            "uri": "file:///a.txt",
            "mimeType": "text/plain",
            "text": "é",
            "_meta": {"k": 1},
        },
    },
    "": {"type": "resource_link", "uri": "file:///a.txt", "name": "a", "size": 7},
}


@pytest.mark.parametrize("ability", list(BLOCKS))
@pytest.mark.parametrize("generation", ["B", "C"])
def test_the_protocol_s_own_blocks_go_as_they_are(
    spawn: Spawn, generation: str, ability: str
) -> None:
    host = spawn(generation=generation)
    block = BLOCKS[ability]
    assert host.reply(scripted(f"with={ability}"), [block, text("say ok")]) == "ok"
    host.shutdown()
    assert host.log.prompts() == [[block, text("say ok")]]


@pytest.mark.parametrize("ability", ["image", "audio", "embedded"])
def test_what_the_agent_does_not_take_is_refused_by_name(spawn: Spawn, ability: str) -> None:
    host = spawn()
    block = BLOCKS[ability]
    response = host.prompt(scripted(f"without={ability}"), [block, text("say ok")])
    assert response["ok"] is False
    assert block["type"] in response["error"]
    host.shutdown()
    assert host.log.prompts() == []


@pytest.mark.parametrize("part", [{"type": "hologram"}, {"no": "type"}, 7, None])
def test_a_part_of_no_known_type_is_refused(spawn: Spawn, part: object) -> None:
    host = spawn()
    response = host.prompt(scripted(), [text("look"), part])
    assert (response["ok"], response["code"]) == (False, "invalid_request")
    assert host.reply(scripted(), "say fine") == "fine"
    host.shutdown()
    assert len(host.log.prompts()) == 1


def test_contents_are_joined_by_a_blank_line_block(spawn: Spawn) -> None:
    host = spawn()
    assert host.reply(scripted(), "first", "say second") == "second"
    host.shutdown()
    assert host.log.prompts() == [[text("first"), text("\n\n"), text("say second")]]
