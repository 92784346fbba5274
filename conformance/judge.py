"""What one peer writes, judged line by line: the rules that hold for every message.

Owns: the open requests in both directions. Rule: a fault is noted once, under the rule's name,
with the line; nothing is raised, so that a check for something else can go on: `no_fault` asks for
it in the end. `RULES` are the same for both sides of ACP: `agent.rpc.version` and
`client.rpc.version` are one entry. Used by `conformance.agent.client` as the lines come, and by
`conformance.client` on what was written down.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from conformance import schema
from conformance.check import Broken, Severity
from conformance.schema import Side
from conformance.wire import Json, mapping

Message = Json
Key = tuple[str, object]
_SHOWN = 4


class Rule(NamedTuple):
    severity: Severity
    section: str
    says: str


RULES: dict[str, Rule] = {
    "stdio.messages": Rule(
        "MUST", "Transports: stdio", "Every line written is one JSON-RPC message, and nothing else."
    ),
    "stdio.utf8": Rule("MUST", "Transports: stdio", "Messages are encoded in UTF-8."),
    "rpc.version": Rule(
        "MUST", "JSON-RPC 2.0: 4, 5", 'Every message has "jsonrpc" with the value "2.0".'
    ),
    "rpc.ids": Rule(
        "MUST",
        "JSON-RPC 2.0: 4",
        "The id of a request is a string or an integer, and not that of another open one.",
    ),
    "rpc.responses": Rule(
        "MUST",
        "JSON-RPC 2.0: 5",
        "A response has the id of an open request, in its own type, and each request gets one.",
    ),
    "rpc.result-or-error": Rule(
        "MUST", "JSON-RPC 2.0: 5", "A response has either a result or an error."
    ),
    "rpc.error": Rule(
        "MUST", "JSON-RPC 2.0: 5.1", "An error is an object with an integer code and a message."
    ),
    "rpc.error-message": Rule(
        "SHOULD", "JSON-RPC 2.0: 5.1", "An error's message is a concise single sentence."
    ),
    "rpc.methods": Rule(
        "MUST",
        "Extensibility: Extension Methods",
        "Methods that are not the protocol's begin with an underscore.",
    ),
    "schema.messages": Rule(
        "MUST", "Schema", "Params and results follow the schema of the negotiated version."
    ),
    "schema.read-past": Rule(
        "SHOULD", "Schema", "No value is sent that receivers have to replace by a default."
    ),
    "schema.root": Rule(
        "MUST",
        "Extensibility: The _meta Field",
        "Types of the protocol get no members of one's own at their root.",
    ),
}


class Fault(NamedTuple):
    """`rule` is a key of RULES, or one that a suite adds."""

    rule: str
    words: str
    line: str


def no_fault(faults: Sequence[Fault], rule: str) -> None:
    """Raises Broken with the first of what was found under that rule."""
    found = [fault for fault in faults if fault.rule == rule]
    if found:
        words = list(dict.fromkeys(fault.words for fault in found))
        lines = list(dict.fromkeys(f"< {fault.line}" for fault in found))
        raise Broken("; ".join(words[:_SHOWN]), lines[:_SHOWN])


class Judge:
    """The lines of one side (`side`) of one connection."""

    def __init__(self, side: Side, faults: list[Fault]) -> None:
        self._side: Side = side
        self._faults = faults
        self.version = 1
        """What was negotiated; 1 until then. No schema judges a version that there is none for."""
        self._asked: dict[Key, str] = {}
        """What the other side has open, by id: the method."""
        self._own: dict[Key, str] = {}
        self._line = ""

    def heard(self, message: Message) -> None:
        """The other side has sent this (and is not judged)."""
        if "method" in message and "id" in message:
            self._asked[key(message["id"])] = message["method"]
        elif "method" not in message:
            self._own.pop(key(message.get("id")), None)

    def answers(self, message: Message) -> str | None:
        """The method that a response, not yet judged, answers."""
        return self._asked.get(key(message.get("id")))

    def line(self, data: bytes) -> Message | None:
        """Judges one line, without its end; gives the message, if it is one at all."""
        self._line = shown(data)
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            self.fault("stdio.utf8", f"not UTF-8 at byte {error.start}")
            text = data.decode(errors="replace")
        try:
            value: Any = json.loads(text, parse_constant=_no_constant)
        except ValueError as error:
            self.fault("stdio.messages", f"not JSON: {error}")
            return None
        if not isinstance(value, dict):
            self.fault("stdio.messages", f"a JSON {type(value).__name__} is no message")
            return None
        message = cast("Message", value)
        if not ("method" in message or "id" in message):
            self.fault("stdio.messages", "neither a method nor an id")
            return None
        if message.get("jsonrpc") != "2.0":
            self.fault("rpc.version", f"jsonrpc is {message.get('jsonrpc')!r}")
        if "method" in message:
            self._call(message)
        else:
            self._response(message)
        return message

    def fault(self, rule: str, words: str) -> None:
        self._faults.append(Fault(rule, words, self._line))

    def _call(self, message: Message) -> None:
        method, params = message["method"], message.get("params")
        if not isinstance(method, str):
            self.fault("stdio.messages", f"the method is {method!r}")
            return
        is_request = "id" in message
        if is_request:
            ident = message["id"]
            if not _is_id(ident):
                self.fault("rpc.ids", f"the id is {json.dumps(ident)}")
            elif key(ident) in self._own:
                self.fault("rpc.ids", f"the id {json.dumps(ident)} is open already")
            self._own[key(ident)] = method
        other: Side = "client" if self._side == "agent" else "agent"
        known = self.version not in schema.VERSIONS or method in schema.methods(self.version, other)
        if not known and not method.startswith(("_", "$/")):
            self.fault("rpc.methods", f"{method} is not the protocol's")
        self._by_schema(method, other, "Request" if is_request else "Notification", params)

    def _response(self, message: Message) -> None:
        ident = message["id"]
        if ("result" in message) == ("error" in message):
            both = "both" if "result" in message else "neither"
            self.fault("rpc.result-or-error", f"{both} result and error")
        if "error" in message:
            for rule, words in _error_faults(message["error"]):
                self.fault(rule, words)
        method = self._asked.pop(key(ident), None)
        if method is None:
            # What could not be read has an error with the id null.
            if ident is not None or "error" not in message:
                self.fault("rpc.responses", f"no request {json.dumps(ident)} is open")
        elif "result" in message and "error" not in message:
            if method == "initialize":
                # From here on by the version that the agent has chosen.
                self.version = _version(message["result"])
            self._by_schema(method, self._side, "Response", message["result"])

    def _by_schema(self, method: str, side: Side, part: schema.Part, value: Any) -> None:
        if self.version not in schema.VERSIONS:
            return
        found = schema.opinion(self.version, method, side, part, value)
        if found is None:
            return
        for words in found.faults[:3]:
            self.fault("schema.messages", f"{method}: {words}")
        for words in found.read_past[:3]:
            self.fault("schema.read-past", f"{method}: {words}")
        if strange := schema.strangers(self.version, method, side, part, value):
            self.fault("schema.root", f"{method} has {', '.join(strange)}")


def key(ident: object) -> Key:
    """Ids that are the same have the same key: 1 and "1" differ, 1 and 1.0 do not."""
    if isinstance(ident, float) and ident.is_integer():
        ident = int(ident)
    return type(ident).__name__, ident if _is_id(ident) or ident is None else repr(ident)


def shown(data: bytes, most: int = 300) -> str:
    """A line, short enough to be read."""
    text = data.decode(errors="backslashreplace")
    if len(text) > most:
        text = f"{text[: most - 40]} ... ({len(data)} bytes)"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _version(initialized: Any) -> int:
    value = mapping(initialized).get("protocolVersion")
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _is_id(ident: object) -> bool:
    return isinstance(ident, str | int) and not isinstance(ident, bool)


def _error_faults(error: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(error, dict):
        yield "rpc.error", f"the error is {json.dumps(error)[:80]}"
        return
    body = cast("Json", error)
    code, words = body.get("code"), body.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        yield "rpc.error", f"the code is {json.dumps(code)}"
    if not isinstance(words, str):
        yield "rpc.error", f"the message is {json.dumps(words)}"
    elif not words.strip() or "\n" in words:
        yield "rpc.error-message", f"the message is {json.dumps(words[:80])}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
