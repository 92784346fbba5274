"""Traces for tests, written as a conversation."""

import json
from pathlib import Path
from typing import Any

from bridge.trace.reader import Event
from bridge.trace.timeline import Entry, Timeline
from protocol_schemas.trace import Direction

HEAD = {"trace": 1, "t": 0, "wall": "2026-01-01T00:00:00.000000Z", "program": "test"}


class Script:
    """Records one after the other, 10 ms apart."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def add(self, ch: str, direction: Direction | None = None, **members: Any) -> "Script":
        record = {"t": (len(self.records) + 1) * 10_000_000, "ch": ch}
        if direction is not None:
            record["dir"] = direction
        self.records.append(record | members)
        return self

    def to_agent(self, message: Any, **members: Any) -> "Script":
        return self.add("acp", "out", n=1, session="", **members, **_content(message))

    def from_agent(self, message: Any, **members: Any) -> "Script":
        return self.add("acp", "in", n=1, session="", **members, **_content(message))

    def call(self, ident: Any, method: str, params: Any = None, **more: Any) -> "Script":
        message = {"jsonrpc": "2.0", "id": ident, "method": method}
        return self.to_agent(message | ({} if params is None else {"params": params}) | more)

    def answer(self, ident: Any, result: Any = None, **more: Any) -> "Script":
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": ident}
        return self.from_agent(message | (more or {"result": {} if result is None else result}))

    def ask(self, ident: Any, method: str, params: Any) -> "Script":
        return self.from_agent({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})

    def reply(self, ident: Any, result: Any = None, **more: Any) -> "Script":
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": ident}
        return self.to_agent(message | (more or {"result": {} if result is None else result}))

    def notify(self, method: str, params: Any) -> "Script":
        return self.to_agent({"jsonrpc": "2.0", "method": method, "params": params})

    def update(self, kind: str, session: str = "s", **fields: Any) -> "Script":
        params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
        return self.from_agent({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def say(self, text: str, session: str = "s", **fields: Any) -> "Script":
        content = {"type": "text", "text": text}
        return self.update("agent_message_chunk", session, content=content, **fields)

    def opened(self, version: int = 1, session: str = "s", **initialized: Any) -> "Script":
        """The handshake and a session."""
        self.call(0, "initialize", {"protocolVersion": version, "clientCapabilities": {}})
        self.answer(0, {"protocolVersion": version, "agentCapabilities": {}} | initialized)
        self.call(1, "session/new", {"cwd": "/", "mcpServers": []})
        return self.answer(1, {"sessionId": session})

    def prompt(self, ident: int, text: str = "hi", session: str = "s") -> "Script":
        blocks = [{"type": "text", "text": text}]
        return self.call(ident, "session/prompt", {"sessionId": session, "prompt": blocks})

    def stopped(self, ident: int, reason: str = "end_turn") -> "Script":
        return self.answer(ident, {"stopReason": reason})

    def file(self, folder: Path, name: str = "run.trace.ndjson") -> str:
        """The trace as a file; its first line is the head."""
        path = folder / name
        lines = [HEAD, *self.records]
        path.write_text("".join(_text(line) + "\n" for line in lines))
        return str(path)

    def entries(self) -> list[Entry]:
        timeline = Timeline()
        found: list[Entry] = []
        for line, record in enumerate(self.records, 2):
            content = record.get("text", "").encode() or None
            if "msg" in record:
                content = json.dumps(record["msg"]).encode()
            event = Event(
                line=line,
                t=record["t"] / 1e9,
                ch=record["ch"],
                dir=record.get("dir"),
                session=record.get("session"),
                n=record.get("n"),
                kind=record.get("kind"),
                data=record.get("data", {}),
                content=content,
                is_json="msg" in record,
            )
            found.append(timeline.add(event))
        return found


def _text(line: dict[str, Any]) -> str:
    text = json.dumps(line, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(line)
    return text


def _content(message: Any) -> dict[str, Any]:
    return {"text": message} if isinstance(message, str) else {"msg": message}
