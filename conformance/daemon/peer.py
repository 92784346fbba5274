"""The agent that a daemon under test starts: the prompt's first text block says what it does.

Standard library only; started as `python -I -S peer.py [OPTION...]`. A prompt's text is one
directive, after whatever a daemon puts before it:

    say TEXT          one message with that text
    dump              says the prompt's blocks as JSON
    client            says the client's capabilities as JSON
    meta              says `meta`, with _meta on the update, its params and the response
    chunks N          N messages `0`, `1`, ... of one message id
    wait              says `waiting`, until it is cancelled
    steer             says `waiting`, until it is steered, then says what the steering said
    ask               asks for permission; says the option that was chosen, or `cancelled`
    error             answers with an error that has data.details
    exit N            exits with that code in the middle of the turn

Options: `no-steering` leaves steering out of its capabilities; `deaf` makes it deaf to the end of
its stdin and to SIGTERM.
"""

import json
import signal
import sys
from typing import Any

Json = dict[str, Any]
OPTIONS = set(sys.argv[1:])
DIRECTIVES = ("say", "dump", "client", "meta", "chunks", "wait", "steer", "ask", "error", "exit")
OPTION_IDS = [("yes-1", "allow_once"), ("yes-2", "allow_always"), ("no-1", "reject_once")]


def write(message: Json) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


class Peer:
    """Everything it knows: its client, its sessions, and the turns that wait for something."""

    def __init__(self) -> None:
        self.client: Json = {}
        self.count = 0
        self.waiting: dict[str, tuple[Any, str]] = {}
        """By session: the id of its prompt, and what it waits for."""
        self.asked: dict[Any, str] = {}

    def say(self, session: str, text: str, **more: Any) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "messageId": f"m-{self.count}"}
        body = {**update, "content": {"type": "text", "text": text}, **more.pop("update", {})}
        params = {"sessionId": session, "update": body, **more}
        write({"method": "session/update", "params": params})

    def end(self, session: str, reason: str = "end_turn", **more: Any) -> None:
        ident, _ = self.waiting.pop(session)
        write({"id": ident, "result": {"stopReason": reason, **more}})

    def prompt(self, ident: Any, params: Json) -> None:
        session = str(params["sessionId"])
        self.count += 1
        text = "\n".join(str(block.get("text", "")) for block in params["prompt"])
        lines = [line for line in text.splitlines() if line.partition(" ")[0] in DIRECTIVES]
        verb, _, rest = (lines[-1] if lines else f"say {text}").partition(" ")
        self.waiting[session] = ident, verb
        match verb:
            case "wait" | "steer":
                self.say(session, "waiting")
            case "ask":
                self.asked[f"ask-{self.count}"] = session
                options = [{"optionId": o, "name": o, "kind": kind} for o, kind in OPTION_IDS]
                call = {"toolCallId": f"call-{self.count}", "title": "tool", "rawInput": {"x": 1}}
                asking = {"sessionId": session, "toolCall": call, "options": options}
                method = "session/request_permission"
                write({"id": f"ask-{self.count}", "method": method, "params": asking})
            case "error":
                self.waiting.pop(session)
                error = {"code": -32603, "message": "Internal error", "data": {"details": "words"}}
                write({"id": ident, "error": error})
            case "exit":
                sys.stderr.write("peer: last words\n")
                sys.stderr.flush()
                sys.exit(int(rest))
            case "meta":
                inner = {"_meta": {"update": 2, "both": "update"}}
                self.say(session, "meta", update=inner, _meta={"params": 1, "both": "params"})
                self.end(session, _meta={"response": 3})
            case "chunks":
                for number in range(int(rest)):
                    self.say(session, str(number))
                self.end(session)
            case _:
                said = {"dump": params["prompt"], "client": self.client}
                self.say(session, json.dumps(said[verb]) if verb in said else rest)
                self.end(session)

    def steer(self, params: Json) -> Json:
        session = str(params["sessionId"])
        if session not in self.waiting:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        if self.waiting[session][1] == "steer":
            self.say(session, json.dumps(params))
            self.end(session)
        return {"outcome": "injected"}

    def request(self, ident: Any, method: str, params: Json) -> None:
        match method:
            case "initialize":
                self.client = params.get("clientCapabilities") or {}
                names = ("close", "resume", "list", "fork")
                result: Json = {
                    "protocolVersion": 1,
                    "agentCapabilities": {
                        "loadSession": True,
                        "promptCapabilities": {"image": True},
                        "mcpCapabilities": {"http": True},
                        "sessionCapabilities": {name: {} for name in names},
                    },
                    "agentInfo": {"name": "conformance", "version": "1"},
                    "authMethods": [],
                }
                if "no-steering" not in OPTIONS:
                    result["_meta"] = {"steering": {"supported": True}}
            case "session/new" | "session/fork":
                self.count += 1
                result = {"sessionId": f"peer-{self.count}"}
            case "session/prompt":
                self.prompt(ident, params)
                return
            case "session/close":
                if params["sessionId"] in self.waiting:
                    self.end(str(params["sessionId"]), "cancelled")
                result = {"_meta": {"closed": True}}
            case "_session/steering":
                result = self.steer(params)
            case "session/load" | "session/resume" | "session/list":
                result = {"sessions": []} if method == "session/list" else {}
            case _:
                write({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
                return
        write({"id": ident, "result": result})

    def receive(self, message: Json) -> None:
        method = message.get("method")
        if method is None:
            session = self.asked.pop(message.get("id"), None)
            if session in self.waiting:
                outcome: Json = message.get("result", {}).get("outcome", {})
                self.say(session, str(outcome.get("optionId", "cancelled")))
                chosen = outcome.get("outcome") == "selected"
                self.end(session, "end_turn" if chosen else "cancelled")
        elif "id" in message:
            self.request(message["id"], method, message.get("params") or {})
        elif method == "session/cancel" and message["params"]["sessionId"] in self.waiting:
            session = str(message["params"]["sessionId"])
            if self.waiting[session][1] != "ask":
                self.end(session, "cancelled")


def main() -> None:
    if "deaf" in OPTIONS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    peer = Peer()
    for line in sys.stdin:
        peer.receive(json.loads(line))
    while "deaf" in OPTIONS:
        signal.pause()


if __name__ == "__main__":
    main()
