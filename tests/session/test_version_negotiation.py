"""Which ACP version is spoken with an agent: what the host asks for, or version 1, or none."""

import json
from typing import Any

import pytest

from tests.peers.agent import scripted_v2
from tests.peers.processes import wait_until
from tests.session.room import Room
from tests.session.version_2 import opened


def test_version_1_is_asked_for_unless_the_host_says_otherwise(room: Room) -> None:
    assert room.open()["protocol_version"] == 1
    [asked] = room.log.messages("initialize")
    assert set(asked["params"]) == {"protocolVersion", "clientCapabilities", "clientInfo"}
    assert asked["params"]["protocolVersion"] == 1


def test_an_agent_that_answers_1_is_spoken_with_in_version_1(room: Room) -> None:
    assert room.open(protocol_version=2)["protocol_version"] == 1
    assert room.reply("say hello") == "hello"
    client = json.loads(room.reply("peer"))
    assert client["protocolVersion"] == 2
    assert client["clientCapabilities"]["session"]["notices"] == {}
    assert len(room.log.messages("initialize")) == 1


def test_services_reach_an_agent_that_answers_1(room: Room) -> None:
    room.open(protocol_version=2, client_services=["fs"])
    file = room.directory / "note"
    file.write_text("here")
    assert "here" in room.reply(f'request fs/read_text_file {{"path": "{file}"}}')


def test_version_2_has_no_services_of_the_client(room: Room) -> None:
    assert opened(room, client_services=["fs", "terminal"])["protocol_version"] == 2
    said = json.loads(room.reply('request fs/read_text_file {"path": "/x"}'))
    assert said["code"] == -32601


@pytest.mark.parametrize("asked", [1, 2])
def test_an_agent_that_answers_with_another_version_is_refused(room: Room, asked: int) -> None:
    config = room.config("version=3", protocol_version=asked)
    assert "version 3" in room.refused("open", "unsupported", config=config)


def test_an_agent_that_answers_with_a_higher_one_is_refused(room: Room) -> None:
    words = room.refused("open", "unsupported", config=room.config("version=2"))
    assert "version 2" in words
    assert "config.protocol_version" in words


@pytest.mark.parametrize("version", ['"2"', "null", "2.5", "true"])
def test_an_agent_that_answers_with_no_version_is_refused(room: Room, version: str) -> None:
    config = room.config(f'initialize={{"protocolVersion":{version}}}', protocol_version=2)
    room.refused("open", "protocol", config=config)


def refusing(room: Room, supported: list[int], asked: int) -> str:
    error = {"code": -32022, "message": "no", "data": {"requested": asked, "supported": supported}}
    command = scripted_v2(f"initialize=error:{json.dumps(error)}")
    config = room.config() | {"command": command, "protocol_version": asked}
    return room.refused("open", "unsupported", config=config)


def test_an_agent_that_has_no_such_version_says_which_it_has(room: Room) -> None:
    words = refusing(room, [3, 4], 2)
    assert "[3, 4]" in words
    assert "protocol_version" not in words


def test_an_agent_that_has_version_2_only_is_told_of(room: Room) -> None:
    assert "config.protocol_version" in refusing(room, [2], 1)


def test_an_agent_that_says_that_it_has_1_is_asked_for_that(room: Room) -> None:
    words = refusing(room, [1], 2)
    assert "[1]" in words
    asked = [message["params"]["protocolVersion"] for message in room.log.messages("initialize")]
    assert asked == [2, 1]


@pytest.mark.parametrize("version", [0, 3])
def test_no_other_version_can_be_asked_for(room: Room, version: int) -> None:
    words = room.refused("open", "unsupported", config=room.config(protocol_version=version))
    assert str(version) in words
    assert room.log.methods() == []


def test_sse_servers_are_of_version_1_only(room: Room) -> None:
    server = {"type": "sse", "name": "old", "url": "http://127.0.0.1:9/sse", "headers": []}
    config = room.config(mcp_servers=[server], mcp_proxy="off", protocol_version=2)
    words = room.refused("open", "unsupported", config=config | {"command": scripted_v2()})
    assert "'old'" in words


@pytest.mark.parametrize("ident", ["null", "1.5"])
def test_an_id_that_version_2_has_not_is_refused(room: Room, ident: str) -> None:
    opened(room)
    params = '{"sessionId":"s-1","message":"m"}'
    line = f'{{"jsonrpc":"2.0","id":{ident},"method":"elicitation/create","params":{params}}}'
    room.reply(f"raw {line}\nsay on")

    def refused() -> list[dict[str, Any]]:
        return [m for m in room.log.messages() if m.get("error", {}).get("code") == -32600]

    assert wait_until(refused)
    assert [answer["id"] for answer in refused()] == [json.loads(ident)]
