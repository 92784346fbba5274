"""The host's side: requests and their responses, events in their place."""

from bridge.trace.check.finding import Report
from bridge.trace.timeline import Entry
from bridge.wire import codec

_FOUR = {"reply", "stop_reason", "response_metadata", "update_metadata"}


class Hosts:
    """The packets of one host."""

    def __init__(self, report: Report) -> None:
        self._say = report.say
        self._open: dict[str, Entry] = {}
        self._ended: dict[tuple[str, int], Entry] = {}

    def see(self, entry: Entry) -> None:
        fields = entry.fields
        if entry.role == "request":
            self._open[entry.id or ""] = entry
        elif entry.role == "response":
            self._open.pop(entry.id or "", None)
            self._answer(entry)
        elif entry.role == "notification":
            key = str(fields.get("session", "")), fields.get("turn")
            ended = self._ended.get(key) if isinstance(key[1], int) else None  # pyright: ignore[reportArgumentType]
            if ended is not None and entry.method == "event/update":
                words = f"an event of turn {key[1]}, answered in line {ended.event.line}"
                self._say("host-event-late", entry, words)

    def _answer(self, entry: Entry) -> None:
        request, fields = entry.partner, entry.fields
        if request is not None and request.method == "close":
            # The next session of that name counts its turns anew.
            name = str(request.fields.get("session", ""))
            self._ended = {key: end for key, end in self._ended.items() if key[0] != name}
        if request is None or request.method != "prompt" or entry.id in (None, "null"):
            return
        result = codec.mapping(fields.get("result"))
        if result is None or set(result) != _FOUR:
            has = "none" if result is None else ", ".join(sorted(result))
            self._say("host-result", entry, f"the result has {has}")
        if isinstance(turn := fields.get("turn"), int):
            self._ended[str(request.fields.get("session", "")), turn] = entry

    def end(self) -> None:
        for entry in self._open.values():
            self._say("host-unanswered", entry, f"{entry.method} was never answered")
