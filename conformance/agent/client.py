"""A strict ACP client: one agent process, everything it wrote, and every fault in that.

Owns: the connection's open calls, and the answers to what the agent asks. Rules: every line is
judged as it comes; waiting is for messages, and a wait that is too long is the agent's fault; the
client asks and answers nothing by itself but permission requests (by `policy`) and -32601.
Made by `conformance.agent.lab`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar, cast

from conformance.check import Broken, expect
from conformance.judge import Fault, Judge, Message, key, shown
from conformance.process import Child
from conformance.waiting import Waiting
from conformance.wire import Json, compact, mapping, objects

T = TypeVar("T")
PING = "_conformance.example/ping"
CONTENT_KINDS = {
    "agent_message_chunk",
    "agent_thought_chunk",
    "user_message_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
}
"""What a turn consists of; titles, usage and commands may come at any time."""


class Call:
    """A request that was sent. `began` and `at`: how many messages had come when it was sent, and
    which of them is its response."""

    def __init__(self, client: "Client", ident: Any, method: str) -> None:
        self.client, self.id, self.method = client, ident, method
        self.began = len(client.messages)
        self.message: Message | None = None
        self.at = -1

    async def answer(self) -> Message:
        """The response, whatever it is."""
        return await self.client.wait(lambda: self.message, f"no response to {self.method}")

    async def result(self) -> Json:
        """The result; raises Broken for an error."""
        message = await self.answer()
        if "error" in message:
            raise Broken(f"{self.method} was answered with the error {compact(message['error'])}")
        return mapping(message.get("result"))

    async def error(self) -> Json:
        """The error; raises Broken for a result."""
        message = await self.answer()
        error = message.get("error")
        expect(isinstance(error, dict), f"{self.method} succeeded: {compact(message)[:200]}")
        return cast("Json", error)


@dataclass(frozen=True)
class Turn:
    """A prompt and what came of it; `call` has its response."""

    client: "Client"
    session: str
    call: Call

    @property
    def updates(self) -> list[Json]:
        """The session's updates between the prompt and its response (or now)."""
        end = self.call.at if self.call.message is not None else None
        return self.client.updates(self.session, self.call.began, end)

    def of_kind(self, *kinds: str) -> list[Json]:
        return [update for update in self.updates if update.get("sessionUpdate") in kinds]

    @property
    def text(self) -> str:
        contents = [mapping(u.get("content")) for u in self.of_kind("agent_message_chunk")]
        return "".join(str(content["text"]) for content in contents if "text" in content)

    async def reason(self) -> object:
        """The stop reason."""
        return (await self.call.result()).get("stopReason")


class Client(Waiting):
    """One agent process. `policy`: the kind of option permission requests are answered with;
    None holds them in `held`."""

    def __init__(
        self, child: Child, faults: list[Fault], traffic: list[str], timeout: float
    ) -> None:
        super().__init__(child, timeout)
        self.judge = Judge("agent", faults)
        self.messages: list[Message] = []
        self.sessions: set[str] = set()
        """The ids that updates may have: of sessions made or opened here."""
        self.agent: Json = {}
        """The initialize result."""
        self.capabilities: Json = {}
        """What was advertised to the agent."""
        self.policy: str | None = "allow_once"
        self.held: list[Message] = []
        self.asked: list[Message] = []
        self._traffic = traffic
        self._open: dict[tuple[str, object], Call] = {}
        self._ids = count(1)

    @property
    def version(self) -> int:
        return self.judge.version

    @property
    def busy(self) -> bool:
        """Whether something is still unanswered: such a client is not used again."""
        return bool(self._open)

    # What comes in

    async def run(self) -> None:
        """Reads until the agent's stdout ends."""
        rest = b""
        async for data in self.child.stdout:
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                await self._take(line)
        if rest:
            await self._take(rest)
        self.ended = True
        self._notice()

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        self._traffic.append(f"< {shown(line)}")
        message = self.judge.line(line)
        if message is not None:
            call = self._open.pop(key(message.get("id")), None) if "method" not in message else None
            if call is not None:
                call.message, call.at = message, len(self.messages)
                if call.method in ("session/new", "session/fork"):
                    self.sessions.add(str(mapping(message.get("result")).get("sessionId")))
            self.messages.append(message)
            if "method" in message and "id" in message:
                await self._asked(message)
        self._notice()

    async def _asked(self, message: Message) -> None:
        if message["method"] != "session/request_permission":
            await self.fail(message, -32601, "Method not found")
            return
        self.asked.append(message)
        if self.policy is None:
            self.held.append(message)
        else:
            await self.permit(message, self.policy)

    async def permit(self, message: Message, kind: str) -> None:
        """Answers with an option of that kind (or the first one), or `cancelled`."""
        outcome: Json = {"outcome": "cancelled"}
        options = objects(mapping(message.get("params")).get("options"))
        if kind != "cancelled" and options:
            chosen = [option for option in options if option.get("kind") == kind] or options
            outcome = {"outcome": "selected", "optionId": chosen[0].get("optionId")}
        await self.send({"id": message["id"], "result": {"outcome": outcome}})

    async def fail(self, message: Message, code: int, words: str) -> None:
        await self.send({"id": message["id"], "error": {"code": code, "message": words}})

    # What goes out

    async def write(self, data: bytes) -> None:
        self._traffic.append("> " + shown(data.rstrip(b"\n")))
        await self.child.write(data, self.timeout)

    async def send(self, message: Message) -> None:
        whole = {"jsonrpc": "2.0", **message}
        self.judge.heard(whole)
        await self.write(compact(whole).encode() + b"\n")

    def prepare(self, method: str, params: Any, ident: Any = None) -> tuple[Call, bytes]:
        """A request and its line, not yet sent: for those who write it in their own way."""
        ident = next(self._ids) if ident is None else ident
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        call = self._open[key(ident)] = Call(self, ident, method)
        if method in ("session/load", "session/resume"):
            self.sessions.add(str(mapping(params).get("sessionId")))
        self.judge.heard(message)
        return call, compact(message).encode() + b"\n"

    async def start(self, method: str, params: Any, ident: Any = None) -> Call:
        call, line = self.prepare(method, params, ident)
        await self.write(line)
        return call

    async def request(self, method: str, params: Any) -> Json:
        """The result of a request; raises Broken for an error."""
        return await (await self.start(method, params)).result()

    async def notify(self, method: str, params: Any) -> None:
        await self.send({"method": method, "params": params})

    async def ping(self) -> Call:
        """A request that every agent answers (with -32601): all it wrote before has come then."""
        call = await self.start(PING, {})
        await call.answer()
        return call

    # ACP

    async def initialize(self, version: int = 1, capabilities: Json | None = None) -> Json:
        """Shakes hands; from then on messages are judged by the version agreed on."""
        self.capabilities = capabilities or {}
        about = {"name": "conformance", "title": "ACP conformance suite", "version": "1"}
        params: Json = {"protocolVersion": version, "clientCapabilities": self.capabilities}
        params["clientInfo"] = about
        if version > 1:
            params |= {"capabilities": self.capabilities, "info": about}
        self.agent = await self.request("initialize", params)
        return self.agent

    async def new_session(self, cwd: str, **more: Any) -> Json:
        return await self.request("session/new", {"cwd": cwd, "mcpServers": [], **more})

    async def begin(self, session: str, *blocks: str | Json) -> Turn:
        """Sends a prompt."""
        prompt = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        call = await self.start("session/prompt", {"sessionId": session, "prompt": prompt})
        return Turn(self, session, call)

    async def prompt(self, session: str, *blocks: str | Json) -> Turn:
        """Sends a prompt and waits for its response."""
        turn = await self.begin(session, *blocks)
        await turn.call.answer()
        return turn

    async def cancel(self, session: str) -> None:
        """Cancels the turn, and answers open permission requests as a client must."""
        await self.notify("session/cancel", {"sessionId": session})
        held, self.held = self.held, []
        for message in held:
            await self.permit(message, "cancelled")

    async def answers(self, start: int) -> list[Message]:
        """What the agent has answered since `start`, up to its answer to a ping of now."""
        call = await self.ping()
        return [message for message in self.messages[start : call.at] if "method" not in message]

    def updates(self, session: str, start: int = 0, end: int | None = None) -> list[Json]:
        """The updates of a session among the messages from `start` to `end`."""
        found = [
            mapping(message.get("params"))
            for message in self.messages[start:end]
            if message.get("method") == "session/update"
        ]
        return [mapping(p.get("update")) for p in found if p.get("sessionId") == session]


def content(updates: Sequence[Json]) -> list[str]:
    """The kinds of those updates that are part of a turn."""
    return [str(u.get("sessionUpdate")) for u in updates if u.get("sessionUpdate") in CONTENT_KINDS]
