"""A real MCP server over TLS, behind the daemon: verified as usual, or refused with words."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Spawn
from tests.peers.certificates import localhost_certificate
from tests.peers.servers import Server, mcp_server


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return localhost_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secure(certificate: Path) -> Iterator[Server]:
    log = certificate.with_name("log")
    with mcp_server(log, "tiny", "--certificate", str(certificate)) as server:
        yield server


def call(spawn: Spawn, url: str, **options: Any) -> dict[str, Any]:
    host = spawn(**options)
    config = {
        "mcp_urls": {"tiny": url},
        "mcp_headers": {"tiny": {"X-Key": "of-tiny"}},
        "mcp": {"tiny": {"attempts": 1}},
    }
    response = host.call("call_tool", name="tiny_echo", arguments={"message": "hi"}, config=config)
    host.shutdown()
    return response


def test_a_server_whose_certificate_verifies_is_called(
    spawn: Spawn, secure: Server, certificate: Path, loop: str
) -> None:
    environment = {"BRIDGE_LOOP": loop, "SSL_CERT_FILE": str(certificate)}
    response = call(spawn, secure.url, environment=environment)
    assert response["result"]["content"] == [{"type": "text", "text": "echo: hi"}]
    heads = [record["headers"] for record in secure.log() if record["method"] == "tools/call"]
    assert heads[-1]["x-key"] == "of-tiny"


def test_one_whose_certificate_does_not_is_not_even_asked(
    spawn: Spawn, secure: Server, loop: str
) -> None:
    before = len(secure.log())
    response = call(spawn, secure.url, environment={"BRIDGE_LOOP": loop})
    assert "certificate" in str(response), response
    assert len(secure.log()) == before
