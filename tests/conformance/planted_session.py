"""The sessions of the planted daemon, and the agent that it only pretends to have."""

import json
import os
import sys
import time
import urllib.request

FAULT = sys.argv[1] if len(sys.argv) > 1 else "-"
DIRECTIVES = ("say", "dump", "client", "meta", "chunks", "wait", "steer", "ask", "error", "exit")


def faulty(name: str) -> bool:
    return name == FAULT


def code(name: str) -> dict:
    return {"code": name, "origin": "host"}


class State:
    """What the daemon knows."""

    def __init__(self) -> None:
        self.framing: str | None = None
        self.generation = "B"
        self.events: list[str] = []
        self.sessions: dict[str, Session] = {}
        self.open: set = set()
        self.later: list[dict] = []
        self.command: list[str] | None = None
        self.seq = 0
        self.sent = 0
        self.held: bytes | None = None
        self.children: list = []

    def session(self, request: dict) -> "Session":
        name = request.get("session", "")
        return self.sessions.setdefault(name, Session(name))

    def end(self, leave: bool) -> None:
        for child in self.children if not leave else ():
            child.kill()
            child.wait()


STATE = State()


def send(frame: dict) -> None:
    body = json.dumps(frame, ensure_ascii=False)
    data = body.encode()
    size = len(body) if faulty("framing.bytes") else len(data)
    packets = (STATE.framing == "packets") != faulty("framing.packets")
    whole = size.to_bytes(8, "big") + data if packets else data + b"\n"
    if faulty("framing.pure") and STATE.sent == 1:
        os.write(1, b"a stray print\n")
    if faulty("b.order") and frame.get("result", {}).get("reply") == "0":
        STATE.held = whole
        return
    STATE.sent += 1
    while whole:
        whole = whole[os.write(1, whole) :]
    if STATE.held is not None:
        os.write(1, STATE.held)
        STATE.held = None


def respond(ident: object, ok: bool, again: bool = False, **fields: object) -> None:
    frame: dict = {"ok": ok, **fields}
    if STATE.generation != "A":
        frame = {"id": ident, **frame}
        if not again:
            STATE.open.discard(ident)
    elif faulty("a.prompt"):
        frame["id"] = None
    if not ok and faulty("requests.errors"):
        frame.pop("error")
    send(frame)
    if faulty("requests.once"):
        send(frame)


def event(name: str, session: "Session", **fields: object) -> None:
    if name in STATE.events:
        STATE.seq += 1
        base = {"event": name, "session": session.name, "turn": session.count}
        send({**base, "seq": STATE.seq, **fields})


class Session:
    def __init__(self, name: str) -> None:
        self.name = name
        self.turn: object = None
        self.verb = ""
        self.config: dict = {}
        self.command: list[str] = []
        self.opened = self.dead = False
        self.queue: list = []
        self.messages: list[dict] = []
        self.count = 0
        self.said: list[str] = []
        self.ids: list[str] = []
        self.deadline: float | None = None

    def start(self, ident: object, config: dict) -> None:
        if self.dead:
            self.fail(ident, "the agent is gone", **code("agent_exited"))
            return
        first, self.opened = not self.opened, True
        self.turn, self.config = (ident,), config
        self.count += 1
        self.said = []
        blocks = self.blocks(config, first)
        text = "\n".join(str(block.get("text", "")) for block in blocks)
        lines = [line for line in text.splitlines() if line.partition(" ")[0] in DIRECTIVES]
        self.verb, _, rest = (lines[-1] if lines else f"say {text}").partition(" ")
        self.act(rest, blocks)

    def blocks(self, config: dict, first: bool) -> list[dict]:
        found: list[dict] = []
        for content in config["user_contents"]:
            if found and not faulty("b.contents") and STATE.generation != "A":
                found.append({"type": "text", "text": "\n\n"})
            for part in (
                [{"type": "text", "text": content}] if isinstance(content, str) else content
            ):
                if part["type"] == "image_url" and not faulty("b.image"):
                    head, _, data = part["image_url"]["url"].partition(";base64,")
                    mime = head.removeprefix("data:")
                    found.append({"type": "image", "mimeType": mime, "data": data})
                elif part["type"] != "image_url":
                    found.append(part)
        system = config.get("system_prompt")
        if system and (first or faulty("b.system-prompt")):
            found.insert(0, {"type": "text", "text": f"(system)\n{system}\n\n[user]\n"})
        return found

    def act(self, rest: str, blocks: list[dict]) -> None:
        match self.verb:
            case "wait" | "steer":
                STATE.children.append(STATE.child())
                self.say("waiting")
                if "turn_timeout" in self.config:
                    self.deadline = time.monotonic() + self.config["turn_timeout"]
            case "ask":
                self.ask()
            case "error":
                self.end_with_error()
            case "exit":
                self.dead = True
                wrong = "agent_error" if faulty("c.agent-exit") else "agent_exited"
                more = {**code(wrong), "exit_code": int(rest), "stderr": "peer: last words"}
                self.fail(self.turn[0], "the agent has exited", **more)
            case "meta":
                self.say("meta")
                both = "params" if faulty("b.metadata") else "update"
                updates = [{"params": 1, "both": both, "update": 2}]
                self.end(response_metadata={"response": 3}, update_metadata=updates)
            case "chunks":
                numbers = list(range(int(rest)))
                for number in numbers[1:] if faulty("b.reply") else numbers:
                    self.say(str(number))
                self.end()
            case "client":
                shown = {**self.config["client_capabilities"], "session": {"notices": {}}}
                if faulty("b.capabilities"):
                    shown["fs"] = {"readTextFile": True}
                self.say(json.dumps(shown))
                self.end()
            case _:
                self.say(json.dumps(blocks) if self.verb == "dump" else rest)
                self.end()

    def end_with_error(self) -> None:
        data = {} if faulty("b.error-data") else {"error_data": {"details": "words"}}
        number = {} if faulty("c.agent-error") else {"agent_code": -32603}
        shape = {"code": "agent_error", "origin": "agent"}
        self.fail(self.turn[0], "words", **data, **number, **shape)
        if faulty("a.failed") and STATE.generation == "A":
            sys.exit(1)

    def say(self, text: str) -> None:
        self.said.append(text)
        if not faulty("c.events"):
            self.tell(text)

    def tell(self, text: str) -> None:
        content = {"type": "text", "text": text}
        event("update", self, update={"sessionUpdate": "agent_message_chunk", "content": content})

    def ask(self) -> None:
        gate = self.config.get("tool_interception")
        if self.config.get("permission") == "ask":
            call = {"toolCallId": "call-1", "title": "tool", "rawInput": {"x": 1}}
            event("permission", self, request_id="r1", tool_call=call, options=[])
        elif gate is None or faulty("b.gate"):
            self.permitted("yes-2" if faulty("b.permission") else "yes-1")
        else:
            body = json.dumps({"tool_call_id": "call-1", "arguments": {"x": 1}}).encode()
            head = {"Authorization": f"Bearer {gate['secret']}"}
            with urllib.request.urlopen(urllib.request.Request(gate["url"], body, head)) as got:
                action = json.load(got)["action"]
            if action == "stop" and not faulty("b.gate-stop"):
                self.cancel()
            else:
                self.permitted("no-1")

    def permitted(self, option: str) -> None:
        self.say(option)
        self.end()

    def steered(self, request: dict) -> None:
        if self.verb == "steer":
            sent = {"prompt": [{"type": "text", "text": request["message"]}]}
            meta = {"steering": {"idleBehavior": "promptRequired"}}
            self.say(json.dumps({**sent, "_meta": meta, "messageId": request.get("message_id")}))
            self.end()

    def cancel(self) -> None:
        if self.verb == "ask":
            self.say("yes-1" if faulty("c.cancel-permission") else "cancelled")
        self.end("cancelled")

    def result(self, reason: str | None, **metadata: object) -> dict:
        base = {"reply": "".join(self.said), "stop_reason": reason}
        found = {**base, "response_metadata": {}, "update_metadata": [], **metadata}
        return {**found, "usage": None} if faulty("b.prompt") else found

    def fail(self, ident: object, words: str, **fields: object) -> None:
        self.turn = self.deadline = None
        if STATE.generation != "A" and not faulty("b.failed"):
            fields["result"] = self.result(None)
        respond(ident, False, error=words, **(fields if STATE.generation != "A" else {}))
        self.next()

    def end(self, reason: str = "end_turn", **metadata: object) -> None:
        ident, self.turn, self.deadline = self.turn[0], None, None
        result = self.result(reason, **metadata)
        beside = {"turn": self.count, "outcome": "completed", "agent_stop_reason": reason}
        if faulty("c.turn"):
            beside.pop("outcome")
        if STATE.generation == "A":
            respond(None, True, reply=result["reply"])
        elif self.ids:
            event("turn", self, state="ended", message_ids=self.ids, result=result)
            self.ids = []
        else:
            respond(ident, True, result=result, **beside)
        for text in self.said if faulty("c.events") else ():
            self.tell(text)
        self.next()

    def next(self) -> None:
        if self.turn is not None:
            return
        if self.queue:
            self.start(*self.queue.pop(0))
        elif self.messages:
            texts = [one["message"] for one in self.messages]
            self.ids = [one["message_id"] for one in self.messages]
            self.messages = []
            event("turn", self, state="started", message_ids=self.ids)
            self.start(None, {"user_contents": texts})


def deadlines() -> float | None:
    """Milliseconds until the next one."""
    found = [session.deadline for session in STATE.sessions.values() if session.deadline]
    return max(0, min(found) - time.monotonic()) * 1000 if found else None


def expire() -> None:
    for session in list(STATE.sessions.values()):
        if session.deadline is not None and time.monotonic() >= session.deadline:
            name = "cancelled" if faulty("c.timeout") else "timeout"
            session.fail(session.turn[0], "too late", **code(name))
