"""Sessions: which there are, what is used of them, what is restored how."""

import os.path
from collections.abc import Iterator

from bridge.trace.check.context import OPENERS, Context, field, from_client, listed, strings
from bridge.trace.check.finding import Report
from bridge.trace.timeline import CHUNKS, Entry

_NEEDS = frozenset(
    {
        "session/prompt", "session/cancel", "session/set_mode", "session/set_config_option",
        "session/close", "session/fork", "_session/steering", "session/set_title",
    }
)  # fmt: skip
_SAYS = frozenset({*CHUNKS, "tool_call", "plan", "user_message", "agent_message"})
_RELATIVE = {
    **dict.fromkeys(OPENERS, ("cwd", "additionalDirectories")),
    "fs/read_text_file": ("path",),
    "fs/write_text_file": ("path",),
    "terminal/create": ("cwd",),
}


class Sessions:
    """Looks after ids, ends, modes and options."""

    def __init__(self, context: Context, report: Report) -> None:
        self._context = context
        self._say = report.say
        self._early: dict[str, Entry] = {}
        self._loaded: dict[str, Entry] = {}

    def see(self, entry: Entry) -> None:
        client = from_client(entry)
        self._paths(entry)
        if entry.update is not None and not client:
            self._update(entry)
        elif entry.role in ("request", "notification") and client:
            self._use(entry)
        elif entry.role == "response" and not client and entry.partner is not None:
            self._answer(entry, entry.partner)

    def _paths(self, entry: Entry) -> None:
        for name, path in _paths(entry):
            if not (os.path.isabs(path) or path[1:3] in (":\\", ":/")):
                self._say("relative-path", entry, f"{name} is {path!r}")

    def _use(self, entry: Entry) -> None:
        ident, session = entry.session_id, self._context.session(entry)
        if entry.method not in _NEEDS or ident is None:
            return
        if session is None:
            self._say("session-unknown", entry, f"no session {ident!r} was opened here")
            return
        if session.closed is not None:
            words = f"session {ident!r} was closed by line {session.closed.event.line}"
            self._say("session-closed", entry, words)
        mode = entry.fields.get("modeId")
        if entry.method == "session/set_mode" and mode not in (session.modes or ()):
            self._say("mode-unknown", entry, f"{mode!r} is none of {sorted(session.modes or ())}")
        option = entry.fields.get("configId")
        if entry.method == "session/set_config_option" and option not in (session.options or ()):
            known = sorted(session.options or ())
            self._say("option-unknown", entry, f"{option!r} is none of {known}")

    def _update(self, entry: Entry) -> None:
        ident, session = entry.session_id, self._context.session(entry)
        if ident is None:
            return
        if session is None:
            self._without_session(entry, ident)
            return
        if session.closed is not None:
            words = f"session {ident!r} was closed by line {session.closed.event.line}"
            self._say("update-after-close", entry, words)
        if entry.update == "current_mode_update" and session.modes is not None:
            mode = field(entry.fields, "update", "currentModeId")
            if mode not in session.modes:
                self._say("mode-unknown", entry, f"{mode!r} is none of {sorted(session.modes)}")
        loaded = self._loaded.get(ident)
        if loaded is not None and session.turn is None and entry.update == "user_message_chunk":
            words = f"history of {ident!r} after load was answered in line {loaded.event.line}"
            self._say("load-after-answer", entry, words)

    def _without_session(self, entry: Entry, ident: str) -> None:
        opening = self._context.opening.values()
        named = [request for request in opening if request.fields.get("sessionId") == ident]
        if any(_replays(request) for request in named):
            return
        if any(request.method == "session/resume" for request in named):
            if entry.update in _SAYS:
                words = f"history of {ident!r} before resume was answered"
                self._say("resume-replay", entry, words)
            return
        if opening:
            self._early.setdefault(ident, entry)
        else:
            self._say("update-unknown-session", entry, f"session {ident!r} is not known")

    def _answer(self, entry: Entry, request: Entry) -> None:
        if request.method == "session/set_config_option" and not entry.failed:
            self._options(entry, request)
        if request.method not in OPENERS:
            return
        ident = entry.fields.get("sessionId") or request.fields.get("sessionId")
        if not isinstance(ident, str) or entry.failed:
            return
        if request.method in ("session/new", "session/fork") and ident in self._context.sessions:
            self._say("session-id-duplicate", entry, f"session {ident!r} exists already")
        if request.method == "session/load":
            self._loaded[ident] = entry
        if (early := self._early.pop(ident, None)) is not None:
            self._say(
                "update-early", early, f"session {ident!r} was told in line {entry.event.line}"
            )

    def _options(self, entry: Entry, request: Entry) -> None:
        session = self._context.session(request)
        given = entry.fields.get("configOptions")
        if session is None or not session.options or not isinstance(given, list):
            return
        key = "id" if self._context.speaks == 1 else "configId"
        named = {str(field(item, key)) for item in given}  # pyright: ignore[reportUnknownVariableType]
        if missing := sorted(session.options - named):
            self._say("option-list-incomplete", entry, f"{', '.join(missing)} left out")

    def end(self) -> None:
        for ident, entry in self._early.items():
            self._say("update-unknown-session", entry, f"session {ident!r} was never opened")


def _paths(entry: Entry) -> Iterator[tuple[str, str]]:
    """The paths in a message, which are all to be absolute, by what they are."""
    if entry.role == "request":
        for name in _RELATIVE.get(entry.method, ()):
            value = entry.fields.get(name)
            yield from ((name, path) for path in strings([value]) or strings(value))
    call = field(entry.fields, "update") or field(entry.fields, "toolCall")
    for place in listed(field(call, "locations")):
        yield from (("a location", path) for path in strings([place.get("path")]))
    for content in listed(field(call, "content")):
        if content.get("type") == "diff":
            yield from (("a diff's path", path) for path in strings([content.get("path")]))


def _replays(request: Entry) -> bool:
    """Whether a request asks for the history; in version 2 a resume may."""
    return request.method == "session/load" or request.fields.get("replayFrom") is not None
