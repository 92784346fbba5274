"""A deterministic ACP agent for tests: the prompt's text says what it does, options say how it is.

Stdlib only; start it as `python -I -S scripted_agent.py [OPTION...]` (`tests.peers.agent` builds
that command). With SCRIPTED_LOG=FILE in its environment it appends one JSON object a line: what it
read (`in`, the message, and whether it had unescaped Unicode line ends, `separators`; `raw` if it
is not JSON), and what befell it (`event`: start, eof, signal).

Each line of a prompt's text is one directive; unknown ones are said. Then the turn ends.

    say TEXT                one agent_message_chunk (TEXT in double quotes is a JSON string)
    id ID TEXT              the same with that messageId; think TEXT: an agent_thought_chunk
    tool ID STATUS          a tool_call; again with the same ID: a tool_call_update
    update JSON             a session/update with that update
    flood N SIZE            N chunks of SIZE characters; size N: one chunk of N times x
    raw TEXT, bytes HEX     a line, or bytes, as they stand ($ID: the prompt's id)
    batch                   what follows, the response and late chunks too, goes out in one write
    pieces N [SECONDS]      what follows goes out N bytes at a time, with a pause after each
    stop REASON, result JSON, error JSON    what the response says; answer TEXT: it, as it stands
    late TEXT               a chunk after the response
    permission JSON [JSON]  session/request_permission (options, tool call); says the outcome
    request METHOD [JSON]   a request to the client (sessionId added); says its result or error
    ask METHOD [JSON]       the same, without waiting; notify METHOD [JSON]
    steps JSON              a list of [METHOD, PARAMS] requests; "$terminal": the last terminalId
    post URL [JSON]         a model request; $NAME is taken from the environment or the options
    quiet URL [JSON]        the same, without saying what came of it
    call SERVER TOOL JSON   a call of a tool of the session's MCP servers; says the result
    leave SERVER TOOL JSON  the same in the background, nothing said: the log's event `left` tells
    oncancel HOW            cancelled (default), ignore, hang, or a stop reason; text: say LATE
    wait cancel|steer|FILE  until then; says what a steer brought
    env [NAME...], dump, cwd, pid, peer     says: environment, the prompt's blocks, directory, pid,
                            the client's initialize parameters
    spawn N [deaf]          N grandchildren in sessions of their own; says their pids
    stderr N                N bytes on stderr, half of them without a line end
    exit N, kill, half, eof, hang     ends: by code, SIGKILL, in mid-line; stdout closed; never

Options, NAME=VALUE:

    METHOD=silent | error:CODE:MESSAGE | JSON | raw:LINE     what a request gets; METHOD is its last
                            word: initialize, new, load, resume, fork, close, prompt, steering...
    with=A,B without=A,B    capabilities: image, audio, embedded, http, sse, load, list, resume,
                            fork, close, delete, steering (by default all but sse, audio, steering)
    start=HEX, between=HEX  bytes on stdout before anything, and before each update
    early=N                 N updates before session/new's answer
    stderr=N                N bytes on stderr before each answer
    replay=TEXT             what session/load replays as the old reply
    end=crlf, bom=1         line ends; a byte order mark before the first line
    eof=ignore, term=ignore deaf to the end of stdin; to SIGTERM and SIGINT
    spawn=N, spawn=deaf     grandchildren in sessions of their own, from the start
    session=ID, version=N, close_meta=JSON, modes=1
"""

import json
import os
import select
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out

from scripted_turn import (
    OPTIONS,
    STATE,
    Session,
    Turn,
    chunk,
    line,
    log,
    noise,
    spawn,
    step,
    update,
    write,
)

DEFAULTS = {"image", "embedded", "http", "load", "list", "resume", "fork", "close", "delete"}
ABILITIES = (DEFAULTS | set(OPTIONS.get("with", "").split(","))) - set(
    OPTIONS.get("without", "").split(",")
)


def advance() -> None:
    STATE.turns[:] = [turn for turn in STATE.turns if step(turn)]


def initialize(params: dict) -> dict:
    STATE.client = params
    has = ABILITIES.__contains__
    sessions = {name: {} for name in ("list", "resume", "fork", "close", "delete") if has(name)}
    return {
        "protocolVersion": int(OPTIONS.get("version", 1)),
        "agentCapabilities": {
            "loadSession": has("load"),
            "promptCapabilities": {
                "image": has("image"),
                "audio": has("audio"),
                "embeddedContext": has("embedded"),
            },
            "mcpCapabilities": {"http": has("http"), "sse": has("sse")},
            "sessionCapabilities": sessions,
        },
        "authMethods": [],
        "agentInfo": {"name": "scripted", "version": "1"},
        **({"_meta": {"steering": {"supported": True}}} if has("steering") else {}),
    }


def open_session(name: str) -> dict:
    STATE.sessions[name] = Session(name)
    if OPTIONS.get("modes"):
        modes = [{"id": "code", "name": "Code"}, {"id": "ask", "name": "Ask"}]
        return {"modes": {"currentModeId": "code", "availableModes": modes}}
    return {}


def new(params: dict) -> dict:
    number = len(STATE.sessions) + 1
    name = OPTIONS.get("session", "s") + (f"-{number}" if number > 1 else "")
    result = open_session(name)
    for index in range(int(OPTIONS.get("early", 0))):
        update(None, name, {"sessionUpdate": "available_commands_update", "index": index})
    return {"sessionId": name, **result}


def load(params: dict) -> dict:
    name, old = params["sessionId"], OPTIONS.get("replay")
    if old is not None:
        update(None, name, chunk("hi", "user_message_chunk"))
        update(None, name, chunk(old))
        call = {"toolCallId": "old-1", "title": "old", "status": "completed"}
        update(None, name, {"sessionUpdate": "tool_call", **call})
    return open_session(name)


def steer(params: dict) -> dict:
    busy = any(turn.session.name == params["sessionId"] for turn in STATE.turns)
    if not busy:
        return {"outcome": "promptRequired", "reason": "noRunningTurn"}
    STATE.sessions[params["sessionId"]].steers.append(params)
    return {"outcome": "injected"}


def fork(params: dict) -> dict:
    name = f"{params['sessionId']}-fork"
    return {"sessionId": name, **open_session(name)}


REQUESTS = {
    "initialize": initialize,
    "new": new,
    "load": load,
    "resume": lambda params: open_session(params["sessionId"]),
    "fork": fork,
    "list": lambda params: {"sessions": [{"sessionId": n, "cwd": "/"} for n in STATE.sessions]},
    "close": lambda params: {"_meta": json.loads(OPTIONS.get("close_meta", "{}"))},
    "steering": steer,
}


def respond(message: dict) -> None:
    method = message["method"].rpartition("/")[2]
    fixed = OPTIONS.get(method, "")
    noise(int(OPTIONS.get("stderr", 0)))
    if fixed == "silent":
        return
    if fixed.startswith("raw:"):
        write(fixed[4:].replace("$ID", json.dumps(message["id"])).encode() + b"\n")
    elif fixed.startswith("error:"):
        _, code, words = fixed.split(":", 2)
        write(line({"id": message["id"], "error": {"code": int(code), "message": words}}))
    elif method == "prompt":
        params = message["params"]
        session = STATE.sessions.setdefault(params["sessionId"], Session(params["sessionId"]))
        session.cancelled = False
        STATE.turns.append(Turn(session, message["id"], params["prompt"]))
    else:
        act = REQUESTS.get(method, lambda params: {})
        params = message.get("params") or {}
        if "mcpServers" in params:
            STATE.servers = {server["name"]: server for server in params["mcpServers"]}
        result = json.loads(fixed) if fixed else act(params)
        write(line({"id": message["id"], "result": result}))


def receive(data: bytes) -> None:
    try:
        message = json.loads(data)
    except ValueError:
        log(raw=data.decode("utf-8", "replace"))
        return
    separators = any(end.encode() in data for end in "\u2028\u2029\x85")
    log(**{"in": message}, separators=separators)
    if "method" not in message:
        STATE.answers[message.get("id")] = message
    elif "id" in message:
        respond(message)
    elif message["method"] == "session/cancel":
        session = STATE.sessions.get(message["params"]["sessionId"])
        if session is not None:
            session.cancelled = True


def on_signal(number: int, frame: object) -> None:
    log(event="signal", number=number)
    if OPTIONS.get("term") != "ignore":
        os._exit(128 + number)


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    log(event="start", argv=sys.argv, cwd=os.getcwd())
    write(bytes.fromhex(OPTIONS.get("start", "")) + (b"\xef\xbb\xbf" if "bom" in OPTIONS else b""))
    if "spawn" in OPTIONS:
        deaf = OPTIONS["spawn"] == "deaf"
        spawn(1 if deaf else int(OPTIONS["spawn"]), deaf)
    parts: list[bytes] = []
    while True:
        waits_for_file = bool(STATE.turns)
        if select.select([0], [], [], 0.02 if waits_for_file else None)[0]:
            data = os.read(0, 1 << 20)
            if not data:
                log(event="eof")
                while OPTIONS.get("eof") == "ignore":
                    signal.pause()
                return
            *lines, rest = data.split(b"\n")
            for piece in lines:
                receive(b"".join([*parts, piece]))
                parts.clear()
                advance()
            parts.append(rest)
        advance()


main()
