"""Real agents that replay null content, a provider that refuses it, and the bridge between them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.host import Host
from tests.peers.node_agents import RECIPES, Recipe
from tests.peers.servers import Server, model_proxy

pytestmark = pytest.mark.peers
SLOW_START = 30.0


@pytest.fixture
def recipe(
    request: pytest.FixtureRequest, tmp_path: Path, strict_model: Server, tools: Server
) -> Recipe:
    return RECIPES[request.param](tmp_path / "home", strict_model.url, tools.url)


@pytest.fixture
def host(recipe: Recipe, tmp_path: Path) -> Iterator[Host]:
    work = tmp_path / "work"
    work.mkdir()
    with Host(work, environment=recipe.environment) as host:
        host.hello()
        yield host
        host.shutdown()


def turn(host: Host, recipe: Recipe, text: str, tools: Server, **more: Any) -> str:
    servers = {"tiny": tools.url} if recipe.takes_mcp else {}
    settings = {"mcp_urls": servers} | recipe.config | more
    response = host.prompt(recipe.command, text, seconds=SLOW_START, **settings)
    assert response["ok"] is True, f"{response}\n{host.stderr()[-3000:]}"
    return response["result"]["reply"]


def called(strict_model: Server, recipe: Recipe) -> dict[str, Any]:
    """The assistant message with the tool call, as it reached the provider."""
    body = strict_model.bodies(recipe.wire)[-1]["body"]
    [message] = [message for message in body["messages"] if message.get("tool_calls")]
    return message


@pytest.mark.e2e
@pytest.mark.parametrize("recipe", ["copilot"], indirect=True)
def test_null_beside_tool_calls_is_mended_where_the_upstream_wants_it(
    host: Host, recipe: Recipe, tools: Server, strict_model: Server
) -> None:
    prompt = 'USE_TOOL echo {"message": "strict"}'
    reply = turn(host, recipe, prompt, tools, model={"tool_call_content": "empty"})
    assert "echo: strict" in reply
    assert called(strict_model, recipe)["content"] == ""
    assert host.event("model")


def test_an_agent_with_its_model_in_a_file_goes_through_the_proxy_alone(
    tmp_path: Path, tools: Server, strict_model: Server
) -> None:
    with model_proxy(strict_model.url, "--tool-call-content", "empty") as url:
        recipe = RECIPES["pi"](tmp_path / "home", url, tools.url)
        with Host(tmp_path, environment=recipe.environment) as host:
            reply = turn(host, recipe, 'USE_TOOL echo {"message": "alone"}', tools)
            assert "echo: alone" in reply
            assert called(strict_model, recipe)["content"] == ""
            host.shutdown()


@pytest.mark.e2e
@pytest.mark.parametrize("recipe", ["copilot"], indirect=True)
def test_an_empty_turn_in_the_history_is_mended_without_being_asked(
    host: Host, recipe: Recipe, tools: Server, strict_model: Server
) -> None:
    host.prompt(recipe.command, "REPLY_NULL", seconds=SLOW_START, **recipe.config)
    assert turn(host, recipe, "SAY fine", tools).strip().endswith("fine")
    said = [
        message
        for message in strict_model.bodies(recipe.wire)[-1]["body"]["messages"]
        if message["role"] == "assistant"
    ]
    assert said
    assert all(isinstance(message["content"], str) for message in said)
