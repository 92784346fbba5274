"""The daemon as an ACP client: what the client suite starts to try it.

    python -m conformance client -- python tests/conformance/daemon_client.py

Drives `acp-mcp-bridge stream` with a JSON object a line, by the scenario that the suite names.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

DAEMON = [str(Path(sys.executable).with_name("acp-mcp-bridge")), "stream"]
SCENARIO = os.environ["CONFORMANCE_SCENARIO"]


class Host:
    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(DAEMON, **pipes)
        self.count = 0

    def send(self, operation: str, **fields: object) -> int:
        self.count += 1
        request = {"id": self.count, "operation": operation, **fields}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return self.count

    def answer(self, ident: int) -> dict:
        for line in self.process.stdout:
            frame = json.loads(line)
            if frame.get("id") == ident:
                return frame
            if frame.get("event") == "permission" and SCENARIO == "cancel":
                self.send("cancel")
            elif frame.get("event") == "permission":
                asked = frame["request_id"]
                self.send("permission", request_id=asked, outcome="allow")
        raise SystemExit("the daemon has ended")


def main() -> None:
    host = Host()
    host.answer(host.send("hello", protocol=1, events=["permission", "update"]))
    config = {
        "command": shlex.split(os.environ["CONFORMANCE_AGENT"]),
        "cwd": os.environ["CONFORMANCE_CWD"],
        "permission": "ask",
        "client_services": ["fs", "terminal"],
    }
    opened = host.answer(host.send("open", config=config))
    if not opened["ok"] and opened.get("code") == "auth_required":
        host.answer(host.send("authenticate", method_id="login"))
        opened = host.answer(host.send("open", config=config))
    if opened["ok"]:
        contents = {"user_contents": [os.environ["CONFORMANCE_PROMPT"]]}
        host.answer(host.send("prompt", config=contents))
    else:
        print(opened["error"], file=sys.stderr)
    host.answer(host.send("shutdown"))
    host.process.stdin.close()
    host.process.wait()


if __name__ == "__main__":
    main()
