"""Requests and responses: every id once, every request answered once, by its own id."""

from bridge.trace.check.context import Context, from_client
from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry
from bridge.wire import codec

Key = tuple[bool, str]
"""Whether the client asked, and the id's JSON text."""


class Calls:
    """Both sides' requests of one connection."""

    def __init__(self, context: Context, report: Report) -> None:
        self._say = report.say
        self._open: dict[Key, Entry] = {}
        self._done: dict[Key, Entry] = {}

    def see(self, entry: Entry) -> None:
        client = from_client(entry)
        if entry.role == "request":
            self._request((client, entry.id or ""), entry)
        elif entry.role == "response":
            self._response((not client, entry.id or ""), entry)
        elif entry.method == "$/cancel_request":
            ident = codec.encode(entry.fields.get("requestId")).decode()
            if (client, ident) not in self._open:
                self._say("cancelled-id-unknown", entry, f"request {ident} is not open")

    def _request(self, key: Key, entry: Entry) -> None:
        if (other := self._open.get(key)) is not None:
            words = f"id {key[1]} is open since line {other.event.line} ({other.method})"
            self._say("duplicate-id", entry, words)
        elif (old := self._done.get(key)) is not None:
            words = f"id {key[1]} was line {old.event.line}'s ({old.method})"
            self._say("id-reuse", entry, words)
        self._open[key] = entry

    def _response(self, key: Key, entry: Entry) -> None:
        request = self._open.pop(key, None)
        if request is not None:
            self._done[key] = request
            return
        if entry.failed and key[1] == "null":
            # How a peer says that it could not read a line.
            return
        if (old := self._done.get(key)) is not None:
            rule = "turn-ended-twice" if old.method == "session/prompt" else "duplicate-response"
            words = f"{old.method} (line {old.event.line}) was answered before"
            self._say(rule, entry, words)
            return
        other = key[1].strip('"') if key[1].startswith('"') else f'"{key[1]}"'
        if (request := self._open.pop((key[0], other), None)) is not None:
            words = f"answers {key[1]}; line {request.event.line} asked as {other}"
            self._done[key[0], other] = request
            self._say("response-id-type", entry, words)
            return
        self._say("response-without-request", entry, f"no request {key[1]} is open")

    def end(self) -> None:
        for entry in self._open.values():
            # A permission request or a prompt has a rule of its own.
            if entry.method not in ("session/prompt", "session/request_permission"):
                self._say("unanswered-request", entry, f"{entry.method} was never answered")
