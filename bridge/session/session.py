"""One host session: what the host asks of it, one thing after another, and its agent's messages.

Owns: the queue of jobs, the running turn, the ACP session. Rules:
- Jobs (open, restore, prompts, queued messages) run one after another; steer and cancel overtake.
- Everything the agent sends is handled by its connection's reader, in wire order: the response
  that ends a turn is sent to the host right there, behind the turn's last update.
- Every turn ends in `end_turn` or in its job's `finish`, once, whatever dies.

Driven by `bridge.session.operations`; its agents come from `bridge.session.launcher`.
"""

import codecs
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import anyio

from bridge.agent.client import AgentClient
from bridge.agent.supervisor import Agent
from bridge.agent.updates import Incoming
from bridge.errors import BridgeError, RequestFailed, invalid_request
from bridge.host import responses
from bridge.host.server import HostServer
from bridge.rpc.connection import ConnectionEnded, Settle
from bridge.session import attendance, delivery, opening, quirks, telling, translate
from bridge.session.faults import agent_error, death
from bridge.session.jobs import Announce, Block, Call, PromptJob, Queue
from bridge.session.launcher import Launcher, Opened, check_unchanged
from bridge.session.mailbox import Mailbox
from bridge.session.permissions import Permissions
from bridge.session.services import Services
from bridge.session.telling import APART
from bridge.session.turn import Stop, Turn, begin
from bridge.wire import codec
from bridge.wire.jsonrpc import Notification, Request, Response
from protocol_schemas.acp import PromptResult
from protocol_schemas.host import Config

if TYPE_CHECKING:
    from bridge.session.proxies import Proxies
    from protocol_schemas.model import ModelTurn

_CATCH_UP = 0.25
State = Literal["new", "opening", "idle", "running", "dead", "closed"]


class Session:
    """A named session of the host and the `Sink` of its ACP session."""

    def __init__(
        self,
        name: str,
        host: HostServer,
        launcher: Launcher,
        *,
        native: Callable[[], bool],
        models: "Proxies",
    ) -> None:
        self.name = name
        self.host = host
        self._models = models
        self.launcher = launcher
        self.config = Config()
        self.agent: Agent | None = None
        self.session_id: str | None = None
        self.opened: Opened | None = None
        """How its ACP session was made."""
        self.unopened: opening.Unopened | None = None
        """What became of the last try to open it, until one succeeds."""
        self.turn: Turn | None = None
        self.turns = 0
        self.strays = 0
        """Updates that came outside a turn."""
        self.mailbox = Mailbox()
        self.permissions = Permissions(
            ask_host=lambda fields: self.event("permission", fields),
            stop=lambda: self.stop_turn("cancelled"),
            note=launcher.decided(name),
        )
        self.services = Services(host.wants, self.event)
        self.stderr = codecs.getincrementaldecoder("utf-8")("replace")
        """A character may come in two pieces."""
        self._changed = anyio.Event()
        self._job: PromptJob | None = None
        self.native = native
        self._first = True
        self.replaying = False
        self.opening = False
        self._closed = False
        self.queue = Queue(name, self._prompt, after=lambda: delivery.deliver(self))

    @property
    def state(self) -> State:
        if self._closed:
            return "closed"
        if self.opening:
            return "opening"
        if self.agent is None or self.session_id is None:
            return "new"
        if self.agent.death is not None:
            return "dead"
        return "idle" if self.turn is None else "running"

    @property
    def waits_for_host(self) -> bool:
        """Whether the agent has asked something that the gate or the host has yet to answer."""
        return self.permissions.waiting or self.services.waiting

    def event(self, name: str, fields: dict[str, Any]) -> None:
        """Sends the host an event of this session, if it wants its kind."""
        self.host.event(name, self.name, self.turn.number if self.turn else None, fields)

    def adopt(self, opened: Opened, config: Config, announce: Announce, *, first: bool) -> None:
        """The reader's: takes an ACP session for its own, before any more of it comes."""
        self.agent, self.session_id, self.opened = opened.agent, opened.session_id, opened
        self.config, self.unopened = config, None
        self._first = first
        self.opening = self.replaying = False
        announce(opened.description())

    def configure(self, config: Config) -> None:
        """Sets what its agent may ask for; raises BridgeError(invalid_request)."""
        self._permit(config, anew=True)
        self.services.enable(config.client_services, lambda: self.launcher.terminals(config))

    def _permit(self, config: Config, *, anew: bool) -> None:
        """Sets who answers permission requests; not `anew`, what is not given stays as it is."""
        if config.permission == "ask" and not self.host.wants("permission"):
            raise invalid_request(
                "config.permission is ask, but the host has not subscribed to permission events: "
                'say {"operation":"hello","protocol":1,"events":["permission"]} first'
            )
        if anew or config.permission is not None:
            self.permissions.policy = config.permission or "allow"
        if anew or config.tool_interception is not None:
            self.permissions.set_gate(config.tool_interception)

    def living(self) -> Agent:
        """The agent of an open session; raises BridgeError."""
        if (error := opening.owed(self)) is not None:
            raise error
        if self.agent is None or self.session_id is None:
            words = "is not open: send open, resume, load or a prompt first"
            if not self.queue.idle:
                words = "is being opened: send this again once that has been answered"
            raise invalid_request(f"session {self.name!r} {words}")
        if (cause := self.agent.death) is not None:
            raise BridgeError(
                f"{cause.message}; open, resume or load session {self.name!r} again",
                code="agent_exited",
                origin="agent",
                extra=cause.extra,
            )
        return self.agent

    # turns

    async def _prompt(self, job: PromptJob) -> None:
        if job.finished:
            return
        config = job.config or self.config
        if self.session_id is None:
            await opening.begin(self, job.opening or config)
        agent = self.living()
        check_unchanged(config, self.config, native=self.native())
        if job.config is not None:
            self._permit(config, anew=False)
        # What the agent wrote since the last turn's end must not count to this one.
        await agent.client.connection.caught_up(_CATCH_UP)
        while self.turn is not None:
            # The agent has begun it by itself.
            await attendance.attend(self, self.turn, self._limits())
        self.living()
        if job.finished:
            return
        session_id, blocks = self.session_id or "", self._blocks(job, agent)
        turn = self._begin(job, agent)
        agent.begin_turn()
        try:
            agent.client.prompt(
                session_id, blocks, lambda response: self._answered(turn, agent, response)
            )
        except codec.JSONError as error:
            turn.fail(invalid_request(f"the prompt cannot be written: {error}"))
            self.end_turn(turn)
        await attendance.attend(self, turn, attendance.Limits.of(config, self.config))

    def _blocks(self, job: PromptJob, agent: Agent) -> list[Block]:
        """The turn's prompt: its own blocks, before them messages that wait, before all the system
        prompt, in the session's first turn."""
        blocks = job.blocks(agent.client.capabilities, self._first)
        if job.message_ids is None and self.mailbox:
            _, waiting = self.mailbox.take()
            blocks = [*waiting, {"type": "text", "text": "\n\n"}, *blocks]
        config = job.config or self.config
        if self._first and config.messages is None:
            given = config.system_prompt
            system = self.config.system_prompt if given is None else given
            if system != quirks.told(self):
                blocks = [*translate.system_blocks(system), *blocks]
        return blocks

    def _begin(self, job: PromptJob | None, agent: Agent) -> Turn:
        """Begins a turn, for a job or by the agent itself."""
        self.turns += 1
        turn = self.turn = begin(self.turns, agent.client.dialect.version)
        self._job = job
        self._models.turn_began(self.name)
        self.permissions.stopping = self.services.stopping = False
        ids = [] if job is None else job.message_ids
        if ids is not None:
            self.event("turn", {"state": "started", "message_ids": ids})
        return turn

    def _limits(self) -> attendance.Limits:
        return attendance.Limits.of(self.config, self.config)

    def _answered(self, turn: Turn, agent: Agent, response: Response) -> None:
        """The reader's: the response to `session/prompt`, or the connection's end in its place."""
        try:
            result = codec.mapping(agent.client.connection.result_of(response)) or {}
            turn.answer(codec.convert(result, PromptResult))
        except RequestFailed as error:
            turn.fail(agent_error(error, agent))
        except ConnectionEnded as error:
            turn.fail(death(agent, str(error)))
        except codec.JSONError as error:
            words = f"the agent's answer to session/prompt cannot be read: {error}"
            turn.fail(BridgeError(words, code="protocol", origin="agent"))
        if turn.wants_text or (turn.answered and quirks.settle(self)):
            self._changed.set()
        else:
            self.end_turn(turn)

    def end_turn(self, turn: Turn) -> None:
        """The one end of a turn that was begun: answers its job."""
        if self.turn is not turn:
            return
        result = turn.result(self._model_turn())
        if result.error is not None and self.agent is not None:
            self.agent.explain()
        job = self._job
        if job is not None:
            job.finish(result)
        else:
            fields = responses.turn_ended([], result)
            self.host.event("turn", self.name, result.turn, fields)
        self.turn = self._job = None
        self.permissions.stopping = self.services.stopping = False
        if result.error is None and job is not None:
            self._first = False
        if result.outcome == "cancelled" and turn.stopped:
            self.mailbox.held = True
        self._changed.set()

    def _model_turn(self) -> "ModelTurn | None":
        """What the turn's model calls came to, if that is known: of an agent that carries other
        sessions (forks) it is not, since nobody can tell whose calls they were."""
        calls = self._models.turn_ended(self.name)
        alone = self.agent is None or self.agent.client.sessions <= 1
        return calls if alone else None

    def stop_turn(self, why: Stop, words: str = "") -> None:
        """Asks the agent to end the turn; its permission requests are answered `cancelled`."""
        turn, agent = self.turn, self.agent
        if turn is None or agent is None or not turn.stop(why, words):
            return
        if turn.answered:
            self.end_turn(turn)
            return
        self._models.turn_cancelled(self.name)
        agent.client.cancel(self.session_id or "")
        if self.turn is not turn:
            return
        self.permissions.cancel_all()
        self.services.cancel_all()
        self._changed.set()

    def cancel(self) -> Turn | None:
        """Cancels the turn that runs or is about to; the one whose end is still to come."""
        turn = self.turn
        if turn is not None:
            if self._job is None:
                # What the host knows of is what it asked for.
                self._cancel_waiting()
            self.stop_turn("cancelled")
            return turn
        self._cancel_waiting()
        return None

    def _cancel_waiting(self) -> None:
        waiting = next(self.queue.prompts(), None)
        if waiting is not None:
            waiting.cancel()
            self.mailbox.held = True

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition on the turn: it was answered, stopped or ended, or has new text."""
        while not condition():
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()

    # closing

    def begin_close(self) -> None:
        """Takes no more jobs; those that have not reached the agent are over."""
        self._closed = True
        self.mailbox.withdraw()
        self.queue.close(running=self._job)

    def finish(self) -> None:
        """The session is over: a turn that still has no end gets it."""
        self.permissions.set_gate(None)
        if self.turn is not None:
            self.end_turn(self.turn)

    # what the agent sends (bridge.agent.client.Sink)

    def update(self, incoming: Incoming) -> None:
        turn = self.turn
        if turn is not None:
            turn.update(incoming)
            if turn.answered:
                self._changed.set()
        else:
            self.strays += 1
            self._changed.set()
        if self.host.wants("update"):
            number = turn.number if turn else None
            telling.relay(self.host, self.name, number, incoming, replay=self.replaying)
        if incoming.params.update.kind in APART:
            telling.apart(self.host, self.name, turn.number if turn else None, incoming)

    def late(self, incoming: Incoming) -> None:
        self.strays += 1
        self._changed.set()
        if self.turn is not None:
            self.turn.stirred = True
        if self.host.wants("update"):
            telling.relay(self.host, self.name, None, incoming, replay=False)

    def begun(self) -> Settle:
        agent = self.agent
        assert agent is not None
        if self.turn is not None:
            # Answered, and waiting for late text only.
            self.end_turn(self.turn)
        turn = self._begin(None, agent)
        agent.begin_turn()

        async def attend(_announce: Announce) -> None:
            await attendance.attend(self, turn, self._limits())

        self.queue.put_next(Call(attend, lambda _outcome: None))
        return lambda response: self._answered(turn, agent, response)

    def anew(self) -> None:
        if self.turn is not None:
            self.turn.anew()

    def child(self, session_id: str, incoming: Incoming) -> None:
        if self.turn is not None:
            self.turn.stirred = True
        number = self.turn.number if self.turn else None
        telling.child(self.host, self.name, number, session_id, incoming)

    def request(self, request: Request, client: AgentClient) -> None:
        if request.method == "session/request_permission":
            self.permissions.take(request, client.connection, client.inbound)
        else:
            self.services.take(request, client.connection, client.inbound)

    def notification(self, notification: Notification) -> None:
        """Notifications other than updates change nothing here."""
