"""What the end-to-end tests share: the scripted model and a real MCP server, as processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.servers import Server, mcp_server, model_server


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A scripted model."""
    log: Path = tmp_path_factory.mktemp("model") / "model.ndjson"
    with model_server(log) as server:
        yield server


@pytest.fixture(scope="module")
def strict_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A scripted model that refuses null assistant content, as many providers do."""
    log: Path = tmp_path_factory.mktemp("strict-model") / "model.ndjson"
    with model_server(log, strict="null") as server:
        yield server


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A real MCP server: tools echo, wait, fail and note_of_the_day."""
    log: Path = tmp_path_factory.mktemp("mcp") / "mcp.ndjson"
    with mcp_server(log) as server:
        yield server
