"""What real node agents make of a model that fails or says nothing, and what the daemon tells."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.host import Host
from tests.peers.node_agents import RECIPES, Recipe
from tests.peers.servers import model_server

pytestmark = pytest.mark.e2e
PATIENCE = 60.0
WORDS = "a scripted failure"


class Desk:
    """One agent behind its daemon, with a scripted model of its own."""

    def __init__(self, host: Host, recipe: Recipe) -> None:
        self.host, self.recipe = host, recipe

    def turn(self, text: str) -> dict[str, Any]:
        started = self.host.start(self.recipe.command, text, **self.recipe.config)
        response = self.host.answer(started, PATIENCE)
        assert response["ok"] is True, f"{response}\n{self.host.stderr()[-3000:]}"
        return response


@pytest.fixture
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    with model_server(tmp_path / "model.ndjson") as model:
        recipe = RECIPES[request.param](tmp_path / "home", model.url, "")
        with Host(tmp_path, environment=recipe.environment) as host:
            host.hello()
            yield Desk(host, recipe)
            host.shutdown()


def errors(response: dict[str, Any]) -> list[tuple[int, str, bool]]:
    return [(e["status"], e["error"], e["recovered"]) for e in response["model_errors"]]


@pytest.mark.parametrize("desk", ["codex", "copilot"], indirect=True)
def test_an_error_that_looks_like_a_normal_end_is_told(desk: Desk) -> None:
    response = desk.turn("FAIL 400")
    assert (response["agent_stop_reason"], response["outcome"]) == ("end_turn", "model_failed")
    assert errors(response) == [(400, WORDS, False)]


@pytest.mark.parametrize("desk", ["claude", "codex", "copilot"], indirect=True)
def test_an_error_that_a_retry_mended_is_told_too(desk: Desk) -> None:
    response = desk.turn("FAIL 500")
    assert response["outcome"] == "completed"
    assert response["result"]["reply"].endswith("pong")
    assert errors(response) == [(500, WORDS, True)]


@pytest.mark.parametrize("desk", ["claude", "copilot"], indirect=True)
def test_their_own_question_for_more_is_marked(desk: Desk) -> None:
    desk.turn("REPLY_EMPTY")
    desk.turn("SAY fine")
    asked = desk.host.events("model", purpose="turn")
    assert [event.get("again", False) for event in asked] == [False, True, False]


@pytest.mark.parametrize("desk", ["codex"], indirect=True)
def test_an_empty_answer_is_an_empty_turn(desk: Desk) -> None:
    response = desk.turn("REPLY_EMPTY")
    assert (response["agent_stop_reason"], response["outcome"]) == ("end_turn", "empty")
    assert response["model_errors"] == []
