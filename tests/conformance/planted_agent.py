"""An ACP agent, versions 1 and 2, that does everything right but what it is told to do wrong.

Stdlib only: `python -I -S planted_agent.py STORE [FAULT] [NAME=VALUE...]`. STORE is a directory for
its sessions; FAULT the id of a check (without `agent.`) that must find the fault, or `-`. Prompts
with `slow` in them run until they are cancelled, those with `tool` ask for permission; any other is
answered. Options: without=A,B (capabilities), auth=required.
"""

import json
import os
import select
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # -I leaves it out

from planted_turn import (
    STATE,
    STORE,
    WITHOUT,
    Refused,
    Session,
    Turn,
    faulty,
    out,
    update,
    write,
)

ENDS = ("\u2028", "\u2029", "\u0085")


def find(params: dict) -> Session:
    name = params["sessionId"]
    if name not in STATE.sessions:
        if faulty("session.unknown"):
            return Session(name, "/")
        raise Refused(-32002, f"no session {name}")
    return STATE.sessions[name]


def initialize(params: dict) -> dict:
    asked = params["protocolVersion"]
    STATE.version = 2 if asked >= 2 and "v2" not in WITHOUT else 1
    if asked > 2 and faulty("initialize.version-unknown"):
        STATE.version = asked
    if faulty("initialize.unknown-members") and params.get("clientCapabilities"):
        raise Refused(-32602, "unknown capabilities")
    about = {"name": "planted", "version": "1"}
    if STATE.version != 1:
        if faulty("v2.initialize"):
            return {"protocolVersion": STATE.version, "info": about, "capabilities": {}}
        capabilities = {"session": {"prompt": {}}}
        return {"protocolVersion": STATE.version, "info": about, "capabilities": capabilities}
    methods = [{"id": "login", "name": "Log in"}]
    if faulty("authenticate.ids"):
        methods *= 2
    if faulty("authenticate.terminal"):
        methods.append({"id": "t", "name": "t", "type": "terminal"})
    version = "1" if faulty("initialize.answer") else 2 if faulty("initialize.version") else 1
    names = ("list", "resume", "fork", "close", "delete")
    capabilities = {
        "loadSession": "load" not in WITHOUT,
        "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
        "sessionCapabilities": {name: {} for name in names if name not in WITHOUT},
    }
    auth = {} if faulty("session.auth-required") else {"authMethods": methods}
    agent = {} if faulty("initialize.info") else {"agentInfo": about}
    return {"protocolVersion": version, "agentCapabilities": capabilities, **auth, **agent}


def authenticate(params: dict) -> dict:
    known = params["methodId"] == "login" or faulty("authenticate.unknown")
    if not known or faulty("authenticate.method"):
        raise Refused(-32602, "no such method")
    STATE.logged_in = True
    return {}


def options(session: Session) -> list[dict]:
    values = [{"value": value, "name": value} for value in ("m1", "m2")]
    current = "m9" if faulty("config.current") else session.config
    model = {"id": "model", "name": "Model", "type": "select"}
    found = [{**model, "currentValue": current, "options": values}]
    if faulty("config.boolean"):
        found.append({"id": "fast", "name": "Fast", "type": "boolean", "currentValue": False})
    return found


def opened(name: str, cwd: str) -> dict:
    session = STATE.sessions[name] = Session(name, cwd)
    current = "none" if faulty("mode.current") else "code"
    modes = [{"id": name, "name": name} for name in ("code", "ask")]
    if STATE.version == 2:
        return {}
    return {
        "modes": {"currentModeId": current, "availableModes": modes},
        "configOptions": options(session),
    }


def new(params: dict) -> dict:
    if not STATE.logged_in:
        raise Refused(-32000, "Authentication required")
    if not isinstance(params["cwd"], str):
        raise Refused(-32603 if faulty("rpc.invalid-params") else -32602, "cwd is no string")
    if not params["cwd"].startswith("/") and not faulty("session.relative-cwd"):
        raise Refused(-32602, "cwd is not absolute")
    if faulty("stdio.leaves-nothing"):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        subprocess.Popen(["sleep", "30"], start_new_session=True, **pipes)
    for server in params["mcpServers"]:
        connect(server)
    number = 1 if faulty("session.distinct") else len(list(STORE.iterdir())) + 1
    name = "" if faulty("session.new") else f"s{number}"
    (STORE / f"{name}.json").write_text(json.dumps([params["cwd"], 0]))
    return {"sessionId": name, **opened(name, params["cwd"])}


def connect(server: dict) -> None:
    """Says hello to an MCP server, and leaves it at that."""
    if faulty("session.mcp-stdio"):
        return
    environment = {entry["name"]: entry["value"] for entry in server["env"]}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    said = subprocess.run(
        [server["command"], *server["args"]],
        input=json.dumps(hello).encode() + b"\n",
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(said.stdout)["result"]


def stored(name: str) -> list:
    file = STORE / f"{name}.json"
    if not file.exists():
        raise Refused(-32002, f"no session {name}")
    return json.loads(file.read_text())


def replay(name: str) -> None:
    for kind in ("user_message_chunk", "agent_message_chunk"):
        content = {"type": "text", "text": "as it was"}
        update(name, {"sessionUpdate": kind, "content": content})


def restore(params: dict, method: str, *, replays: bool) -> dict:
    name = params["sessionId"]
    if not faulty(f"{method}.unknown"):
        stored(name)
    if replays:
        replay(name)
    result = opened(name, params["cwd"])
    if faulty(f"{method}.works"):
        del STATE.sessions[name]
    return result


def load(params: dict) -> dict:
    return restore(params, "load", replays=not faulty("load.replay"))


def resume(params: dict) -> dict:
    return restore(params, "resume", replays=faulty("resume.no-replay"))


def fork(params: dict) -> dict:
    stored(params["sessionId"])
    if faulty("fork.works"):
        return {"sessionId": params["sessionId"]}
    return new({**params, "mcpServers": []})


def listing(params: dict) -> dict:
    found = [(file.stem, json.loads(file.read_text())[0]) for file in STORE.iterdir()]
    wanted = None if faulty("list.cwd") else params.get("cwd")
    if faulty("list.works"):
        found = [(name, "/elsewhere") for name, _ in found] if wanted is None else found
    return {
        "sessions": [
            {"sessionId": name, "cwd": cwd} for name, cwd in found if wanted in (None, cwd)
        ]
    }


def close(params: dict) -> dict:
    session = find(params)
    if session.turn is None and faulty("close.idle"):
        raise Refused(-32603, "nothing to close")
    if session.turn is not None and not faulty("close.works"):
        session.turn.end("cancelled")
    elif session.turn is not None:
        session.turn.end("end_turn")
    del STATE.sessions[session.name]
    return {}


def delete(params: dict) -> dict:
    file = STORE / f"{params['sessionId']}.json"
    if faulty("delete.again") and not file.exists():
        raise Refused(-32002, "no such session")
    if not faulty("delete.works"):
        file.unlink(missing_ok=True)
    return {}


def set_mode(params: dict) -> dict:
    if params["modeId"] == "ask" and faulty("mode.set"):
        raise Refused(-32603, "not now")
    if params["modeId"] not in ("code", "ask") and not faulty("mode.unknown"):
        raise Refused(-32602, "no such mode")
    return {}


def set_option(params: dict) -> dict:
    session = find(params)
    if params["value"] not in ("m1", "m2") and not faulty("config.unknown"):
        raise Refused(-32602, "no such value")
    if not faulty("config.set"):
        session.config = params["value"]
    return {"configOptions": options(session)}


METHODS = {
    "initialize": initialize,
    "authenticate": authenticate,
    "session/new": new,
    "session/load": load,
    "session/resume": resume,
    "session/fork": fork,
    "session/list": listing,
    "session/close": close,
    "session/delete": delete,
    "session/set_mode": set_mode,
    "session/set_config_option": set_option,
}


def prompt(message: dict) -> None:
    params = message["params"]
    session = find(params)
    kinds = {block["type"] for block in params["prompt"]}
    for name in ("image", "audio"):
        if name in kinds and faulty(f"prompt.{name}"):
            raise Refused(-32602, f"no {name}, thank you")
    if "resource" in kinds and faulty("prompt.embedded"):
        raise Refused(-32602, "no resources, thank you")
    if "resource_link" in kinds and faulty("prompt.resource-link"):
        raise Refused(-32602, "no links, thank you")
    STATE.prompts += 1
    if faulty("prompt.again") and STATE.prompts > 1:
        raise Refused(-32603, "once is enough")
    text = " ".join(block.get("text", "") for block in params["prompt"])
    session.turn = Turn(message["id"], session, text.lower())
    session.turn.begin()


def request(message: dict) -> None:
    method, ident = message["method"], message["id"]
    if faulty("rpc.id-number") and ident == 0:
        ident = None
    if faulty("rpc.id-string") and isinstance(ident, str) and ident.isdigit():
        ident = int(ident)
    lone = method.removeprefix("session/")
    capability = "load" if lone == "load" else lone
    missing = capability in WITHOUT and not faulty("capabilities.honest")
    try:
        if method == "session/prompt":
            prompt(message)
            return
        if method not in METHODS or missing:
            extension = faulty("rpc.extension-method") and method.endswith("example/none")
            plain = faulty("rpc.unknown-method") and not method.startswith("_")
            raise Refused(-32603 if extension or plain else -32601, "Method not found")
        write({"id": ident, "result": METHODS[method](message.get("params") or {})})
    except Refused as refused:
        error = {"code": refused.code, "message": refused.words}
        if faulty("rpc.error"):
            error["code"] = str(refused.code)
        if faulty("rpc.error-message"):
            error["message"] = "Traceback:\n  it failed"
        write({"id": ident, "error": error})


def notification(message: dict) -> None:
    params = message.get("params") or {}
    method = message["method"]
    if method == "session/cancel":
        cancel(params)
    elif method == "$/cancel_request":
        cancel_request(params.get("requestId"))
    elif faulty("rpc.unknown-notification"):
        write({"id": None, "error": {"code": -32601, "message": "Method not found"}})


def cancel(params: dict) -> None:
    session = STATE.sessions.get(params["sessionId"])
    if session is None:
        if faulty("cancel.unknown-session"):
            write({"id": None, "error": {"code": -32002, "message": "no such session"}})
        return
    if faulty("cancel.idle") and session.turn is None:
        session.poisoned = True
    if session.turn is not None and not session.turn.asked:
        session.turn.end("cancelled")
        session.poisoned = faulty("cancel.next-turn")
    if faulty("cancel.other-session"):
        for other in STATE.sessions.values():
            if other.turn is not None:
                other.turn.end("cancelled")


def cancel_request(ident: object) -> None:
    turns = [s.turn for s in STATE.sessions.values() if s.turn and s.turn.ident == ident]
    if not turns and faulty("rpc.cancel-unknown"):
        write({"id": None, "error": {"code": -32600, "message": "no such request"}})
    for turn in turns:
        turn.done, turn.session.turn = True, None
        code = -32603 if faulty("rpc.cancel-request") else -32800
        write({"id": ident, "error": {"code": code, "message": "cancelled"}})


def response(message: dict) -> None:
    for session in STATE.sessions.values():
        if session.turn is not None and session.turn.asked == message["id"]:
            session.turn.answered(message.get("result", {}).get("outcome", {}))
            return
    if faulty("rpc.stray-response") and message["id"] == "conformance-stray":
        write({"id": None, "error": {"code": -32600, "message": "not asked"}})


def receive(line: bytes) -> None:
    try:
        if faulty("stdio.unicode"):
            text = line.decode("ascii", "replace")
        elif faulty("stdio.split"):
            text = line.decode("utf-8", "replace")
        else:
            text = line.decode()
        message = json.loads(text)
    except ValueError:
        if not faulty("stdio.parse-error"):
            write({"id": None, "error": {"code": -32700, "message": "Parse error"}})
        return
    if not isinstance(message, dict) or not ("method" in message or "id" in message):
        if faulty("stdio.goes-on") and message == 42:
            sys.exit(1)
        if not faulty("stdio.invalid-request"):
            write({"id": None, "error": {"code": -32600, "message": "Invalid request"}})
    elif "method" not in message:
        response(message)
    elif "id" in message:
        request(message)
    else:
        notification(message)


def main() -> None:
    if faulty("stdio.messages"):
        out(b"planted agent, at your service\n")
    rest = b""
    while True:
        select.select([0], [], [])
        data = os.read(0, 1 << 20)
        if not data:
            while faulty("stdio.end"):
                select.select([], [], [], 60)
            return
        if faulty("stdio.split"):
            data = data.decode("utf-8", "replace").encode()
        *lines, rest = (rest + data).split(b"\n")
        if faulty("stdio.large") and len(rest) > 1 << 20:
            rest = b""
        if faulty("stdio.joined"):
            lines = lines[:1]
        for line in lines:
            pieces = [line]
            if faulty("stdio.separators") and any(end in line.decode() for end in ENDS):
                pieces = [piece.encode() for piece in line.decode().splitlines()]
            for piece in filter(None, pieces):
                receive(piece)
        if faulty("stdio.utf8"):
            out(b'{"jsonrpc":"2.0","method":"_planted/\xff","params":{}}\n')


main()
