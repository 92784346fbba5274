"""A deterministic ACP agent for tests: the prompt's text says what it does, options say how it is.

Stdlib only; start it as `python -I -S scripted_agent.py [OPTION...]` (`tests.peers.agent` builds
that command). With SCRIPTED_LOG=FILE in its environment it appends one JSON object a line: what it
read (`in`, the message; `raw` if it is not JSON), and what befell it (`event`: start, eof, signal).

Each line of a prompt's text is one directive; unknown ones are said. Then the turn ends.

    say TEXT                one agent_message_chunk (TEXT in double quotes is a JSON string)
    id ID TEXT              the same with that messageId; think TEXT: an agent_thought_chunk
    tool ID STATUS          a tool_call; again with the same ID: a tool_call_update
    update JSON             a session/update with that update
    flood N SIZE            N chunks of SIZE characters; size N: one chunk of N times x
    raw TEXT, bytes HEX     a line, or bytes, as they stand ($ID: the prompt's id)
    batch                   what follows, the response too, goes out in one write
    pieces N                what follows goes out N bytes at a time
    stop REASON, result JSON, error JSON    what the response says; answer TEXT: it, as it stands
    late TEXT               a chunk after the response
    permission JSON [JSON]  session/request_permission (options, tool call); says the outcome
    request METHOD [JSON]   a request to the client (sessionId added); says its result or error
    ask METHOD [JSON]       the same, without waiting; notify METHOD [JSON]
    steps JSON              a list of [METHOD, PARAMS] requests; "$terminal": the last terminalId
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
import time

OPTIONS = dict(argument.split("=", 1) for argument in sys.argv[1:])
LOG = os.environ.get("SCRIPTED_LOG")
END = b"\r\n" if OPTIONS.get("end") == "crlf" else b"\n"
DEFAULTS = {"image", "embedded", "http", "load", "list", "resume", "fork", "close", "delete"}
ABILITIES = (DEFAULTS | set(OPTIONS.get("with", "").split(","))) - set(
    OPTIONS.get("without", "").split(",")
)
SLEEPER = "import signal, time\nif {deaf}: [signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]\n"


class Cancelled(Exception):
    """Raised inside a turn's program when its session is cancelled and it did not opt out."""


class State:
    """What the whole process knows."""

    def __init__(self) -> None:
        self.client: dict = {}
        self.answers: dict = {}
        self.sessions: dict[str, Session] = {}
        self.turns: list[Turn] = []
        self.next_id = self.pieces = 0
        self.terminal: str | None = None


class Session:
    """One session: whether it was cancelled in this turn, and what steers brought."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cancelled = False
        self.steers: list = []


class Turn:
    """One running prompt: its program, what it waits for, and what its response will say."""

    def __init__(self, session: Session, prompt_id, blocks: list) -> None:
        self.session, self.id, self.blocks = session, prompt_id, blocks
        self.result: dict = {"stopReason": "end_turn"}
        self.error = self.answer = None
        self.on_cancel, self.told = "cancelled", False
        self.late: list[str] = []
        self.held: list[bytes] | None = None
        self.tools: set[str] = set()
        self.ready = lambda: True
        self.program = run_turn(self)


STATE = State()


def log(**record) -> None:
    if LOG:
        line = json.dumps({"t": time.monotonic(), "pid": os.getpid(), **record}).encode() + b"\n"
        file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line)
        os.close(file)


def write(data: bytes, to: int = 1, size: int | None = None) -> None:
    size = size or STATE.pieces or len(data)
    for start in range(0, len(data), size or 1):
        view = memoryview(data)[start : start + size]
        while view:
            view = view[os.write(to, view) :]


def line(message: dict) -> bytes:
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + END
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8: JavaScript escapes it too
        return json.dumps({"jsonrpc": "2.0", **message}).encode() + END


def send(turn: "Turn | None", data: bytes) -> None:
    if turn is not None and turn.held is not None:
        turn.held.append(data)
    else:
        write(data)


def update(turn: "Turn | None", session: str, body: dict) -> None:
    send(turn, bytes.fromhex(OPTIONS.get("between", "")))
    send(turn, line({"method": "session/update", "params": {"sessionId": session, "update": body}}))


def chunk(text: str, kind: str = "agent_message_chunk", **more) -> dict:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **more}


def say(turn: Turn, text: str, **more) -> None:
    update(turn, turn.session.name, chunk(text, **more))


def noise(size: int) -> None:
    write(b"e" * (size // 2) + (b"x" * 99 + b"\n") * (size // 200), to=2, size=size)


def spawn(count: int, deaf: bool) -> list[int]:
    import subprocess

    code = SLEEPER.format(deaf=deaf) + "time.sleep(600)"
    command = [sys.executable, "-I", "-S", "-c", code]
    quiet = {"stdin": subprocess.DEVNULL, "start_new_session": True}
    return [subprocess.Popen(command, **quiet).pid for _ in range(count)]


def request(turn: Turn, method: str, params: dict) -> str:
    STATE.next_id += 1
    name = f"agent-{STATE.next_id}"
    if "sessionId" not in params:
        params = {"sessionId": turn.session.name, **params}
    if params.get("terminalId") == "$terminal":
        params["terminalId"] = STATE.terminal
    send(turn, line({"id": name, "method": method, "params": params}))
    if turn.held:  # an unsent request would never be answered
        write(b"".join(turn.held))
        turn.held = []
    return name


def outcome(name: str) -> object:
    answer = STATE.answers.pop(name)
    result = answer.get("result")
    if isinstance(result, dict) and "terminalId" in result:
        STATE.terminal = result["terminalId"]
    return answer.get("error") or result


# The directives: a function (turn, rest of the line); a generator's yields are what it waits for.


def do_tool(turn: Turn, rest: str) -> None:
    name, _, status = rest.partition(" ")
    kind = "tool_call_update" if name in turn.tools else "tool_call"
    turn.tools.add(name)
    body = {"sessionUpdate": kind, "toolCallId": name, "title": name, "status": status or "pending"}
    update(turn, turn.session.name, body)


def do_flood(turn: Turn, rest: str) -> None:
    count, size = map(int, rest.split())
    for number in range(count):
        say(turn, f"{number} ".ljust(size, ".")[:size])


def do_permission(turn: Turn, rest: str):
    options, end = json.JSONDecoder().raw_decode(rest)
    call = json.loads(rest[end:] or '{"toolCallId":"call-1","title":"run","kind":"execute"}')
    name = request(turn, "session/request_permission", {"toolCall": call, "options": options})
    yield lambda: name in STATE.answers
    say(turn, json.dumps(outcome(name)))


def do_request(turn: Turn, rest: str):
    method, _, params = rest.partition(" ")
    name = request(turn, method, json.loads(params or "{}"))
    yield lambda: name in STATE.answers
    say(turn, json.dumps(outcome(name)))


def do_steps(turn: Turn, rest: str):
    results = []
    for method, params in json.loads(rest):
        name = request(turn, method, params)
        yield lambda name=name: name in STATE.answers
        results.append(outcome(name))
    say(turn, json.dumps(results))


def do_ask(turn: Turn, rest: str) -> None:
    method, _, params = rest.partition(" ")
    request(turn, method, json.loads(params or "{}"))


def do_notify(turn: Turn, rest: str) -> None:
    method, _, params = rest.partition(" ")
    send(turn, line({"method": method, "params": json.loads(params or "{}")}))


def do_wait(turn: Turn, rest: str):
    session = turn.session
    if rest == "cancel":
        turn.on_cancel = "ignore" if turn.on_cancel == "cancelled" else turn.on_cancel
        yield lambda: session.cancelled
    elif rest == "steer":
        yield lambda: session.steers
        say(turn, json.dumps(session.steers.pop(0)))
    else:
        yield lambda: os.path.exists(rest)


def do_env(turn: Turn, rest: str) -> None:
    names = rest.split() or list(os.environ)
    say(turn, json.dumps({name: os.environ.get(name) for name in names}))


def do_spawn(turn: Turn, rest: str) -> None:
    count, _, deaf = rest.partition(" ")
    say(turn, json.dumps(spawn(int(count), deaf == "deaf")))


def do_eof(turn: Turn, rest: str):
    os.close(1)
    yield lambda: False


def do_half(turn: Turn, rest: str) -> None:
    write(line({"method": "session/update", "params": {}})[:30])
    os._exit(0)


def do_batch(turn: Turn, rest: str) -> None:
    turn.held = []


def do_hang(turn: Turn, rest: str):
    turn.on_cancel = "ignore"
    yield lambda: False


def text_of(rest: str) -> str:
    return json.loads(rest) if rest[:1] == '"' else rest


def identified(turn: Turn, rest: str) -> None:
    name, _, text = rest.partition(" ")
    say(turn, text_of(text), messageId=name)


DIRECTIVES = {
    "say": lambda turn, rest: say(turn, text_of(rest)),
    "id": identified,
    "think": lambda turn, rest: say(turn, rest, kind="agent_thought_chunk"),
    "tool": do_tool,
    "update": lambda turn, rest: update(turn, turn.session.name, json.loads(rest)),
    "flood": do_flood,
    "size": lambda turn, rest: say(turn, "x" * int(rest)),
    "raw": lambda turn, rest: send(
        turn, rest.replace("$ID", json.dumps(turn.id)).encode("utf-8", "surrogatepass") + b"\n"
    ),
    "bytes": lambda turn, rest: send(turn, bytes.fromhex(rest)),
    "batch": do_batch,
    "pieces": lambda turn, rest: setattr(State, "pieces", int(rest)),
    "stop": lambda turn, rest: turn.result.update(stopReason=rest),
    "result": lambda turn, rest: turn.result.update(json.loads(rest)),
    "error": lambda turn, rest: setattr(turn, "error", json.loads(rest)),
    "answer": lambda turn, rest: setattr(turn, "answer", rest),
    "late": lambda turn, rest: turn.late.append(text_of(rest)),
    "permission": do_permission,
    "request": do_request,
    "ask": do_ask,
    "notify": do_notify,
    "steps": do_steps,
    "oncancel": lambda turn, rest: setattr(turn, "on_cancel", rest),
    "wait": do_wait,
    "env": do_env,
    "dump": lambda turn, rest: say(turn, json.dumps(turn.blocks)),
    "cwd": lambda turn, rest: say(turn, os.getcwd()),
    "pid": lambda turn, rest: say(turn, str(os.getpid())),
    "peer": lambda turn, rest: say(turn, json.dumps(STATE.client)),
    "spawn": do_spawn,
    "stderr": lambda turn, rest: noise(int(rest)),
    "exit": lambda turn, rest: os._exit(int(rest)),
    "kill": lambda turn, rest: os.kill(os.getpid(), signal.SIGKILL),
    "half": do_half,
    "eof": do_eof,
    "hang": do_hang,
}


def run_turn(turn: Turn):
    text = next((b["text"] for b in reversed(turn.blocks) if b.get("type") == "text"), "")
    try:
        for directive in text.split("\n"):
            name, _, rest = directive.partition(" ")
            act = DIRECTIVES.get(name)
            waits = act(turn, rest) if act else say(turn, directive)
            if waits is not None:
                yield from waits
    except Cancelled:
        if turn.on_cancel.startswith("text: "):
            say(turn, turn.on_cancel.removeprefix("text: "))
            turn.on_cancel = "cancelled"
        turn.result["stopReason"] = turn.on_cancel
    noise(int(OPTIONS.get("stderr", 0)))
    ending = {"error": turn.error} if turn.error is not None else {"result": turn.result}
    response = line({"id": turn.id, **ending})
    if turn.answer is not None:
        response = turn.answer.replace("$ID", json.dumps(turn.id)).encode() + b"\n"
    write(b"".join([*(turn.held or ()), response]))
    STATE.pieces, turn.held = 0, None
    for late in turn.late:
        say(turn, late)


def step(turn: Turn) -> bool:
    """Runs a turn as far as it goes; False when it has ended."""
    try:
        if turn.session.cancelled and not turn.told and turn.on_cancel != "ignore":
            turn.told = True
            if turn.on_cancel == "hang":
                turn.ready = lambda: False
                return True
            turn.ready = turn.program.throw(Cancelled)
        while turn.ready():
            turn.ready = next(turn.program)
    except StopIteration:
        return False
    return True


def advance() -> None:
    STATE.turns[:] = [turn for turn in STATE.turns if step(turn)]


# The client's requests.


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


REQUESTS = {
    "initialize": initialize,
    "new": new,
    "load": load,
    "resume": lambda params: open_session(params["sessionId"]),
    "fork": lambda params: {"sessionId": f"{params['sessionId']}-fork", **open_session("fork")},
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
        result = json.loads(fixed) if fixed else act(message.get("params") or {})
        write(line({"id": message["id"], "result": result}))


def receive(data: bytes) -> None:
    try:
        message = json.loads(data)
    except ValueError:
        log(raw=data.decode("utf-8", "replace"))
        return
    log(**{"in": message})
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
