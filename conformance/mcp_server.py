"""A minimal MCP server on stdio, for agents to connect to: it leaves a file when it is spoken to.

Standard library only; started by the agent under test as `python -I -S mcp_server.py FILE`. The
file holds the variable CONFORMANCE_MCP of its environment. It has one tool, `conformance_echo`.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "conformance_echo",
    "description": "Gives back its text.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
}


def result(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a request; None for a method that it has not."""
    match method:
        case "initialize":
            return {
                "protocolVersion": params.get("protocolVersion", "2025-06-18"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "conformance", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            text = str(params.get("arguments", {}).get("text", ""))
            return {"content": [{"type": "text", "text": text}]}
        case "ping":
            return {}
        case _:
            return None


def main() -> None:
    for line in sys.stdin:
        Path(sys.argv[1]).write_text(os.environ.get("CONFORMANCE_MCP", ""))
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        found = result(message["method"], message.get("params") or {})
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if found is None:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        else:
            answer["result"] = found
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
