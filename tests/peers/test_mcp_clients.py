"""Real clients in front of the proxy: the TypeScript SDKs that node agents embed."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.peers import mcp_peers
from tests.peers.mcp_peers import MODULES, node, proxied

pytestmark = pytest.mark.peers

Json = dict[str, Any]
SCRIPT = Path(__file__).with_name("mcp_ts_client.mjs")


def driven(which: str, url: str, tool: str) -> Json:
    done = subprocess.run(
        [node(), str(SCRIPT), which, str(MODULES), url, tool],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("which", ["sdk", "client"])
def test_a_typescript_client_tells_one_story_with_and_without_the_proxy(which: str) -> None:
    with mcp_peers.everything_http() as entry, proxied({"e": entry}) as ready:
        expected = driven(which, entry["url"], "echo")
        found = driven(which, ready["servers"]["e"], "echo")
    assert found["server"] == expected["server"]
    assert found["tools"] == expected["tools"]
    assert found["result"] == expected["result"]
    assert found["result"]["content"][0]["text"] == "Echo: hé"
    assert found["long"] == expected["long"]
    assert found["progress"] == expected["progress"] == [1, 2, 3, 4]
    assert found["cancelled"] == expected["cancelled"] == "cancelled"
    assert found["after"]["content"][0]["text"] == "Echo: still here"
