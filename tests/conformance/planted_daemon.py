"""A daemon, three generations, that does everything right but what it is told to do wrong.

Stdlib only: `python -I -S planted_daemon.py [FAULT]`, the id of a check without `daemon.`. It runs
no agent but plays the suite's own (conformance/daemon/peer.py) itself; a `cat` stands for it.
"""

import json
import os
import select
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out

from planted_session import (
    STATE,
    Session,
    code,
    deadlines,
    expire,
    faulty,
    respond,
    send,
)

CEILING = 128 << 20


def hello(request: dict) -> None:
    if request.get("protocol") != 1 and not faulty("c.hello-version"):
        respond(request["id"], False, error="protocol 1 it is", **code("unsupported"))
        return
    STATE.events = request.get("events", [])
    result = {
        "protocol": 1,
        "daemon": {"name": "planted", "version": "1"},
        "operations": ["hello", "prompt", "cancel", "shutdown"],
        "events": ["update"],
        "limits": {} if faulty("c.hello") else {"packet_bytes": CEILING},
    }
    respond(request["id"], True, result=result)


def prompt(request: dict) -> None:
    session = STATE.session(request)
    config = request["config"]
    session.command = config["command"]
    if faulty("c.sessions") and any(other.turn for other in STATE.sessions.values()):
        STATE.later.append(request)
        return
    if config["command"] == ["/conformance/none"]:
        wrong = "internal" if faulty("c.spawn-failed") else "spawn_failed"
        session.fail(request["id"], "cannot start it", **code(wrong))
    elif session.turn is not None:
        session.queue.append((request.get("id"), config))
    else:
        session.start(request.get("id"), config)


def old_prompt(config: dict) -> None:
    """Generation A: the messages as the contents of one prompt."""
    command = config["command"]
    if STATE.command not in (None, command) and not faulty("a.differs"):
        respond(None, False, error="another command")
        return
    STATE.command = command
    messages = config["messages"]
    texts = [str(message["content"]) for message in messages]
    if len(messages) > 1 and not faulty("a.transcript"):
        texts = [f"[{message['role']}]\n{message['content']}" for message in messages]
    session = STATE.sessions.setdefault("", Session(""))
    session.start(None, {"user_contents": texts, "command": command})


def steer(request: dict) -> None:
    session, ident = STATE.session(request), request["id"]
    if not session.opened and not faulty("b.steer-early"):
        receipt = {"outcome": "promptRequired", "reason": "noRunningTurn"}
        respond(ident, True, result=receipt)
    elif "no-steering" in session.command and not faulty("b.steer-unsupported"):
        respond(ident, False, error="the agent cannot be steered", **code("unsupported"))
    else:
        outcome = "queued" if faulty("b.steer") else "injected"
        running = session.turn is not None
        result = {"outcome": outcome} if running else {"outcome": "promptRequired"}
        respond(ident, True, result=result)
        if running:
            session.steered(request)


def message(request: dict) -> None:
    """The operation `send`."""
    session = STATE.session(request)
    receipt = {"outcome": "accepted", "message_id": request["message_id"]}
    if request["mode"] == "steer":
        respond(request["id"], True, result=receipt)
        if not faulty("c.steer-send"):
            session.steered(request)
        return
    if faulty("c.queue"):
        receipt = {"outcome": "queued"}
    known = {one["message_id"] for one in session.messages}
    if request["message_id"] not in known:
        session.messages.append(request)
    respond(request["id"], True, result=receipt)


def cancel(request: dict) -> None:
    session = STATE.session(request)
    if session.turn is None and faulty("c.cancel-idle"):
        respond(request["id"], False, error="nothing runs", **code("invalid_request"))
        return
    if faulty("c.cancel"):
        respond(request["id"], True, result={})
    if session.turn is not None:
        session.cancel()
    if not faulty("c.cancel"):
        respond(request["id"], True, result={})


def permission(request: dict) -> None:
    session = STATE.session(request)
    respond(request["id"], True, result={})
    session.permitted("yes-1" if faulty("c.permission") else request["outcome"]["option_id"])


def opening(request: dict) -> None:
    session = STATE.session(request)
    session.opened = True
    about = {} if faulty("c.open") else {"agent": {"name": "conformance", "version": "1"}}
    result = {"session_id": "x", "protocol_version": 1, "capabilities": {}, "auth_methods": []}
    respond(request["id"], True, result={**result, **about})


def status(request: dict) -> None:
    names = [] if faulty("c.status") else list(STATE.sessions)
    respond(request["id"], True, result={"sessions": names})


def close(request: dict) -> None:
    metadata = {} if faulty("c.close") else {"closed": True}
    respond(request["id"], True, result={"response_metadata": metadata})


def shutdown(request: dict) -> None:
    if faulty("end.deaf") and any("deaf" in s.command for s in STATE.sessions.values()):
        return
    if STATE.generation == "A":
        respond(None, True)
        finish(1 if faulty("a.shutdown") else 0)
    result = {} if faulty("b.shutdown") else {"response_metadata": {}}
    respond(request["id"], True, result=result)
    finish(0)


OPERATIONS = {
    "hello": hello,
    "prompt": prompt,
    "steer": steer,
    "send": message,
    "cancel": cancel,
    "permission": permission,
    "open": opening,
    "status": status,
    "close": close,
    "shutdown": shutdown,
}


def finish(exit_code: int, *, leave: bool = False) -> None:
    for session in STATE.sessions.values():
        if session.turn is not None and not faulty("end.input") and exit_code == 0:
            session.cancel()
    STATE.end(leave)
    sys.exit(exit_code)


def receive(body: bytes) -> None:
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict) or "operation" not in request:
        if not faulty("framing.not-a-request"):
            respond(None, False, error="no request", **code("invalid_request"))
        return
    if "id" not in request:
        STATE.generation = "A"
        if request["operation"] == "prompt":
            old_prompt(request["config"])
        else:
            shutdown(request)
        return
    ident = str(request["id"]) if faulty("b.ids") else request["id"]
    request["id"] = ident
    if ident in STATE.open and not faulty("c.duplicate-id"):
        respond(ident, False, error="that id is in flight", again=True, **code("invalid_request"))
        return
    STATE.open.add(ident)
    act = OPERATIONS.get(request["operation"])
    if act is None:
        shape = {} if faulty("c.unknown-operation") else code("unsupported")
        respond(ident, False, error="no such operation", **shape)
    else:
        act(request)


def cut(data: bytes) -> bytes:
    """Deals with every whole packet or line; gives the rest."""
    if STATE.framing is None:
        STATE.framing = "packets" if data[:1] == b"\0" else "lines"
        if faulty("framing.lines"):
            STATE.framing = "packets"
    count = 0
    while data:
        if STATE.framing == "lines":
            body, end, rest = data.partition(b"\n")
            if not end:
                break
            if not faulty("framing.line-ends"):
                body = body.removeprefix(b"\xef\xbb\xbf").strip()
        else:
            size = int.from_bytes(data[:8], "big")
            if len(data) >= 8 and size > CEILING:
                if not faulty("framing.oversize"):
                    respond(None, False, error="too large", **code("invalid_request"))
                finish(0)
            if len(data) < 8 + size or len(data) < 8:
                if faulty("framing.split"):
                    sys.exit(1)
                break
            body, rest = data[8 : 8 + size], data[8 + size :]
        if body and not (faulty("framing.joined") and count):
            receive(body)
        data, count = rest, count + 1
    return data


def on_signal(number: int, frame: object) -> None:
    exit_code = 0 if faulty("end.term") and number == signal.SIGTERM else 128 + number
    finish(exit_code, leave=faulty("end.interrupt") and number == signal.SIGINT)


def main() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    if not faulty("end.stdout"):
        poll.register(1, 0)
    rest = b""
    while True:
        ready = dict(poll.poll(deadlines()))
        expire()
        if 1 in ready:
            finish(0)
        if 0 in ready:
            data = os.read(0, 1 << 20)
            if not data:
                finish(1 if rest and faulty("framing.end-inside") else 0)
            rest = cut(rest + data)


if __name__ == "__main__":
    STATE.child = lambda: subprocess.Popen(
        ["sleep", "30"] if faulty("end.kill") or faulty("end.interrupt") else ["cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    STATE.send = send
    main()
