"""The makers' own SDKs through the model proxy: the same outcomes as without it, and accepted where
a strict provider refuses them.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers.install import PEERS, install
from tests.peers.servers import Server, model_proxy, model_server

pytestmark = pytest.mark.peers
CLIENTS = Path(__file__).parents[1] / "peers/clients"
REFUSED = "expected a string, got null"


def run(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def python(script: str, url: str) -> dict[str, Any]:
    install("model-clients")
    return run(str(PEERS / "model-clients/bin/python"), str(CLIENTS / script), url)


def openai_python(url: str) -> dict[str, Any]:
    return python("openai_python.py", f"{url}/v1")


def anthropic_python(url: str) -> dict[str, Any]:
    return python("anthropic_python.py", url)


def openai_node(url: str) -> dict[str, Any]:
    install("node-model")
    sdk = PEERS / "node-model/node_modules/openai"
    return run("node", str(CLIENTS / "openai_node.mjs"), str(sdk), f"{url}/v1")


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Server]:
    """A scripted model of this test alone: it fails only the first who ask it to."""
    with model_server(tmp_path / "model.ndjson") as server:
        yield server


Client = Callable[[str], dict[str, Any]]
TOOL_LOOP = [None, "echo", {"message": "x"}, "the tool said: echoed"]
EXPECTED: dict[Client, dict[str, Any]] = {
    openai_python: {
        "whole": ["hello é", "stop"],
        "streamed": ["pong", True, True],
        "tool_loop": TOOL_LOOP,
        "null_history": "on",
        "image": "seen",
        "response": "r",
        "response_streamed": ["rs", "response.created", "response.completed"],
        "models": ["scripted"],
    },
    anthropic_python: {
        "whole": ["hello é", "end_turn"],
        "streamed": ["pong", True, "end_turn"],
        "tool_loop": TOOL_LOOP[1:],
        "image": "seen",
        "count": 11,
    },
    openai_node: {
        "whole": ["hello é", "stop"],
        "streamed": ["pong", True],
        "aborted": "left",
        "tool_loop": TOOL_LOOP,
        "null_history": "on",
        "surrogate": "on",
        "image": "seen",
    },
}
FAILURES = {openai_python: 429, anthropic_python: 529, openai_node: 503}


@pytest.mark.parametrize("client", EXPECTED, ids=lambda client: client.__name__)
def test_a_client_s_outcomes_are_the_same_through_the_proxy(client: Client, model: Server) -> None:
    with model_proxy(model.url) as url:
        through = client(url)
    failure = through.pop("failure")
    assert through == EXPECTED[client]
    assert failure[1] == FAILURES[client]
    assert "a scripted failure" in failure[2]


@pytest.mark.parametrize("client", [openai_python, openai_node], ids=lambda each: each.__name__)
def test_what_a_strict_provider_refuses_is_accepted_through_the_proxy(
    client: Client, tmp_path: Path
) -> None:
    with model_server(tmp_path / "direct.ndjson", strict="null") as strict:
        direct = client(strict.url)
    refused = {step for step, outcome in direct.items() if REFUSED in str(outcome)}
    assert {"null_history", "tool_loop"} <= refused
    log = tmp_path / "through.ndjson"
    with (
        model_server(log, strict="null") as strict,
        model_proxy(strict.url, "--tool-call-content", "empty") as url,
    ):
        through = client(url)
    assert {step: through[step] for step in EXPECTED[client]} == EXPECTED[client]


def test_a_client_that_leaves_a_stream_ends_it_upstream(model: Server) -> None:
    with model_proxy(model.url) as url:
        openai_node(url)
        [asked] = [r for r in model.bodies("/chat/completions") if "SLOW 30" in str(r["body"])][-1:]
        model.until(lambda log: model.outcome(asked["number"]) == "left")
