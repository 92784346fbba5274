"""A deterministic ACP version 2 agent for tests; its turns are scripted as scripted_agent.py's are.

Stdlib only; started as `python -I -S scripted_v2_agent.py [OPTION...]`, logs as that one does. Most
directives are the same (say, id, update, wait, request, ask, permission ...). Here a turn is:

    echo, respond, running     the user_message, the prompt's response, state_update running: these
                               three come first of themselves, unless the first line is `bare`
    idle [JSON]                state_update idle with what `stop`, `result` and this say: comes last
                               of itself, unless the first line is `bare`
    refuse CODE WORDS          an error for the prompt
    state JSON                 a state_update
    whole ID [JSON]            an agent_message; without JSON its content is left out
    permission JSON            a request with these params (sessionId added); says the outcome
    takeback JSON              the same, taken back at once with $/cancel_request
    later JSON                 a list of lines that are run after this turn as if it were bare: work
                               of the agent's own

Options, NAME=VALUE: version=N (what initialize answers); METHOD=silent | error:JSON | JSON, where
METHOD is a request's last word; without=A,B (capabilities: prompt, mcp, delete, ...); mode=ID (it
has modes a and b); replay=TEXT (what a resume with replayFrom replays); resumed=STATE.
"""

import json
import os
import select
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out

import scripted_turn as base
from scripted_turn import OPTIONS, STATE, Cancelled, Session, line, log, send, step, update, write


class Turn(base.Turn):
    """A prompt, or work of the agent's own: then it has no id."""

    def __init__(self, session: Session, prompt_id: object, lines: list[str], blocks: list) -> None:
        super().__init__(session, prompt_id, blocks)
        self.responded = prompt_id is None
        self.later: list[str] = []
        STATE.next_id += 1
        self.name = f"own-{STATE.next_id}" if prompt_id is None else str(prompt_id)
        self.program = run(self, lines)


def say(turn: Turn, text: str, **more) -> None:
    update(turn, turn.session.name, base.chunk(text, **{"messageId": f"m-{turn.name}", **more}))


base.say = say


def state(turn: Turn, name: str, **more) -> None:
    body = {"sessionUpdate": "state_update", "state": name, **more}
    update(turn, turn.session.name, body)


def do_echo(turn: Turn, rest: str) -> None:
    body = {"sessionUpdate": "user_message", "messageId": f"u-{turn.id}", "content": turn.blocks}
    update(turn, turn.session.name, body)


def do_respond(turn: Turn, rest: str) -> None:
    turn.responded = True
    send(turn, line({"id": turn.id, "result": {"messageId": f"u-{turn.id}"}}))


def do_refuse(turn: Turn, rest: str) -> None:
    code, _, words = rest.partition(" ")
    turn.responded = True
    send(turn, line({"id": turn.id, "error": {"code": int(code), "message": words}}))


def do_idle(turn: Turn, rest: str) -> None:
    state(turn, "idle", **{**turn.result, **json.loads(rest or "{}")})


def do_whole(turn: Turn, rest: str) -> None:
    name, _, content = rest.partition(" ")
    body = {"sessionUpdate": "agent_message", "messageId": name}
    update(turn, turn.session.name, body | ({"content": json.loads(content)} if content else {}))


def do_permission(turn: Turn, rest: str):
    name = base.request(turn, "session/request_permission", json.loads(rest))
    yield lambda: name in STATE.answers
    say(turn, json.dumps(base.outcome(name)))


def do_takeback(turn: Turn, rest: str):
    name = base.request(turn, "session/request_permission", json.loads(rest))
    send(turn, line({"method": "$/cancel_request", "params": {"requestId": name}}))
    yield lambda: name in STATE.answers
    say(turn, json.dumps(base.outcome(name)))


DIRECTIVES = base.DIRECTIVES | {
    "say": lambda turn, rest: say(turn, base.text_of(rest)),
    "echo": do_echo,
    "respond": do_respond,
    "running": lambda turn, rest: state(turn, "running"),
    "refuse": do_refuse,
    "idle": do_idle,
    "state": lambda turn, rest: update(
        turn, turn.session.name, {"sessionUpdate": "state_update", **json.loads(rest)}
    ),
    "whole": do_whole,
    "permission": do_permission,
    "takeback": do_takeback,
    "later": lambda turn, rest: turn.later.extend(json.loads(rest)),
}


def run(turn: Turn, lines: list[str]):
    try:
        for directive in lines:
            name, _, rest = directive.partition(" ")
            waits = DIRECTIVES[name](turn, rest)
            if waits is not None:
                yield from waits
    except Cancelled:
        if not turn.responded:
            do_refuse(turn, "-32800 cancelled before it was taken in")
        state(turn, "idle", stopReason=turn.on_cancel)
    write(b"".join(turn.held or ()))
    if turn.later:
        STATE.turns.append(Turn(turn.session, None, turn.later, []))


def prompted(message: dict) -> None:
    params = message["params"]
    session = STATE.sessions[params["sessionId"]]
    session.cancelled = False
    lines = params["prompt"][-1]["text"].split("\n")
    bare = lines[0] == "bare"
    lines = lines[1:] if bare else ["echo", "respond", "running", *lines, "idle"]
    STATE.turns.append(Turn(session, message["id"], lines, params["prompt"]))


def options() -> dict:
    if "mode" not in OPTIONS:
        return {}
    choices = [{"value": one, "name": one.upper()} for one in "ab"]
    mode = {"configId": "how", "category": "mode", "name": "Mode", "type": "select"}
    return {"configOptions": [mode | {"currentValue": OPTIONS["mode"], "options": choices}]}


def initialize(params: dict) -> dict:
    STATE.client = params
    groups = {"prompt": {"image": {}, "embeddedContext": {}}, "mcp": {"stdio": {}, "http": {}}}
    groups |= {"delete": {}, "fork": {}, "additionalDirectories": {}}
    for name in OPTIONS.get("without", "").split(","):
        groups.pop(name, None)
    return {
        "protocolVersion": int(OPTIONS.get("version", 2)),
        "info": {"name": "scripted", "version": "2"},
        "capabilities": {"session": groups},
        "authMethods": [{"type": "agent", "methodId": "key", "name": "Key"}],
    }


def new(params: dict) -> dict:
    name = f"s-{len(STATE.sessions) + 1}"
    STATE.sessions[name] = Session(name)
    return {"sessionId": name, **options()}


def resume(params: dict) -> dict:
    name = params["sessionId"]
    STATE.sessions[name] = Session(name)
    if params.get("replayFrom") == {"type": "start"}:
        for kind, ident, text in (("user", "u-old", "hi"), ("agent", "m-old", OPTIONS["replay"])):
            body = {"sessionUpdate": f"{kind}_message", "messageId": ident, "content": []}
            update(None, name, body)
            update(None, name, base.chunk(text, f"{kind}_message_chunk", messageId=ident))
    current = {"sessionUpdate": "state_update", "state": OPTIONS.get("resumed", "idle")}
    update(None, name, current)
    if OPTIONS.get("resumed") == "running":
        lines = ["say going on", "idle"]
        STATE.turns.append(Turn(STATE.sessions[name], None, lines, []))
    return options()


def set_option(params: dict) -> dict:
    OPTIONS["mode"] = params["value"]
    body = {"sessionUpdate": "config_option_update", **options()}
    update(None, params["sessionId"], body)
    return options()


REQUESTS = {"initialize": initialize, "new": new, "fork": new, "resume": resume}
REQUESTS |= {"set_config_option": set_option}


def respond(message: dict) -> None:
    method = message["method"].rpartition("/")[2]
    fixed = OPTIONS.get(method, "")
    if fixed == "silent":
        return
    if fixed.startswith("error:"):
        write(line({"id": message["id"], "error": json.loads(fixed[6:])}))
    elif method == "prompt":
        prompted(message)
    else:
        act = REQUESTS.get(method, lambda params: {})
        result = json.loads(fixed) if fixed else act(message.get("params") or {})
        write(line({"id": message["id"], "result": result}))


def receive(data: bytes) -> None:
    message = json.loads(data)
    log(**{"in": message})
    if "method" not in message:
        STATE.answers[message.get("id")] = message
    elif "id" in message:
        respond(message)
    elif message["method"] == "session/cancel":
        STATE.sessions[message["params"]["sessionId"]].cancelled = True


def advance() -> None:
    turns, STATE.turns[:] = list(STATE.turns), []
    STATE.turns[:0] = [turn for turn in turns if step(turn)]


def main() -> None:
    log(event="start", argv=sys.argv, cwd=os.getcwd())
    rest = b""
    while True:
        if select.select([0], [], [], 0.02 if STATE.turns else None)[0]:
            data = os.read(0, 1 << 20)
            if not data:
                log(event="eof")
                return
            *lines, rest = (rest + data).split(b"\n")
            for piece in lines:
                receive(piece)
                advance()
        advance()


main()
