"""An agent that replays null content, a provider that refuses it, and the model proxy by itself
between them. The matrix has the daemon in that place."""

from pathlib import Path

import pytest

from tests.peers.host import Host
from tests.peers.node_agents import RECIPES
from tests.peers.servers import Server, model_proxy

pytestmark = pytest.mark.peers
SLOW_START = 30.0


def test_an_agent_with_its_model_in_a_file_goes_through_the_proxy_alone(
    tmp_path: Path, tools: Server, strict_model: Server
) -> None:
    with model_proxy(strict_model.url, "--tool-call-content", "empty") as url:
        recipe = RECIPES["pi"](tmp_path / "home", url, tools.url)
        with Host(tmp_path, environment=recipe.environment) as host:
            prompt = 'USE_TOOL echo {"message": "alone"}'
            response = host.prompt(recipe.command, prompt, seconds=SLOW_START, **recipe.config)
            assert response["ok"] is True, f"{response}\n{host.stderr()[-3000:]}"
            assert "echo: alone" in response["result"]["reply"]
            host.shutdown()
    body = strict_model.bodies(recipe.wire)[-1]["body"]
    [called] = [message for message in body["messages"] if message.get("tool_calls")]
    assert called["content"] == ""
