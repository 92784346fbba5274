"""One line of words for an entry: what a person wants to know of it first.

Owns: which members of which message matter. Rule: never more than one line, and nothing that the
message does not say. Pure; used by the terminal view, the page and the differences.
"""

from collections.abc import Callable
from typing import Any

from bridge.trace.timeline import CHUNKS, MESSAGES, Entry
from bridge.wire import codec

LONGEST = 2000
Fields = dict[str, Any]


def summarise(entry: Entry) -> str:
    """The words; may be empty."""
    if entry.role == "noise":
        words = f"{entry.method}: {entry.text}" if (entry.text or "").strip() else "blank line"
    elif entry.event.ch in MESSAGES and entry.event.kind is None:
        words = _message(entry)
    elif entry.event.ch == "host":
        words = _packet(entry)
    else:
        words = _event(entry)
    return one_line(words)


def one_line(text: str) -> str:
    """The text on one line: line ends as ⏎, other control characters escaped."""
    if len(text) > LONGEST:
        text = text[:LONGEST] + "…"
    text = text.replace("\r\n", "⏎").replace("\n", "⏎")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def quoted(text: str) -> str:
    return f'"{text}"'


def _message(entry: Entry) -> str:
    if entry.role == "response" and entry.failed:
        return _error(entry.fields)
    if entry.update is not None:
        return _update(entry)
    table = _RESULTS if entry.role == "response" else _PARAMS
    describe = table.get(entry.method)
    return describe(entry.fields) if describe else compact(entry.value)


def _error(fields: Fields) -> str:
    data = codec.mapping(fields.get("data")) or {}
    details = data.get("details") or data.get("message")
    words = f"error {fields.get('code')}: {fields.get('message')}"
    return f"{words} ({details})" if isinstance(details, str) else words


def compact(value: Any) -> str:
    """A value as short JSON; nothing for an empty one."""
    if value in (None, {}, []):
        return ""
    return codec.encode(value).decode(errors="replace")


def _pairs(fields: Fields, *names: str) -> str:
    return "  ".join(f"{name}={_plain(fields[name])}" for name in names if fields.get(name))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else compact(value)


def blocks(value: Any) -> str:
    """The text of one content block or several; other kinds by name."""
    parts: list[str] = []
    for item in items(value) or ([value] if isinstance(value, dict) else []):
        block = codec.mapping(item) or {}
        text = block.get("text")
        parts.append(text if isinstance(text, str) else f"<{block.get('type', '?')}>")
    return " ".join(parts)


def items(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]


def _names(value: Any) -> str:
    return ", ".join(str((codec.mapping(item) or {}).get("name", "?")) for item in items(value))


def _info(fields: Fields, old: str) -> str:
    info = codec.mapping(fields.get(old)) or codec.mapping(fields.get("info")) or {}
    return f"version {fields.get('protocolVersion')}  {info.get('name', '')} " + str(
        info.get("version", "")
    )


def _new_session(fields: Fields) -> str:
    servers = _names(fields.get("mcpServers"))
    return _pairs(fields, "sessionId", "cwd") + (f"  mcp: {servers}" if servers else "")


def _permission(fields: Fields) -> str:
    call = codec.mapping(fields.get("toolCall")) or {}
    title = call.get("title") or fields.get("title") or call.get("toolCallId")
    return f"{title}  [{_names(fields.get('options'))}]"


def _outcome(fields: Fields) -> str:
    outcome = codec.mapping(fields.get("outcome")) or {}
    return str(outcome.get("optionId") or outcome.get("outcome") or compact(fields))


def _stop(fields: Fields) -> str:
    usage = codec.mapping(fields.get("usage")) or {}
    tokens = _pairs(usage, "inputTokens", "outputTokens")
    return "  ".join(filter(None, (_plain(fields.get("stopReason") or fields), tokens)))


_PARAMS: dict[str, Callable[[Fields], str]] = {
    "initialize": lambda fields: _info(fields, "clientInfo"),
    "session/new": _new_session,
    "session/load": _new_session,
    "session/resume": _new_session,
    "session/fork": _new_session,
    "session/prompt": lambda fields: quoted(blocks(fields.get("prompt"))),
    "session/cancel": lambda fields: str(fields.get("sessionId", "")),
    "session/request_permission": _permission,
    "session/set_mode": lambda fields: str(fields.get("modeId", "")),
    "session/set_config_option": lambda fields: f"{fields.get('configId')}={fields.get('value')}",
    "fs/read_text_file": lambda fields: str(fields.get("path", "")),
    "fs/write_text_file": lambda fields: str(fields.get("path", "")),
    "terminal/create": lambda fields: " ".join(
        [str(fields.get("command", "")), *map(str, items(fields.get("args")))]
    ),
    "tools/call": lambda fields: f"{fields.get('name')} {compact(fields.get('arguments'))}",
    "$/cancel_request": lambda fields: f"request {compact(fields.get('requestId'))}",
}
_RESULTS: dict[str, Callable[[Fields], str]] = {
    "initialize": lambda fields: _info(fields, "agentInfo"),
    "session/new": lambda fields: str(fields.get("sessionId", "")),
    "session/fork": lambda fields: str(fields.get("sessionId", "")),
    "session/prompt": _stop,
    "session/request_permission": _outcome,
    "tools/call": lambda fields: quoted(blocks(fields.get("content"))),
    "tools/list": lambda fields: _names(fields.get("tools")),
}


def _update(entry: Entry) -> str:
    update = codec.mapping(entry.fields.get("update")) or {}
    if entry.update in CHUNKS:
        return quoted(entry.text) if entry.text is not None else blocks(update.get("content"))
    match entry.update:
        case "tool_call" | "tool_call_update":
            parts = (update.get("status"), update.get("title"), update.get("toolCallId"))
            return "  ".join(str(part) for part in parts if part)
        case "plan":
            return f"{len(items(update.get('entries')))} entries"
        case "usage_update":
            return f"{update.get('used')} of {update.get('size')} tokens"
        case "available_commands_update":
            return _names(update.get("availableCommands"))
        case "state_update":
            return _pairs(update, "state", "stopReason")
        case _:
            rest = {key: value for key, value in update.items() if key != "sessionUpdate"}
            return compact(rest)


def _packet(entry: Entry) -> str:
    fields = entry.fields
    if entry.role == "response":
        if entry.failed:
            return _pairs(fields, "code", "error")
        result = codec.mapping(fields.get("result")) or {}
        reply = result.get("reply", fields.get("reply"))
        if isinstance(reply, str):
            return f"{result.get('stop_reason') or ''}  {quoted(reply)}".strip()
        return compact(fields.get("result"))
    if entry.update is not None:
        return _update(entry)
    if entry.role == "notification":
        return compact({k: v for k, v in fields.items() if k not in ("event", "seq", "session")})
    config = codec.mapping(fields.get("config")) or {}
    contents = config.get("user_contents") or config.get("messages")
    if contents:
        return quoted(_first_text(contents))
    rest = {k: v for k, v in fields.items() if k not in ("id", "operation")}
    return compact(rest)


def _first_text(contents: Any) -> str:
    last = contents[-1] if isinstance(contents, list) and contents else contents  # pyright: ignore[reportUnknownVariableType]
    if (message := codec.mapping(last)) is not None:
        last = message.get("content")
    return last if isinstance(last, str) else blocks(last)


def _event(entry: Entry) -> str:
    event = entry.event
    if event.kind is None:
        return entry.text or ""
    describe = _EVENTS.get((event.ch, event.kind))
    words = describe(event.data) if describe else compact(event.data)
    return f"{words}  {entry.text}" if entry.text else words


def _exchange(data: Fields) -> str:
    usage = codec.mapping(data.get("usage")) or {}
    words = _pairs(data, "status", "outcome", "model", "finish_reason", "error")
    return "  ".join(filter(None, (words, _pairs(usage, "input", "output"))))


def _changes(changes: Any) -> str:
    found = (codec.mapping(item) or {} for item in items(changes))
    return "  ".join(f"{c.get('path')}: {c.get('before')} -> {c.get('after')}" for c in found)


def _decision(data: Fields) -> str:
    """Who let a tool call happen, or not."""
    chosen = data.get("option") or "cancelled"
    offered = ", ".join(
        str((codec.mapping(option) or {}).get("optionId")) for option in items(data.get("options"))
    )
    title = data.get("title") or data.get("tool_call") or ""
    return f"{title}  {chosen}  by {data.get('by')}{_waited(data)}  [{offered}]".strip()


def _verdict(data: Fields) -> str:
    words = f"{data.get('tool_call_id')}  {data.get('verdict')}{_waited(data)}"
    return f"{words}  {data['error']}" if data.get("error") else words


def _waited(data: Fields) -> str:
    seconds = data.get("seconds")
    return f" after {seconds:.3f} s" if isinstance(seconds, int | float) and seconds else ""


def _exit(data: Fields) -> str:
    return str(data["signal"]) if data.get("signal") else f"code {data.get('exit_code')}"


_EVENTS: dict[tuple[str, str], Callable[[Fields], str]] = {
    ("process", "start"): lambda data: " ".join(map(str, items(data.get("argv")))),
    ("process", "exit"): _exit,
    ("trace", "end"): lambda data: str(data.get("reason", "")),
    ("mcp", "attempt"): lambda data: _pairs(
        data, "server", "tool", "attempt", "outcome", "status", "cause"
    ),
    ("mcp", "http"): lambda data: " ".join(
        str(data.get(name)) for name in ("method", "url", "status", "reason") if data.get(name)
    ),
    ("model", "request"): lambda data: "",
    ("model", "forward"): lambda data: str(data.get("target", "")),
    ("model", "response"): lambda data: f"{data.get('status')} {data.get('reason', '')}",
    ("model", "end"): lambda data: _exchange(data),
    ("bridge", "permission"): _decision,
    ("bridge", "gate"): _verdict,
    ("bridge", "rewrite"): lambda data: _changes(data.get("changes")),
}
