"""Claude Code's adapter and codex's are told their model by `providers/set`: nothing of it is in
their environment, and the server has no list of models. What they hide and what they ask beside the
turn's work is told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.host import Host
from tests.peers.node_agents import claude, codex
from tests.peers.servers import Server, model_server

pytestmark = pytest.mark.e2e
PATIENCE = 60.0


@pytest.fixture(scope="module")
def bare_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A scripted model without a list of models, as interception servers are."""
    log: Path = tmp_path_factory.mktemp("bare") / "model.ndjson"
    with model_server(log, "--no-models") as server:
        yield server


def turn(host: Host, text: str, recipe: Any, **more: Any) -> dict[str, Any]:
    config = recipe.config | more
    return host.answer(host.start(recipe.command, text, **config), PATIENCE)


@pytest.mark.parametrize("version", [1, 2])
def test_claude_is_told_by_providers_set(tmp_path: Path, bare_model: Server, version: int) -> None:
    recipe = claude(tmp_path / "home", bare_model.url, "")
    del recipe.environment["ANTHROPIC_BASE_URL"]
    model = {"upstream": f"{bare_model.url}/v1", "models": ["scripted"]}
    with Host(tmp_path, environment=recipe.environment) as host:
        host.hello()
        text = "SAY through the provider"
        spoken = turn(host, text, recipe, model=model, protocol_version=version)
        assert spoken["ok"] is True, f"{spoken}\n{host.stderr()[-3000:]}"
        assert spoken["result"]["reply"].strip() == "through the provider"
        assert (spoken["outcome"], spoken["model_errors"]) == ("completed", [])
        (listed,) = host.events("model", purpose="models")
        assert (listed["status"], listed["stand_in"]) == (404, True)
        assert host.events("model", purpose="turn", dialect="anthropic")
        host.shutdown()
    assert bare_model.bodies("/messages")


def test_codex_is_told_by_providers_set(tmp_path: Path, bare_model: Server) -> None:
    recipe = codex(tmp_path / "home", bare_model.url, "")
    del recipe.environment["DEFAULT_AUTH_REQUEST"]
    model = {"upstream": f"{bare_model.url}/v1", "headers": {"Authorization": "Bearer dummy"}}
    with Host(tmp_path, environment=recipe.environment) as host:
        host.hello()
        spoken = turn(host, "SAY through the provider", recipe, model=model)
        assert spoken["ok"] is True, f"{spoken}\n{host.stderr()[-3000:]}"
        assert spoken["result"]["reply"].strip() == "through the provider"
        asked = bare_model.bodies("/responses")
        assert {r["headers"]["authorization"] for r in asked} == {"Bearer dummy"}
        title = host.event("model", PATIENCE, purpose="side")
        assert title["side"] == "title"
        host.shutdown()
