"""The Python SDK as an ACP client: one session, a turn for each PROMPT, the outcome on stdout.

`python python_sdk.py META PROMPT... -- AGENT...`; needs agent-client-protocol. Permissions are
given by the first option that allows. META is session/new's `_meta` as JSON.
"""

import asyncio
import json
import os
import sys
from typing import Any

import acp
from acp.stdio import spawn_agent_process


class Client:
    """Keeps what the agent says."""

    def __init__(self) -> None:
        self.text = ""
        self.kinds: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.kinds.append(update.session_update)
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text

    async def request_permission(self, options: Any, **_: Any) -> Any:
        option = next(item for item in options if item.kind.startswith("allow"))
        return {"outcome": {"outcome": "selected", "optionId": option.option_id}}

    def on_connect(self, conn: Any) -> None:
        """Nothing is asked of the agent from here."""


async def main() -> None:
    split = sys.argv.index("--")
    meta, prompts, command = json.loads(sys.argv[1]), sys.argv[2:split], sys.argv[split + 1 :]
    client = Client()
    async with spawn_agent_process(
        client, *command, env=dict(os.environ), transport_kwargs={"stderr": None}
    ) as (connection, process):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await connection.new_session(cwd=os.getcwd(), mcp_servers=[], **meta)
        reasons = []
        for prompt in prompts:
            turn = await connection.prompt(
                session_id=session.session_id, prompt=[acp.text_block(prompt)]
            )
            reasons.append(turn.stop_reason)
        outcome = {"text": client.text, "stop": reasons, "permission": "tool_call" in client.kinds}
    print(json.dumps({**outcome, "exit": process.returncode}))


asyncio.run(main())
