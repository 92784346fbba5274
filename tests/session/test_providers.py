"""An agent that is told its model by `providers/set`: which provider, and on the real daemon."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.session.providers import Choice, base_url, choose
from tests.peers.agent import scripted
from tests.peers.host import Host
from tests.peers.servers import Server, model_server

CLAUDE = {
    "providerId": "main",
    "supported": ["anthropic", "bedrock"],
    "current": {"apiType": "anthropic", "baseUrl": "https://api.example"},
}
OPENAI = {"providerId": "openai", "supported": ["openai"]}
BOTH = {"providerId": "both", "supported": ["vertex", "anthropic", "openai"], "required": True}


@pytest.mark.parametrize(
    "providers, wanted, expected",
    [
        ([CLAUDE], None, Choice("main", "anthropic")),
        ([OPENAI], None, Choice("openai", "openai")),
        ([OPENAI, CLAUDE], None, Choice("main", "anthropic")),
        ([OPENAI, BOTH], None, Choice("both", "openai")),
        ([OPENAI, BOTH], "anthropic", Choice("both", "anthropic")),
        ([CLAUDE, BOTH], "anthropic", Choice("main", "anthropic")),
        ([CLAUDE], "bedrock", Choice("main", "bedrock")),
        ([CLAUDE], "openai", None),
        ([{"providerId": "v", "supported": ["vertex"]}], None, None),
        ([], None, None),
    ],
)
def test_the_provider_that_fits_best_is_set(
    providers: list[dict[str, Any]], wanted: str | None, expected: Choice | None
) -> None:
    assert choose(providers, wanted) == expected


def test_the_base_url_is_what_clients_of_that_api_want() -> None:
    assert base_url("http://h/s/v1", "openai") == "http://h/s/v1"
    assert base_url("http://h/s/v1/", "anthropic") == "http://h/s"
    assert base_url("http://h/s", "anthropic") == "http://h/s"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with model_server(tmp_path_factory.mktemp("model") / "requests.ndjson") as server:
        yield server


def agent(*options: str, providers: Any = (CLAUDE,)) -> list[str]:
    """The scripted agent, with providers."""
    said = {"protocolVersion": 1, "agentCapabilities": {"providers": {}}}
    listed = {"providers": list(providers)}
    return scripted(f"initialize={json.dumps(said)}", f"list={json.dumps(listed)}", *options)


def params(host: Host) -> list[dict[str, Any]]:
    """What the agent's providers were set to."""
    return [message["params"] for message in host.log.messages("providers/set")]


def test_the_proxy_is_set_between_the_handshake_and_the_session(
    tmp_path: Path, model: Server
) -> None:
    options = {"upstream": f"{model.url}/v1", "headers": {"x-api-key": "CANARY-key"}}
    with Host(tmp_path) as host:
        host.hello()
        host.prompt(agent(), "say hi", model=options)
        assert host.log.methods()[:4] == [
            "initialize",
            "providers/list",
            "providers/set",
            "session/new",
        ]
        (set_to,) = params(host)
        url = set_to.pop("baseUrl")
        assert set_to == {
            "providerId": "main",
            "apiType": "anthropic",
            "headers": {"x-api-key": "CANARY-key"},
        }
        assert url.startswith("http://127.0.0.1:")
        assert not url.endswith("/v1")
        body = {
            "model": "scripted",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "x"}],
        }
        answer = host.prompt(None, f"post {url}/v1/messages {json.dumps(body)}")
        assert json.loads(answer["result"]["reply"])["status"] == 200
        assert answer["model_errors"] == []
        assert host.event("model", path="/v1/messages")["dialect"] == "anthropic"
        assert "CANARY" not in json.dumps(host.frames) + host.stderr()
        host.shutdown()


def test_the_intercept_url_is_enough(tmp_path: Path, model: Server) -> None:
    with Host(tmp_path, "--intercept", f"{model.url}/v1") as host:
        host.prompt(agent(providers=[OPENAI]), "say hi")
        (set_to,) = params(host)
        assert set_to["baseUrl"].endswith("/v1")
        assert "headers" not in set_to
        host.shutdown()


def test_the_environment_comes_first_and_is_enough(tmp_path: Path, model: Server) -> None:
    url = f"{model.url}/v1"
    with Host(tmp_path, "--intercept", url, environment={"ANTHROPIC_BASE_URL": url}) as host:
        host.prompt(agent(), "say hi")
        assert host.log.messages("providers/list") == []
        host.shutdown()


@pytest.mark.parametrize("how", ["off", "no url", "not advertised"])
def test_where_there_is_nothing_to_tell_nothing_is_asked(
    tmp_path: Path, model: Server, how: str
) -> None:
    more = {} if how == "no url" else {"model": {"upstream": f"{model.url}/v1"}}
    more |= {"model_proxy": "off"} if how == "off" else {}
    command = scripted() if how == "not advertised" else agent()
    with Host(tmp_path) as host:
        host.prompt(command, "say hi", **more)
        assert "session/new" in host.log.methods()
        assert not [method for method in host.log.methods() if method.startswith("providers/")]
        host.shutdown()


def test_a_provider_that_cannot_be_set_is_named(tmp_path: Path, model: Server) -> None:
    options = {"upstream": f"{model.url}/v1"}
    with Host(tmp_path) as host:
        refused = host.prompt(agent("set=error:-32603:no such endpoint"), "say hi", model=options)
        assert (refused["ok"], refused["code"]) == (False, "agent_error")
        assert "no such endpoint" in refused["error"]
        wrong = host.prompt(agent(), "say hi", model=options | {"api_type": "openai"})
        assert (wrong["code"], "anthropic" in wrong["error"]) == ("unsupported", True)
        odd = host.prompt(agent("list=[7]"), "say hi", model=options)
        assert odd["code"] == "unsupported"
        host.shutdown()
    with Host(tmp_path, "--intercept", f"{model.url}/v1") as host:
        assert host.prompt(agent(providers=[]), "say hi")["ok"] is True
        assert params(host) == []
        assert "keeps its model server" in host.stderr()
        host.shutdown()
