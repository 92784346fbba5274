"""A profile that starts the scripted agent, and what such an agent says of itself."""

import json
import stat
from pathlib import Path
from typing import Any

from tests.peers.agent import scripted
from tests.peers.host import Host

KEY = "sk-CANARY-of-the-model"


LOOPS = ["asyncio", "uvloop", "trio"]


SYSTEM = 'Be "kind".\nAlways.'


PROFILE = """
name = "own"
title = "The scripted agent"

[launch]
command = COMMAND
unset = ["MISLEADING"]

[launch.environment]
STATE = "${state}"
WHERE = "${cwd} ${session}"
OPENAI_BASE_URL = "${model.url}"
KEY_OF_MODEL = "${model.key}"
TOKEN_A = "${token}"
TOKEN_B = "${token}"
CONFIG = { url = "${model.url}", model = "${model.name}", wire = "${model.wire}" }

[wires.chat]

[[files]]
path = "deep/model.json"
json = { baseUrl = "${model.url}", model = "${model.name}" }

[[files]]
path = "launch"
text = "#!/bin/sh\\nexit 0\\n"
executable = true
"""


AT_START = '[[files]]\npath = "SYSTEM.md"\ntext = "<${system_prompt}>"\n'


IN_META = '[session.meta.systemPrompt]\nappend = "${system_prompt}"\n'


MCP_FILE = """
[[files]]
path = "mcp.json"
json = { mcpServers = "${mcp.servers}" }
[mcp]
via = "file"
server = { url = "${server.url}", headers = "${server.headers}" }
"""


def profile(folder: Path, more: str = "", *options: str) -> str:
    """The path of a profile that starts the scripted agent."""
    path = folder / "own.toml"
    path.write_text(PROFILE.replace("COMMAND", json.dumps(scripted(*options))) + more)
    return str(path)


def initialized(**session: Any) -> str:
    """The option by which the agent advertises these session capabilities."""
    can = {"sessionCapabilities": session, "mcpCapabilities": {"http": True}}
    result = {"protocolVersion": 1, "agentCapabilities": can, "authMethods": []}
    return f"initialize={json.dumps(result)}"


def environment(host: Host, *names: str, **config: Any) -> dict[str, str]:
    """What the agent says of its environment."""
    return json.loads(host.reply(None, f"env {' '.join(names)}", **config))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)
