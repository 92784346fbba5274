"""A stdio MCP server of nothing but the standard library; its arguments say how it misbehaves.

Every call is noted as a line of the file named by CALLS, so that executions can be counted.
"""

import json
import os
import subprocess
import sys
import time

MODES = sys.argv[1:]
NAME = next((mode[3:] for mode in MODES if mode.startswith("as:")), "echo")


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def called(params):
    with open(os.environ["CALLS"], "a+") as file:
        file.write(json.dumps(params) + "\n")
        file.seek(0)
        first = file.read().count("\n") == 1
    if ("die-once" in MODES and first) or "die" in MODES:
        print("out of memory, really", file=sys.stderr, flush=True)
        os._exit(9)
    if "leave-child" in MODES and first:
        # The child holds the pipe open when its parent dies.
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        os._exit(3)
    if "hang" in MODES:
        time.sleep(600)
    if "close-stdout" in MODES and first:
        os.close(1)
        time.sleep(600)
    if "close-stdin" in MODES and first:
        os.close(0)
    if "big" in MODES:
        return {"content": [{"type": "text", "text": "x" * 100_000}]}
    if "pid" in MODES:
        return {"content": [{"type": "text", "text": str(os.getpid())}]}
    if "env" in MODES:
        return {"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]}
    return {"content": [{"type": "text", "text": json.dumps(params.get("arguments"))}]}


def answer(message):
    method = message["method"]
    params = message.get("params", {})
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    if modern and "modern" not in MODES:
        return {"error": {"code": -32601, "message": "what?"}}
    if method == "server/discover":
        return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}}
    if method == "initialize":
        if "modern" in MODES:
            return {"error": {"code": -32601, "message": "what?"}}
        return {
            "result": {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "lines", "version": "1"},
            }
        }
    if method == "tools/list":
        tools = [{"name": NAME, "inputSchema": {"type": "object"}}]
        return {"result": {"tools": tools}}
    if method == "tools/call":
        if "progress" in MODES:
            token = params["_meta"]["progressToken"]
            for value in (1, 2):
                told = {"progressToken": token, "progress": value}
                say({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
        return {"result": called(params)}
    return {"error": {"code": -32601, "message": "no such method"}}


if "silent-once" in MODES:
    with open(os.environ["CALLS"] + ".starts", "a+") as starts:
        starts.write("x")
        starts.flush()
        starts.seek(0)
        if starts.read() == "x":
            time.sleep(600)
if "refuse" in MODES:
    print("config missing: set FOO", file=sys.stderr)
    sys.exit(1)
for line in sys.stdin:
    message = json.loads(line)
    if "noise" in MODES:
        print("[debug] got", message.get("method"), flush=True)
        print("", flush=True)
    if message.get("method") == "notifications/cancelled":
        with open(os.environ["CALLS"], "a") as file:
            file.write("cancelled\n")
    arguments = message.get("params", {}).get("arguments") or {}
    if "hang-on-request" in MODES and arguments.get("hang"):
        token = message["params"].get("_meta", {}).get("progressToken")
        if token is not None:
            told = {"progressToken": token, "progress": 1}
            say({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
        continue
    if "id" in message and "method" in message:
        if "exit" in MODES and message["method"] == "tools/call":
            for number in (1, 2):
                told = {"level": "info", "data": number}
                say({"jsonrpc": "2.0", "method": "notifications/message", "params": told})
                # Not in one piece with the answer.
                time.sleep(0.05)
        if "latin1" in MODES and message["method"] == "tools/call":
            found = {"content": [{"type": "text", "text": "caf@"}]}
            text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": found})
            os.write(1, text.encode().replace(b"@", b"\xe9") + b"\n")
            continue
        form = str if "ids-as-text" in MODES else float if "ids-as-floats" in MODES else int
        say({"jsonrpc": "2.0", "id": form(message["id"]), **answer(message)})
        if "exit" in MODES and message["method"] == "tools/call":
            os._exit(0)
        if "close-stdin" in MODES and message["method"] == "tools/call":
            time.sleep(600)
