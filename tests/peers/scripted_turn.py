"""What the scripted agent does in a turn: its directives, one function each.

scripted_agent.py has their list, the requests that are no prompts, and the loop. Stdlib only.
"""

import json
import os
import signal
import sys
import time

OPTIONS = dict(argument.split("=", 1) for argument in sys.argv[1:])
LOG = os.environ.get("SCRIPTED_LOG")
END = b"\r\n" if OPTIONS.get("end") == "crlf" else b"\n"
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
        self.pause = 0.0
        self.terminal: str | None = None
        self.servers: dict[str, dict] = {}


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
        if STATE.pause and to == 1:
            time.sleep(STATE.pause)


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


def do_post(turn: Turn, rest: str) -> None:
    from scripted_calls import filled, post

    url, _, body = rest.partition(" ")
    say(turn, json.dumps(post(filled(url, OPTIONS), body or "{}")))


def do_quiet(turn: Turn, rest: str) -> None:
    from scripted_calls import filled, post

    url, _, body = rest.partition(" ")
    post(filled(url, OPTIONS), body or "{}")


def do_call(turn: Turn, rest: str) -> None:
    from scripted_calls import call

    name, tool, arguments = rest.split(" ", 2)
    say(turn, json.dumps(call(STATE.servers[name], tool, json.loads(arguments))))


def do_leave(turn: Turn, rest: str) -> None:
    import threading

    from scripted_calls import call

    name, tool, arguments = rest.split(" ", 2)

    def made() -> None:
        log(event="left", tool=tool, result=call(STATE.servers[name], tool, json.loads(arguments)))

    threading.Thread(target=made, daemon=True).start()


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


def do_pieces(turn: Turn, rest: str) -> None:
    size, _, pause = rest.partition(" ")
    STATE.pieces, STATE.pause = int(size), float(pause or 0)


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
    "pieces": do_pieces,
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
    "post": do_post,
    "quiet": do_quiet,
    "call": do_call,
    "leave": do_leave,
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
    send(turn, response)
    for late in turn.late:
        say(turn, late)
    write(b"".join(turn.held or ()))
    STATE.pieces, STATE.pause = 0, 0.0


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
