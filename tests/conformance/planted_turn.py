"""The turns of the planted agent: what comes between a prompt and its response, faults included."""

import json
import os
import sys
from pathlib import Path

STORE = Path(sys.argv[1])
FAULT = sys.argv[2] if len(sys.argv) > 2 else "-"
OPTIONS = dict(argument.split("=", 1) for argument in sys.argv[3:])
WITHOUT = OPTIONS.get("without", "").split(",")


def faulty(name: str) -> bool:
    return name == FAULT


def out(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def write(message: dict) -> None:
    if faulty("rpc.version"):
        message = {"jsonrpc": "1.0", **message}
    out(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class Refused(Exception):
    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code, self.words = code, words


class Turn:
    """A prompt that runs: what is left to do when something comes."""

    def __init__(self, ident: object, session: "Session", text: str) -> None:
        self.ident, self.session, self.text = ident, session, text
        self.asked = ""
        self.done = False

    def say(self, text: str, kind: str = "agent_message_chunk", **more: object) -> None:
        content = {"type": "text", "text": text}
        update(self.session.name, {"sessionUpdate": kind, "content": content, **more})

    def end(self, reason: str) -> None:
        if self.done:
            return
        self.done = True
        self.session.turn = None
        if STATE.version == 2:
            self.state("idle", stopReason="end_turn" if faulty("v2.cancel") else reason)
            return
        if reason == "cancelled" and faulty("cancel.stop-reason") and "slow" in self.text:
            reason = "end_turn"
        if reason == "end_turn" and faulty("prompt.stop-reason"):
            reason = "done"
        result = {"stopReason": reason}
        if faulty("schema.root"):
            result["colour"] = "green"
        if faulty("rpc.result-or-error"):
            write({"id": self.ident, "result": result, "error": {"code": 1, "message": "x"}})
            return
        if not (reason == "cancelled" and faulty("permission.cancelled") and "tool" in self.text):
            write({"id": self.ident, "result": result})
        if faulty("rpc.responses"):
            write({"id": self.ident, "result": result})
        late = "cancel.nothing-after" if reason == "cancelled" else "prompt.nothing-after"
        if faulty(late):
            self.say("late")

    def state(self, state: str, **more: object) -> None:
        update(self.session.name, {"sessionUpdate": "state_update", "state": state, **more})

    def begin(self) -> None:
        if STATE.version == 2:
            message = "other" if faulty("v2.prompt") else "m-user"
            content = [{"type": "text", "text": self.text}]
            said = {"sessionUpdate": "user_message", "messageId": message, "content": content}
            update(self.session.name, said)
            write({"id": self.ident, "result": {"messageId": "m-user"}})
            if not faulty("v2.state"):
                self.state("running")
            if faulty("v2.cancel") and "slow" in self.text:
                self.state("running", _meta={})
        more = {"messageId": "m-agent"} if STATE.version == 2 else {}
        if faulty("schema.messages"):
            update(self.session.name, {"sessionUpdate": "agent_message_chunk", "content": "bare"})
        if faulty("schema.read-past"):
            call = {"toolCallId": "c-0", "title": "old", "kind": "unheard-of"}
            update(self.session.name, {"sessionUpdate": "tool_call", **call})
        if "tool" in self.text:
            self.use_tool()
        elif "slow" in self.text:
            self.say("one", **more)
            if self.session.poisoned:
                self.end("cancelled")
        else:
            if not faulty("prompt.reply"):
                self.say("hello", **more)
            self.end("cancelled" if self.session.poisoned else "end_turn")

    def use_tool(self) -> None:
        name = self.session.name
        call = {"toolCallId": "c-1", "title": "echo", "kind": "execute", "status": "pending"}
        if not faulty("tool.announced"):
            update(name, {"sessionUpdate": "tool_call", **call})
        if faulty("prompt.unasked"):
            read = {"sessionId": name, "path": "/etc/hostname"}
            write({"id": "read", "method": "fs/read_text_file", "params": read})
        if faulty("rpc.methods"):
            write({"method": "session/mood", "params": {}})
        kinds = ("allow_once", "reject_once")
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in kinds]
        if faulty("permission.options"):
            options[1]["optionId"] = options[0]["optionId"]
        STATE.asked += 1
        self.asked = f"p-{STATE.asked}"
        ident = None if faulty("rpc.ids") else self.asked
        params = {"sessionId": name, "toolCall": {"toolCallId": "c-1"}, "options": options}
        if faulty("rpc.ids"):
            write({"id": 1.5, "method": "session/request_permission", "params": params})
        write({"id": ident or self.asked, "method": "session/request_permission", "params": params})

    def answered(self, outcome: dict) -> None:
        chosen = outcome.get("optionId")
        status = "completed" if chosen == "allow_once" else "failed"
        if faulty("permission.rejected") and chosen == "reject_once":
            status = "completed"
        if faulty("permission.allowed") and chosen == "allow_once":
            status = "failed"
        if not faulty("tool.finished"):
            call = {"sessionUpdate": "tool_call_update", "toolCallId": "c-1", "status": status}
            update(self.session.name, call)
        elif faulty("tool.finished"):
            call = {"sessionUpdate": "tool_call_update", "toolCallId": "c-1"}
            update(self.session.name, call | {"status": "in_progress"})
        self.end("cancelled" if outcome.get("outcome") == "cancelled" else "end_turn")


class Session:
    def __init__(self, name: str, cwd: str) -> None:
        self.name, self.cwd = name, cwd
        self.turn: Turn | None = None
        self.poisoned = False
        self.config = "m1"


class State:
    version = 1
    asked = 0
    logged_in = OPTIONS.get("auth") != "required"
    sessions: dict[str, Session] = {}  # noqa: RUF012 (there is one State)
    prompts = 0


STATE = State()


def update(session: str, body: dict) -> None:
    if faulty("prompt.session-id"):
        session = f"{session}-x"
    if faulty("session.parallel") and len(STATE.sessions) > 1:
        session = next(iter(STATE.sessions))
    write({"method": "session/update", "params": {"sessionId": session, "update": body}})
