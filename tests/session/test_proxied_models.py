"""The proxy before an agent's model server, on the real daemon: what the agent is given in place of
the addresses it was configured with, and what passes there (bridge/session/proxies.py)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.servers import Server, model_server

KEY = "sk-CANARY-of-the-model"
LOOPS = ["asyncio", "uvloop", "trio"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The scripted model, for all tests of this module."""
    with model_server(tmp_path_factory.mktemp("model") / "requests.ndjson") as server:
        yield server


def ask(text: str, *before: dict[str, Any], url: str = "$OPENAI_BASE_URL", **more: Any) -> str:
    """The directive that makes a chat completions request."""
    messages = [*before, {"role": "user", "content": text}]
    return f"post {url}/chat/completions " + json.dumps({"messages": messages} | more)


def said(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """What the agent got of each of its requests."""
    assert answer["ok"] is True, answer
    lines = answer["result"]["reply"].replace("}{", "}\n{").split("\n")
    return [json.loads(line) for line in lines]


def content(exchange: dict[str, Any]) -> str:
    assert exchange["status"] == 200, exchange
    return json.loads(exchange["body"])["choices"][0]["message"]["content"]


def asked(model: Server, text: str) -> dict[str, Any]:
    """The one request that the model server got with this text."""
    found = [r for r in model.bodies("/chat/completions") if text in json.dumps(r["body"])]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("loop", LOOPS)
def test_an_agents_requests_go_through_and_are_told(
    tmp_path: Path, model: Server, loop: str
) -> None:
    environment = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": KEY}
    with Host(tmp_path, "--loop", loop, environment=environment) as host:
        host.hello()
        null = {"role": "assistant", "content": None}
        text = f"SAY hello from {loop}"
        (exchange,) = said(host.prompt(scripted(), ask(text, null)))
        assert content(exchange) == f"hello from {loop}"
        url = json.loads(host.reply(None, "env OPENAI_BASE_URL"))["OPENAI_BASE_URL"]
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/v1")
        assert not url.startswith(model.url)
        event = host.events("model")[0]
        assert (event["session"], event["turn"], event["status"]) == ("", 1, 200)
        assert (event["path"], event["outcome"]) == ("/v1/chat/completions", "complete")
        assert event["usage"]["output"] > 0
        assert event["changes"][0]["path"] == "messages[0].content"
        host.shutdown()
        assert "CANARY" not in json.dumps(host.frames) + host.stderr()
    request = asked(model, text)
    assert request["headers"]["authorization"] == f"Bearer {KEY}"
    assert request["body"]["messages"][0]["content"] == ""


@pytest.mark.parametrize("how", ["option", "variable", "config"])
def test_switched_off_the_agent_calls_its_model_itself(
    tmp_path: Path, model: Server, how: str
) -> None:
    arguments = ["--model-proxy", "off"] if how == "option" else []
    environment = {"BRIDGE_MODEL_PROXY": "off"} if how == "variable" else {}
    more = {"model_proxy": "off"} if how == "config" else {}
    with Host(tmp_path, *arguments, environment=environment) as host:
        host.hello()
        env = {"OPENAI_BASE_URL": f"{model.url}/v1"}
        null = {"role": "assistant", "content": None}
        host.prompt(scripted(), ask(f"SAY off by {how}", null), env=env, **more)
        assert host.events("model") == []
        assert asked(model, f"off by {how}")["body"]["messages"][0]["content"] is None
        host.shutdown()


def test_the_intercepted_url_is_replaced_wherever_it_stands(tmp_path: Path, model: Server) -> None:
    url = f"{model.url}/v1"
    env = {
        "ODD_NAME": url,
        "SOME_JSON": json.dumps({"providers": [{"at": f"{url}/", "other": f"{model.url}0"}]}),
        "ELSEWHERE": "http://127.0.0.1:1/v1",
    }
    agent = scripted(f"base={url}", "plain=word")
    with Host(tmp_path, "--intercept", url) as host:
        host.hello()
        prompt = f"env {' '.join(env)}\n{ask('SAY by argument', url='$base')}"
        seen, exchange = said(host.prompt(agent, prompt, env=env))
        assert content(exchange) == "by argument"
        ours = seen["ODD_NAME"]
        assert ours.startswith("http://127.0.0.1:")
        assert not ours.startswith(model.url)
        replaced = {"providers": [{"at": f"{ours}/", "other": f"{model.url}0"}]}
        assert json.loads(seen["SOME_JSON"]) == replaced
        assert seen["ELSEWHERE"] == env["ELSEWHERE"]
        argv = host.log.events("start")[0]["argv"]
        assert argv[1:] == [f"base={ours}", "plain=word"]
        assert host.events("model", path="/v1/chat/completions")
        host.shutdown()


def test_without_a_model_address_the_agent_gets_what_was_given(tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": "not a url", "SITE": "http://127.0.0.1:1/"}
    with Host(tmp_path) as host:
        assert json.loads(host.reply(scripted(), "env OPENAI_BASE_URL SITE", env=env)) == env
        assert host.log.events("start")[0]["argv"] == scripted()[3:]
        host.shutdown()


def test_the_sessions_options_hold_for_it_alone(tmp_path: Path, model: Server) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    call = {"type": "function", "id": "c", "function": {"name": "f", "arguments": "{}"}}
    beside = {"role": "assistant", "content": None, "tool_calls": [call]}
    tool = {"role": "tool", "tool_call_id": "c", "content": "done"}
    options = {"upstream": f"{model.url}/v1", "tool_call_content": "empty"}
    with Host(tmp_path) as host:
        host.hello()
        prompt = ask("SAY with options", beside, tool)
        changed = host.start(scripted(), prompt, session="a", env=env, model=options)
        down = host.start(scripted(), ask("SAY unheard"), session="b", env=env)
        assert content(said(host.answer(changed))[0]) == "with options"
        (refused,) = said(host.answer(down))
        assert refused["status"] == 502
        assert json.loads(refused["body"])["error"]["code"] == "model_upstream"
        assert host.events("model", session="b")[0]["outcome"] == "failed"
        host.shutdown()
    assert asked(model, "with options")["body"]["messages"][0]["content"] == ""


WRONG = [
    ({"limts": {}}, "limts"),
    ({"limits": {"max_turns": 0}}, "max_turns"),
    ({"tool_call_content": "maybe"}, "tool_call_content"),
    ({"upstream": "ftp://127.0.0.1/"}, "upstream"),
]


def test_wrong_options_are_named_and_the_daemon_goes_on(tmp_path: Path) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    with Host(tmp_path) as host:
        for wrong, words in WRONG:
            refused = host.prompt(scripted(), "say hi", env=env, model=wrong)
            assert refused["code"] == "invalid_request"
            assert "config.model" in refused["error"]
            assert words in refused["error"]
        assert host.reply(scripted(), "say hi", env=env) == "hi"
        host.shutdown()


def test_a_limit_ends_the_sessions_calls_and_its_turns_say_so(
    tmp_path: Path, model: Server
) -> None:
    env = {"OPENAI_BASE_URL": f"{model.url}/v1"}
    limits = {"limits": {"max_turns": 2}}
    with Host(tmp_path) as host:
        host.hello()
        within = host.prompt(scripted(), ask("SAY one"), env=env, model=limits)
        assert (within["truncated"], within.get("limit")) == (False, None)
        over = host.prompt(None, f"{ask('SAY two')}\n{ask('SAY three')}")
        two, three = said(over)
        assert content(two) == "two"
        assert three["status"] == 400
        assert "max_turns" in three["body"]
        assert (over["ok"], over["truncated"], over["limit"]) == (True, True, "max_turns")
        assert set(over["result"]) == {
            "reply",
            "stop_reason",
            "response_metadata",
            "update_metadata",
        }
        assert host.events("model", outcome="refused", limit="max_turns", turn=2)
        other = host.start(scripted(), ask("SAY four"), session="other", env=env, model=limits)
        answer = host.answer(other)
        assert content(said(answer)[0]) == "four"
        assert answer["truncated"] is False
        host.shutdown()
    assert not [r for r in model.bodies("/chat/completions") if "three" in json.dumps(r["body"])]


def test_bytes_from_the_model_are_a_sign_of_life(tmp_path: Path, model: Server) -> None:
    env = {"OPENAI_BASE_URL": f"{model.url}/v1"}
    slow = ask("SLOW 3", stream=True)
    with Host(tmp_path) as host:
        through = host.start(scripted(), slow, session="a", env=env, idle_timeout=1.5)
        beside = host.start(
            scripted(),
            slow,
            session="b",
            env=env,
            idle_timeout=1.5,
            close_grace=0.2,
            model_proxy="off",
        )
        assert "w11" in said(host.answer(through))[0]["body"]
        silent = host.answer(beside)
        assert (silent["ok"], silent["code"]) == (False, "timeout")
        assert "idle_timeout" in silent["error"]
        host.shutdown()
