"""The form of single lines and messages: framing, JSON-RPC 2.0, and the official schema."""

import re
from typing import Any

from bridge.trace.check import schema
from bridge.trace.check.context import Context, from_client, version_of
from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry
from bridge.wire import codec

_ROOTS = {
    "request": {"jsonrpc", "id", "method", "params"},
    "notification": {"jsonrpc", "method", "params"},
    "response": {"jsonrpc", "id", "result", "error"},
}
_SEPARATORS = ("\u2028".encode(), "\u2029".encode(), "\x85".encode())
_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_SHOWN = 3
"""Faults of one message that are reported."""


class Messages:
    """Looks at each line for itself."""

    def __init__(self, context: Context, report: Report) -> None:
        self._context = context
        self._say = report.say

    def see(self, entry: Entry) -> None:
        content = entry.event.content or b""
        self._line(entry, content)
        if not content.strip():
            self._say("blank-line", entry, "a blank line")
            return
        value = self._value(entry, content)
        if value is not None:
            self._envelope(entry, value)
            self._schema(entry)

    def end(self) -> None:
        """Nothing is left over."""

    def _line(self, entry: Entry, content: bytes) -> None:
        if entry.event.end == "\r\n":
            self._say("carriage-return", entry, "ends with a carriage return and a line feed")
        elif entry.event.end == "":
            self._say("unterminated-line", entry, "the pipe ended before the line did")
        if content.startswith(codec.BOM):
            self._say("byte-order-mark", entry, "begins with a byte order mark")
        for separator in _SEPARATORS:
            if separator in content:
                name = f"U+{ord(separator.decode()):04X}"
                self._say("line-separator", entry, f"has {name} as it is; escape it")
                break

    def _value(self, entry: Entry, content: bytes) -> dict[str, Any] | None:
        """The message, if the line is one."""
        noise = "client-noise" if from_client(entry) else "noise"
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            self._say("not-utf8", entry, f"byte {error.start} is not UTF-8: {error.reason}")
            return None
        try:
            value = codec.decode(content)
        except codec.JSONError:
            self._say(noise, entry, f"not JSON: {text[:80]!r}")
            return None
        if isinstance(value, list):
            self._say("batch", entry, "a JSON array")
            return None
        fields = codec.mapping(value)
        if fields is None:
            self._say(noise, entry, f"a JSON {type(value).__name__}, not an object")
            return None
        if fields.get("jsonrpc") != "2.0":
            said = f"jsonrpc is {fields['jsonrpc']!r}" if "jsonrpc" in fields else "no jsonrpc"
            self._say("jsonrpc-version", entry, f"{said}: {text[:80]}")
            return None
        if _ESCAPE.search(content) and _scan(value):
            self._say("surrogate", entry, "half of a surrogate pair")
        return fields

    def _envelope(self, entry: Entry, value: dict[str, Any]) -> None:
        ident = value.get("id")
        if "id" in value and (
            isinstance(ident, bool | float | list | dict) or (ident is None and "method" in value)
        ):
            self._say("id-type", entry, f"the id is {codec.encode(ident).decode()}")
        if ident is None and "id" in value and "error" not in value and "method" not in value:
            self._say("id-type", entry, "a result for the id null")
        role = "response"
        if "method" in value:
            role = "request" if "id" in value else "notification"
            if not isinstance(value["method"], str):
                self._say("unknown-method", entry, f"the method is {_kind(value['method'])}")
            params = value.get("params", {})
            positional = isinstance(params, list) and entry.method.startswith("_")
            if params is not None and not isinstance(params, dict) and not positional:
                self._say("params-type", entry, f"params are {_kind(params)}")
        elif "id" not in value and ("result" in value or "error" in value):
            self._say("id-type", entry, "a response without an id")
        elif ("result" in value) == ("error" in value):
            both = "both result and error" if "result" in value else "neither result nor error"
            self._say("result-or-error", entry, both)
        elif "error" in value:
            self._error(entry, value["error"])
        if unknown := sorted(value.keys() - _ROOTS[role]):
            self._say("unknown-root-key", entry, f"a {role} has {', '.join(unknown)} at its root")

    def _error(self, entry: Entry, error: Any) -> None:
        fields = codec.mapping(error)
        if fields is None:
            self._say("error-shape", entry, f"the error is {_kind(error)}")
            return
        code, message = fields.get("code"), fields.get("message")
        if isinstance(code, bool) or not isinstance(code, int):
            self._say("error-shape", entry, f"the code is {_kind(code)}")
        if not isinstance(message, str):
            self._say("error-shape", entry, f"the message is {_kind(message)}")
        elif not message.strip() or "\n" in message:
            words = "is empty" if not message.strip() else "has several lines"
            self._say("error-message", entry, f"the message {words}")

    def _schema(self, entry: Entry) -> None:
        method = entry.method
        if entry.role in ("noise", "response") and (entry.failed or not method):
            return
        client = from_client(entry)
        if method.startswith("_"):
            return
        version = self._version(entry)
        if version not in schema.VERSIONS:
            return
        if entry.role == "response":
            side, part, what = ("client" if client else "agent"), "Response", "result"
        else:
            side, what = ("agent" if client else "client"), "params"
            part = "Request" if entry.role == "request" else "Notification"
        value: Any = {} if what == "params" and entry.value is None else entry.value
        verdict = schema.judge(version, method, side, part, value)
        if verdict is None:
            self._unknown(entry, method, version, part)
            return
        for fault in verdict.faults[:_SHOWN]:
            self._say("schema", entry, f"{_at(what, fault.path)}: {fault.words}")
        if verdict.unstable:
            self._say("unstable", entry, f"{method} as sent is not in the stable version {version}")
        for fault in verdict.read_past[:_SHOWN]:
            self._say("read-past", entry, f"{_at(what, fault.path)}: {fault.words}")

    def _unknown(self, entry: Entry, method: str, version: int, part: str) -> None:
        if entry.role == "response" or method.startswith("$/"):
            return
        known = schema.known_methods(version)
        words = f"there is no method {method} in version {version}"
        if method in known:
            words = f"{method} is not a {part.lower()} in this direction"
        self._say("unknown-method", entry, words)

    def _version(self, entry: Entry) -> int:
        if entry.method != "initialize":
            return self._context.speaks
        return version_of(entry) or 1


def _at(what: str, path: str) -> str:
    return f"{what}.{path}" if path and not path.startswith("[") else what + path


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")  # pyright: ignore[reportUnknownArgumentType]


def _scan(value: Any) -> bool:
    """Whether a string in it has half of a surrogate pair."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        return any(_scan(key) or _scan(item) for key, item in value.items())  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return any(map(_scan, value))  # pyright: ignore[reportUnknownArgumentType]
    return False
