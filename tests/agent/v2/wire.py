"""One opened session of a version 2 agent, and a session of version 1 that notes what it hears."""

from collections.abc import Callable
from typing import Any

from bridge.agent import updates
from bridge.agent.updates import Incoming
from bridge.agent.v2.interpreter import Interpreter
from bridge.rpc.connection import Settle
from bridge.wire import codec
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Fault, Notification, Request, Response

TEXT = {"type": "text", "text": "x"}


class Inner:
    """A session that notes what it hears."""

    name = "n"

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def update(self, incoming: Incoming) -> None:
        self.heard.append(told(incoming))

    def late(self, incoming: Incoming) -> None:
        self.heard.append(("late", told(incoming)))

    def begun(self) -> Settle:
        self.heard.append("begun")
        return self.settle

    def anew(self) -> None:
        self.heard.append("anew")

    def child(self, session_id: str, incoming: Incoming) -> None:
        self.heard.append((session_id, told(incoming)))

    def settle(self, response: Response) -> None:
        error = response.error
        self.heard.append(("end", codec.decode(response.result) if error is None else error))

    def request(self, request: Request, client: Any) -> None:
        self.heard.append((request.method, codec.decode(request.params), client))

    def notification(self, notification: Notification) -> None:
        self.heard.append(notification.method)


def told(incoming: Incoming) -> dict[str, Any]:
    update = codec.decode(incoming.raw())
    original = incoming.original()
    return update if original is None else update | {"ORIGINAL": codec.decode(original)}


class Wire:
    """An opened session; what is said comes in as from the agent, timers are let pass by hand."""

    def __init__(self, *, opened: bool = True) -> None:
        self.inner = Inner()
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.children: list[str] = []
        self.session = Interpreter(
            self.inner, lambda *timer: self.timers.append(timer), self.children.append
        )
        self.answered: Settle | None = None
        if opened:
            self.session.opened()

    def says(self, *bodies: dict[str, Any], **outer: Any) -> None:
        for body in bodies:
            params = {"sessionId": "s", "update": body, **outer}
            line = codec.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
            notification = Notification(updates.METHOD, Raw(codec.encode(params)), line)
            read = updates.decode(line) or updates.read(notification)
            assert read is not None
            self.session.update(read)

    def prompts(self) -> None:
        def send(settle: Settle) -> None:
            self.answered = settle

        self.session.prompt(send, self.inner.settle)

    def answers(self, result: Any = None, error: Fault | None = None) -> None:
        assert self.answered is not None
        found = {"messageId": "u"} if result is None else result
        self.answered(Response(b"1", Raw(codec.encode(found)), error, b"line"))

    def heard(self) -> list[Any]:
        found, self.inner.heard = self.inner.heard, []
        return found


def state(name: str, **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "state_update", "state": name, **more}


def chunk(ident: str, kind: str = "agent_message_chunk", **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": kind, "messageId": ident, "content": TEXT, **more}


def whole(ident: str, kind: str = "agent_message", **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": kind, "messageId": ident, **more}


ECHO = whole("u", "user_message", content=[TEXT])
END = state("idle", stopReason="end_turn", usage={"totalTokens": 1}, _meta={"k": 1})
