"""An ACP client that does everything right but what it is told to do wrong.

Stdlib only: `python -I -S planted_client.py FAULT AGENT...`, FAULT the id of a check without
`client.`, or `-`; `bare` is a good client that advertises nothing and never logs in.
"""

import json
import os
import subprocess
import sys

FAULT, *AGENT = sys.argv[1:]
SCENARIO = os.environ["CONFORMANCE_SCENARIO"]
KNOWN = ("agent_message_chunk", "available_commands_update", "tool_call")
ENDS = ("\u2028", "\u2029", "\u0085")


def faulty(name: str) -> bool:
    return name == FAULT


class Ended(Exception):
    """The agent has ended, or the client is done."""


class Client:
    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.agent = subprocess.Popen(AGENT, start_new_session=True, **pipes)
        self.count = 0
        self.running = self.cancelled = False
        self.terminal: subprocess.CompletedProcess | None = None
        self.held: list[dict] = []
        self.answered: list[dict] = []

    # Writing

    def write(self, message: dict) -> None:
        whole = {"jsonrpc": "2.0", **message}
        if faulty("rpc.version"):
            whole["jsonrpc"] = "2"
        self.raw(json.dumps(whole).encode() + b"\n")

    def raw(self, data: bytes) -> None:
        self.agent.stdin.write(data)
        self.agent.stdin.flush()

    def start(self, method: str, params: dict) -> int:
        self.count += 1
        ident = 1 if faulty("rpc.ids") else self.count
        if faulty("rpc.ids") and self.count > 1:
            ident = None
        self.write({"id": ident, "method": method, "params": params})
        return ident

    def call(self, method: str, params: dict) -> dict:
        ident = self.start(method, params)
        while True:
            message = self.read()
            if "method" not in message and message.get("id") == ident:
                return message

    # Reading

    def read(self) -> dict:
        line = self.agent.stdout.readline()
        if not line:
            raise Ended
        if faulty("stdio.large") and len(line) > 1 << 20:
            raise Ended
        if faulty("stdio.split") and "北" in line.decode():
            raise Ended
        if faulty("stdio.separators") and any(end in line.decode() for end in ENDS):
            raise Ended
        message = json.loads(line)
        if "method" in message:
            self.take(message)
        return message

    def take(self, message: dict) -> None:
        method = message["method"]
        if "id" in message:
            self.request(message)
        elif method == "session/update":
            self.update(message["params"])
        elif method == "$/cancel_request" and not faulty("permission.taken-back"):
            taken = [one for one in self.held if one["id"] == message["params"]["requestId"]]
            for one in taken:
                self.held.remove(one)
                error = {"code": -32800, "message": "taken back"}
                self.write({"id": one["id"], "error": error})
        elif method.endswith("/news") and faulty("rpc.unknown-notification"):
            raise Ended

    def update(self, params: dict) -> None:
        kind = params["update"]["sessionUpdate"]
        known = params["sessionId"] == "conformance-session"
        if not self.running and kind == KNOWN[1] and faulty("session.early-update"):
            raise Ended
        if not known and faulty("updates.unknown-session"):
            raise Ended
        if known and kind not in KNOWN and faulty("updates.unknown-kind"):
            raise Ended

    def request(self, message: dict) -> None:
        ident, method, params = message["id"], message["method"], message.get("params", {})
        if method == "session/request_permission":
            self.permission(message)
            return
        service = self.services().get(method)
        if service is not None:
            self.write({"id": ident, "result": service(params)})
            return
        error = {"code": -32601, "message": "Method not found"}
        if faulty("rpc.unknown-request"):
            error["code"] = -32603
        if faulty("rpc.error"):
            error["code"] = "-32601"
        if faulty("rpc.error-message"):
            error["message"] = ""
        if faulty("rpc.result-or-error"):
            self.write({"id": ident, "result": {}, "error": error})
            return
        self.write({"id": ident, "error": error})
        if faulty("rpc.responses"):
            self.write({"id": ident, "error": error})

    def permission(self, message: dict) -> None:
        ident = message["id"]
        if SCENARIO == "cancel":
            self.held.append(message)
            self.cancel(message["params"]["sessionId"])
            return
        if ident == "ask-2":
            self.held.append(message)
            return
        if faulty("permission.answered") and ident == 7001:
            ident = "7001"
        option = "allow" if faulty("permission.option") else "42"
        outcome = {"outcome": "selected", "optionId": option}
        if faulty("schema.messages"):
            outcome = "selected"
        self.write({"id": ident, "result": {"outcome": outcome}})

    def cancel(self, session: str) -> None:
        if faulty("cancel.notification"):
            self.start("session/cancel", {"sessionId": session})
        else:
            self.write({"method": "session/cancel", "params": {"sessionId": session}})
        outcome = {"outcome": "cancelled"}
        if faulty("cancel.permission"):
            outcome = {"outcome": "selected", "optionId": "42"}
        for message in self.held:
            self.write({"id": message["id"], "result": {"outcome": outcome}})
        self.held.clear()

    def services(self) -> dict:
        if FAULT == "bare":
            return {}
        if faulty("capabilities.refused"):
            return {"fs/read_text_file": lambda params: {"content": ""}}
        return {
            "fs/read_text_file": self.read_file,
            "fs/write_text_file": self.write_file,
            "terminal/create": self.create,
            "terminal/wait_for_exit": lambda params: {"exitCode": self.terminal.returncode},
            "terminal/output": self.output,
            "terminal/release": lambda params: {},
        }

    def read_file(self, params: dict) -> dict:
        with open(params["path"]) as file:
            return {"content": "" if faulty("fs.read") else file.read()}

    def write_file(self, params: dict) -> dict:
        if not faulty("fs.write"):
            with open(params["path"], "w", encoding="utf-8") as file:
                file.write(params["content"])
        return {}

    def create(self, params: dict) -> dict:
        command = [params["command"], *params["args"]]
        self.terminal = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        return {"terminalId": "t1"}

    def output(self, params: dict) -> dict:
        said = "" if faulty("terminal.run") else self.terminal.stdout.decode()
        return {"output": said, "truncated": False}

    # The conversation

    def converse(self) -> None:
        served = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
        if FAULT in ("bare", "capabilities.refused"):
            served = {}
        params = {"protocolVersion": 1, "clientCapabilities": served}
        if not faulty("initialize.info"):
            params["clientInfo"] = {"name": "planted", "version": "1"}
        if faulty("schema.read-past"):
            params["clientInfo"] = {"name": 7}
        if faulty("schema.root"):
            params["colour"] = "green"
        if faulty("initialize.first"):
            self.write({"method": "$/hello", "params": {}})
        if faulty("stdio.messages"):
            self.raw(b"hello agent\n")
        if faulty("stdio.utf8"):
            self.raw(b'{"jsonrpc":"2.0","method":"_x/\xff","params":{}}\n')
        agreed = self.call("initialize", params)["result"]["protocolVersion"]
        if agreed != 1 and not faulty("initialize.unsupported"):
            return
        new = {"cwd": "here" if faulty("session.cwd") else os.getcwd(), "mcpServers": []}
        if faulty("capabilities.mcp"):
            url = "http://127.0.0.1:1/mcp"
            new["mcpServers"] = [{"type": "http", "name": "x", "url": url, "headers": []}]
        made = self.call("session/new", new)
        if "error" in made:
            if FAULT == "bare":
                return
            method = "guess" if faulty("authenticate.method") else "login"
            self.call("authenticate", {"methodId": method})
            made = self.call("session/new", new)
        session = made["result"]["sessionId"]
        self.running = True
        if faulty("capabilities.methods"):
            self.call("session/list", {})
        if faulty("rpc.methods"):
            self.write({"method": "session/mood", "params": {}})
        blocks = [{"type": "text", "text": "hello"}]
        if faulty("capabilities.prompt"):
            blocks.append({"type": "image", "mimeType": "image/png", "data": ""})
        used = "another" if faulty("session.id") else session
        prompt = {"sessionId": used, "prompt": blocks}
        if faulty("prompt.one-at-a-time"):
            self.start("session/prompt", prompt)
        self.call("session/prompt", prompt)

    def end(self) -> None:
        if faulty("end.agent"):
            # Its stdin stays open in a process that goes on.
            subprocess.Popen(["sleep", "3"], stdin=self.agent.stdin, stdout=subprocess.DEVNULL)
            return
        if faulty("end.leaves-nothing"):
            pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
            subprocess.Popen(["sleep", "30"], start_new_session=True, **pipes)
        self.agent.stdin.close()
        self.agent.wait()


def main() -> None:
    client = Client()
    try:
        client.converse()
    except Ended:
        pass
    finally:
        client.end()


main()
