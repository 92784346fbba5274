"""What is known of an ACP connection at a moment: versions, capabilities, sessions, turns.

Owns: that state, moved on by each message after the rules have looked at it. Rule: it follows what
was said, right or wrong, and judges nothing. Used by the rules of `bridge.trace.check`.
"""

from typing import Any

import msgspec

from bridge.trace.timeline import Entry
from bridge.wire import codec

Fields = dict[str, Any]
OPENERS = ("session/new", "session/load", "session/resume", "session/fork")


def from_client(entry: Entry) -> bool:
    """Whether the client said it (in an active relay the client's own pipes are `client`)."""
    return entry.event.dir == ("in" if entry.event.ch == "client" else "out")


def version_of(entry: Entry) -> int | None:
    """The version an initialize, or its answer, names; None if it is no number."""
    version = entry.fields.get("protocolVersion")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


def field(value: Any, *path: str) -> Any:
    """A member deep inside objects; None where there is none."""
    for name in path:
        value = (codec.mapping(value) or {}).get(name)
    return value


def listed(value: Any) -> list[Fields]:
    """The objects in a list."""
    items: list[Any] = list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]
    return [item for item in map(codec.mapping, items) if item is not None]


def strings(value: Any) -> list[str]:
    """The strings in a list."""
    items: list[Any] = list(value) if isinstance(value, list) else []  # pyright: ignore[reportUnknownArgumentType]
    return [item for item in items if isinstance(item, str)]


class Session(msgspec.Struct):
    """One ACP session. `turn`: the prompt that runs; `ended`: the response of the last one."""

    id: str
    closed: Entry | None = None
    turn: Entry | None = None
    ended: Entry | None = None
    cancelled: Entry | None = None
    """The cancel of the turn that runs, or ran last."""
    modes: set[str] | None = None
    options: set[str] | None = None
    running: Entry | None = None
    """Version 2: the state update that said so, until one says idle."""


class Context:
    """One connection."""

    def __init__(self) -> None:
        self.asked: int | None = None
        """The version the client asked for."""
        self.version: int | None = None
        """The version that was agreed on."""
        self.initialized: Entry | None = None
        self.client: Fields = {}
        """The parameters of initialize."""
        self.agent: Fields = {}
        """Its result."""
        self.sessions: dict[str, Session] = {}
        self.opening: dict[str, Entry] = {}
        """Requests under way that make or restore a session, by id."""
        self._shelved: dict[str, Session] = {}

    def session(self, entry: Entry) -> Session | None:
        """The session a message belongs to."""
        return self.sessions.get(entry.session_id or "")

    @property
    def speaks(self) -> int:
        """The version by which messages are to be read."""
        return self.version or self.asked or 1

    def agent_can(self, *path: str) -> bool:
        """Whether the agent advertised a capability (absent, null and false: no)."""
        root = "agentCapabilities" if self.speaks == 1 else "capabilities"
        return field(self.agent, root, *path) not in (None, False)

    def client_can(self, *path: str) -> bool:
        """Whether the client did."""
        root = "clientCapabilities" if self.speaks == 1 else "capabilities"
        return field(self.client, root, *path) not in (None, False)

    # moving on

    def follow(self, entry: Entry) -> None:
        """Takes a message into account."""
        if entry.role == "response":
            self._answer(entry)
        elif entry.method == "initialize":
            self.client = entry.fields
            self.asked = version_of(entry)
        elif entry.method in OPENERS:
            self.opening[entry.id or ""] = entry
            if entry.method in ("session/load", "session/resume"):
                # Until it is restored it is as if it were not there.
                old = self.sessions.pop(entry.session_id or "", None)
                if old is not None:
                    self._shelved[old.id] = old
        elif (session := self.session(entry)) is not None:
            if entry.method == "session/prompt" and entry.role == "request":
                session.turn, session.cancelled = entry, None
            elif entry.method == "session/cancel":
                session.cancelled = entry
            elif entry.update is not None:
                self._update(session, entry)

    def _answer(self, entry: Entry) -> None:
        request = entry.partner
        if request is None:
            return
        if request.method in OPENERS:
            self.opening.pop(entry.id or "", None)
            shelved = self._shelved.pop(request.session_id or "", None)
            if not entry.failed:
                self._opened(request, entry)
            elif shelved is not None:
                self.sessions[shelved.id] = shelved
        elif request.method == "initialize" and not entry.failed:
            self.initialized, self.agent = entry, entry.fields
            self.version = version_of(entry)
        elif (session := self.session(entry)) is not None:
            self._answered(session, request, entry)

    def _answered(self, session: Session, request: Entry, entry: Entry) -> None:
        if request.method == "session/prompt":
            session.ended = entry
            if session.turn is request:
                session.turn = None
        elif request.method == "session/close" and not entry.failed:
            session.closed = entry
        elif request.method == "session/set_config_option" and not entry.failed:
            self._options(session, entry.fields)

    def _opened(self, request: Entry, entry: Entry) -> None:
        ident = entry.fields.get("sessionId")
        if request.method in ("session/load", "session/resume"):
            ident = request.fields.get("sessionId")
        if not isinstance(ident, str):
            return
        session = self.sessions[ident] = Session(ident)
        modes = field(entry.fields, "modes", "availableModes")
        if isinstance(modes, list):
            session.modes = {str(mode.get("id")) for mode in listed(modes)}
        self._options(session, entry.fields)

    def _options(self, session: Session, fields: Fields) -> None:
        if isinstance(options := fields.get("configOptions"), list):
            key = "id" if self.speaks == 1 else "configId"
            session.options = {str(item.get(key)) for item in listed(options)}

    def _update(self, session: Session, entry: Entry) -> None:
        update = field(entry.fields, "update")
        if entry.update == "config_option_update":
            self._options(session, codec.mapping(update) or {})
        elif entry.update == "subagent_update" and isinstance(
            child := field(update, "sessionId"), str
        ):
            # It is announced so, and has updates of its own from then on.
            self.sessions.setdefault(child, Session(child))
        elif entry.update == "state_update":
            state = field(update, "state")
            session.running = None if state == "idle" else (session.running or entry)
            if state == "idle":
                session.ended = entry
