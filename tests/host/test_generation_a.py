"""Hosts of the first generation on the real daemon: HOST_PROTOCOL §2, sentence by sentence."""

import base64
import json
from typing import Any

import pytest

from tests.conftest import Spawn
from tests.peers.agent import scripted
from tests.peers.host import Host


def start(spawn: Spawn, *arguments: str) -> Host:
    return spawn(*arguments, generation="A")


def prompt(host: Host, messages: list[dict[str, Any]], agent: list[str], **more: Any) -> Any:
    config = {
        "command": agent,
        "messages": messages,
        "mcp_urls": {},
        "system_prompt": "",
        "session_path": None,
        "session_meta": {},
    }
    host.raw(host.frame({"operation": "prompt", "config": config | more}))
    return host.answer(None)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_a_reply_and_a_shutdown_are_all_there_is(spawn: Spawn, loop: str) -> None:
    host = start(spawn, "--loop", loop)
    assert prompt(host, [user("say hello")], scripted()) == {"ok": True, "reply": "hello"}
    host.raw(host.frame({"operation": "shutdown"}))
    assert host.answer(None) == {"ok": True}
    assert host.exit_code() == 0
    host.check()


def test_the_agent_is_started_at_the_first_prompt_as_it_is_told(spawn: Spawn) -> None:
    host = start(spawn, "--mcp-proxy", "off")
    urls = {"tools": "http://127.0.0.1:9/mcp"}
    prompt(host, [user("say x")], scripted(), mcp_urls=urls, session_meta={"k": 1})
    assert host.log.methods() == ["initialize", "session/new", "session/prompt"]
    (new,) = host.log.messages("session/new")
    assert new["params"] == {
        "cwd": str(host.log.path.parent),
        "mcpServers": [
            {"type": "http", "name": "tools", "url": urls["tools"], "headers": []},
        ],
        "_meta": {"k": 1},
    }
    (initialize,) = host.log.messages("initialize")
    session = initialize["params"]["clientCapabilities"]["session"]
    assert session == {"notices": {}, "compaction": {}}


@pytest.mark.parametrize(
    "changed",
    [
        {"agent": scripted("version=1")},
        {"mcp_urls": {"x": "http://127.0.0.1:9/"}},
        {"system_prompt": "s"},
        {"session_meta": {"x": 1}},
    ],
)
def test_other_settings_in_a_later_request_are_an_error(
    spawn: Spawn, changed: dict[str, Any]
) -> None:
    host = start(spawn)
    prompt(host, [user("say x")], scripted())
    response = prompt(host, [user("say y")], **({"agent": scripted()} | changed))
    assert response["ok"] is False
    name = next(iter(changed)).replace("agent", "command")
    assert f"config.{name} differs" in response["error"]
    assert prompt(host, [user("say z")], scripted())["reply"] == "z"
    host.shutdown()


def test_only_what_follows_the_last_answer_is_sent_to_a_session_that_ran(spawn: Spawn) -> None:
    host = start(spawn)
    chat = [user("say one")]
    first = prompt(host, chat, scripted(), system_prompt="be nice")
    assert first["ok"] is True
    chat += [{"role": "assistant", "content": "one"}, user("say two")]
    assert prompt(host, chat, scripted(), system_prompt="be nice")["reply"] == "two"
    texts = ["".join(block["text"] for block in blocks) for blocks in host.log.prompts()]
    assert texts == ["[system]\nbe nice\n\n[user]\nsay one", "say two"]
    host.shutdown()


def test_an_image_needs_the_agent_s_capability(spawn: Spawn) -> None:
    data = base64.b64encode(b"png").decode()
    url = {"url": f"data:image/png;base64,{data}"}
    content = [{"type": "image_url", "image_url": url}, {"type": "text", "text": "say ok"}]
    host = start(spawn)
    assert prompt(host, [user(content)], scripted())["reply"] == "ok"
    (blocks,) = host.log.prompts()
    assert blocks[0] == {"type": "image", "data": data, "mimeType": "image/png"}
    blind = start(spawn)
    response = prompt(blind, [user(content)], scripted("without=image"))
    assert response["ok"] is False
    assert "image" in response["error"]
    assert blind.log.prompts() == []
    for one in (host, blind):
        one.shutdown()


def test_a_failed_turn_leaves_the_daemon_alive(spawn: Spawn) -> None:
    host = start(spawn)
    error = {"code": -32603, "message": "short", "data": {"details": "the whole story"}}
    response = prompt(host, [user(f"say part\nerror {json.dumps(error)}")], scripted())
    assert (response["ok"], response["error"]) == (False, "the whole story")
    assert "reply" not in response
    assert "result" not in response
    response = prompt(host, [user('error {"code":1,"message":"short"}')], scripted())
    assert response["error"] == "short"
    assert prompt(host, [user("say on")], scripted())["reply"] == "on"
    host.shutdown()


@pytest.mark.parametrize(
    ("words", "allowed", "reply"),
    [
        ("late after all", False, "after all"),
        ("tool t completed", True, ""),
        ("tool t failed", True, ""),
        ("tool t completed", False, None),
        ("tool t pending", True, None),
        ("stop end_turn", True, None),
        ("tool t completed\nstop max_tokens", True, None),
    ],
)
def test_a_turn_without_visible_text(
    spawn: Spawn, words: str, allowed: bool, reply: str | None
) -> None:
    host = start(spawn)
    response = prompt(host, [user(words)], scripted(), allow_empty_tool_reply=allowed)
    if reply is None:
        assert response["ok"] is False
        assert "stop_reason=" in response["error"]
        assert "tool_statuses=" in response["error"]
    else:
        assert response == {"ok": True, "reply": reply}
    host.shutdown()


def test_a_cancelled_or_refused_turn_waits_for_no_text(spawn: Spawn) -> None:
    host = start(spawn)
    for reason in ("cancelled", "refusal"):
        response = prompt(host, [user(f"stop {reason}\nlate too late")], scripted())
        assert response["ok"] is False
        assert reason in response["error"]
    host.shutdown()


@pytest.mark.parametrize("framing", ["packets", "lines"])
def test_requests_are_answered_one_by_one_in_order(spawn: Spawn, framing: str) -> None:
    host = spawn(generation="A", framing=framing)
    config = {"command": scripted(), "messages": []}
    frames = [
        host.frame({"operation": "prompt", "config": config | {"messages": [user(f"say {n}")]}})
        for n in range(10)
    ]
    host.raw(b"".join(frames))
    assert [host.answer(None)["reply"] for _ in range(10)] == [str(n) for n in range(10)]
    host.shutdown()


def test_a_command_that_cannot_be_started_is_an_error_and_can_be_mended(spawn: Spawn) -> None:
    host = start(spawn)
    response = prompt(host, [user("say x")], ["/no/such/agent"])
    assert response["ok"] is False
    assert "/no/such/agent" in response["error"]
    assert prompt(host, [user("say x")], scripted())["reply"] == "x"
    host.shutdown()


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"messages": "hi"}, "messages"),
        ({"messages": [{"role": "user", "content": 5}]}, "content"),
        ({"messages": []}, "messages"),
        ({"messages": [user("say x")], "command": []}, "command"),
    ],
)
def test_a_request_that_is_wrong_is_named(spawn: Spawn, config: dict[str, Any], word: str) -> None:
    host = start(spawn)
    host.raw(host.frame({"operation": "prompt", "config": {"command": scripted()} | config}))
    response = host.answer(None)
    assert response["ok"] is False
    assert word in response["error"]
    host.shutdown()


@pytest.mark.parametrize("framing", ["packets", "lines"])
@pytest.mark.parametrize("ending", ["open", "closed"])
def test_a_shutdown_that_is_piped_behind_prompts_waits_for_them(
    spawn: Spawn, framing: str, ending: str, loop: str
) -> None:
    host = spawn("--loop", loop, generation="A", framing=framing)
    requests = [
        {"operation": "prompt", "config": {"command": scripted(), "messages": [user(text)]}}
        for text in ("say one", "say two")
    ]
    host.raw(b"".join(map(host.frame, [*requests, {"operation": "shutdown"}])))
    if ending == "closed":
        host.close_stdin()
    replies = [host.answer(None) for _ in range(3)]
    assert replies == [{"ok": True, "reply": "one"}, {"ok": True, "reply": "two"}, {"ok": True}]
    assert host.exit_code() == 0


def test_a_shutdown_does_not_wait_for_ever_for_a_prompt(spawn: Spawn) -> None:
    host = start(spawn)
    hanging = {"command": scripted(), "messages": [user("hang")]}
    host.raw(host.frame({"operation": "prompt", "config": hanging}))
    host.raw(host.frame({"operation": "shutdown"}))
    assert host.answer(None)["ok"] is False
    assert host.answer(None) == {"ok": True}
    assert host.exit_code() == 0
