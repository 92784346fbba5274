"""One call: its attempts, the waits between them, and how a failure looks to the caller.

Rule: what may be done again is the retry table's to say (`bridge.rules.retry`); this is the clock
around it. Every attempt is an event. Called by `bridge.mcp.dispatch` and by the host's calls.
"""

import itertools
import random
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup

from bridge.mcp import eras, inputs, messages, mirrored, pages
from bridge.mcp.attempt import Attempt
from bridge.mcp.channel import Fault, Outgoing
from bridge.mcp.messages import Answer
from bridge.mcp.relay import Caller, Relay
from bridge.mcp.server import Server
from bridge.mcp.session import Session
from bridge.rules import retry
from bridge.rules.retry import NO_HINTS, Failure
from bridge.wire import codec
from bridge.wire.codec import Raw
from protocol_schemas.mcp import Delivery, Hints

Json = dict[str, Any]
Tap = Callable[[str, bytes], None]
"""Sees each call and its answer: ("out" or "in", the JSON-RPC message)."""
Code = Literal["mcp_failed", "outcome_unknown", "timeout", "cancelled"]

_CODES: dict[retry.Verdict, Code] = {"unknown": "outcome_unknown", "timeout": "timeout"}
_READS = Hints(read_only_hint=True)
_moments = itertools.count(1)


def moment() -> int:
    """A number above all those given before: what came first is told exactly, by no clock (uvloop's
    stands still for a millisecond)."""
    return next(_moments)


def reads() -> Hints:
    """What holds of every request that only reads: lists, resources, prompts, completions."""
    return _READS


def unsaid() -> Hints:
    """What holds of a request of which nobody says anything."""
    return NO_HINTS


@dataclass
class Plan:
    """A request for a server, in the server's own terms."""

    server: Server
    method: str
    params: Mapping[str, Any]
    what: str
    subject: str
    """What it is about, for words and events: `Tool` and its name, `Resource` and its URI."""
    hints: Callable[[], Hints | None] = unsaid
    """What is said of it now; None as long as its tool has not been listed."""
    delivery: Delivery | None = None
    timeout: float | None = None
    pages: bool = False
    """It is a list, to be read whole."""
    mirrors: Callable[[], list[mirrored.Mirror]] = field(default=list)
    """The arguments that a modern server wants in headers, as its tool is known now."""
    relist: Callable[[], Awaitable[None]] | None = None
    """Has the tool looked up anew."""
    began: float = float("inf")
    """The `moment` it was asked for, where it ends with the turn it was made in."""


class GaveUp(Exception):
    """No answer, and no further attempt; its text is for people and models.

    `details` is what `_meta` carries of it: code, attempts, cause.
    """

    def __init__(self, code: Code, attempts: int, cause: str, words: str) -> None:
        super().__init__(words)
        self.details: Json = {"code": code, "attempts": attempts, "cause": cause}


def unheeded() -> None:
    """The `alive` of a call whose signs of life matter to nobody."""


class Call:
    """Makes a plan's attempts until one is answered; `alive` is called as the server gets on."""

    def __init__(
        self,
        plan: Plan,
        caller: Caller,
        *,
        tasks: TaskGroup,
        changed: Callable[[Server, str], None],
        on_event: Callable[[Json], None],
        tap: Tap | None = None,
        alive: Callable[[], None] = unheeded,
    ) -> None:
        self.began = plan.began
        self._plan = plan
        self._caller = caller
        self._tasks = tasks
        self._on_event = on_event
        self._tap = tap
        self._alive = alive
        self._policy = plan.server.policy
        self._delivery: Delivery = plan.delivery or self._policy.delivery
        self._timeout = plan.timeout or self._policy.timeout
        self._relay = Relay(plan.server, caller, eras.token_of(plan.params), changed)
        self._params = plan.params
        """Those of the plan, and what the caller was asked for: no attempt asks for it again."""
        self._more: Json = {}
        if plan.hints is not reads:
            self._more[eras.KEY_META] = secrets.token_hex(16)
        self._number = 0
        self._waited = 0.0
        self._maybe_executed = False
        self._scope = anyio.CancelScope()
        self._ended: str | None = None

    def end(self, why: str) -> None:
        """Ends it in its caller's place: the server is told, and no further attempt follows."""
        self._ended = why
        self._scope.cancel()

    async def answer(self) -> Answer:
        """The server's answer; raises GaveUp."""
        with self._scope:
            return await self._answered()
        raise self._gave_up("cancelled", self._ended or "")

    async def _answered(self) -> Answer:
        deadline = anyio.current_time() + (self._policy.total_timeout or 6 * self._timeout)
        while True:
            self._number += 1
            outcome = await self._attempt(deadline)
            if not isinstance(outcome, Failure):
                return outcome
            self._maybe_executed |= retry.EXECUTED[outcome.kind] == "maybe"
            if outcome.kind == "headers" and self._plan.relist is not None:
                await self._plan.relist()
            verdict = retry.verdict(outcome.kind, self._delivery, await self._hints(outcome))
            code = _CODES.get(verdict, "mcp_failed")
            if verdict != "retry" or self._number >= self._policy.attempts:
                raise self._gave_up(code, outcome.detail)
            wait = retry.wait_before_next(
                self._number, self._policy.backoff, outcome.retry_after, random.random
            )
            if anyio.current_time() + wait >= deadline:
                raise self._gave_up(code, f"{outcome.detail}; total_timeout leaves no more time")
            await anyio.sleep(wait)
            self._waited = wait
            self._relay.next_attempt()

    async def _hints(self, failure: Failure) -> Hints:
        """What the tool says of itself, asked for before a call may be executed again."""
        plan = self._plan
        maybe = retry.EXECUTED[failure.kind] == "maybe"
        if maybe and plan.hints() is None and plan.relist is not None:
            await plan.relist()
        return plan.hints() or NO_HINTS

    def _gave_up(self, code: Code, cause: str) -> GaveUp:
        plan, number = self._plan, self._number
        cause = plan.server.masked(cause)
        words = (
            f"{plan.what} {plan.subject!r} on MCP server {plan.server.name!r} failed "
            f"after {number} attempt{'s' if number > 1 else ''}: {cause}."
        )
        if self._maybe_executed:
            words += " The outcome is unknown: the server may have executed it."
        return GaveUp(code, number, cause, words)

    async def _attempt(self, deadline: float) -> Answer | Failure:
        attempt = Attempt(
            self._plan.server,
            self._caller.client,
            self._relay,
            self._work,
            timeout=self._timeout,
            deadline=deadline,
        )

        def extend() -> None:
            attempt.extend()
            self._alive()

        self._relay.extend = extend
        began = time.time()
        try:
            outcome = await attempt.result(self._tasks)
        except BaseException:
            self._maybe_executed |= attempt.session is not None and attempt.session.written
            self._report(attempt, None, began)
            raise
        self._report(attempt, outcome, began)
        return outcome

    async def _work(self, session: Session) -> Answer:
        """The call itself, in a session that is open."""
        if self._plan.pages:
            return await pages.whole(session, self._plan.method, self._params)
        while True:
            answer = await self._send(session, self._params)
            if self._caller.client.era == "legacy" and inputs.required(answer):
                # A legacy caller is asked by requests; it does not know of input_required.
                more = await inputs.gathered(answer, self._relay.asked)
                if isinstance(more, Answer):
                    return more
                self._params = {**self._params, **more}
                continue
            return answer

    async def _send(self, session: Session, params: Mapping[str, Any]) -> Answer:
        plan = self._plan
        headers = self._headers(params) if session.era == "modern" else []
        request = Outgoing(plan.method, None, counted=True, headers=headers)
        self._relay.expected = b"%d" % request.id
        more = {**self._more, eras.ATTEMPT_META: self._number} if self._more else None
        session.stamp(request, params, progress=self._relay.wanted, more=more)
        if self._tap is not None:
            self._tap("out", request.body)
        try:
            answer = await session.call(request)
        except Fault as fault:
            if session.era == "modern":
                # Its first request, where a legacy session has been opened by now.
                plan.server.doubt(fault)
            raise
        if self._tap is not None:
            self._tap("in", messages.response(b"%d" % request.id, answer))
        if session.era == "modern":
            plan.server.check_refusal(answer)
        return answer

    def _headers(self, params: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The headers of a modern request that mirror its body."""
        headers = [("Mcp-Method", self._plan.method)]
        name = params.get(mirrored.NAMED_BY.get(self._plan.method, ""))
        if name is not None:
            value = codec.decode(name) if isinstance(name, Raw) else name
            headers.append(("Mcp-Name", mirrored.wrap(str(value))))
        if (found := self._plan.mirrors()) and "arguments" in params:
            headers += mirrored.param_headers(found, codec.plain(params["arguments"]))
        return headers

    def _report(
        self, attempt: Attempt[Answer], outcome: Answer | Failure | None, at: float
    ) -> None:
        """One event an attempt. Nothing in it comes from a header or an argument."""
        failed = outcome if isinstance(outcome, Failure) else None
        cause = self._ended if outcome is None else None
        if failed is not None:
            cause = self._plan.server.masked(failed.detail)
        session = attempt.session
        self._on_event(
            {
                "event": "mcp",
                "server": self._plan.server.name,
                "method": self._plan.method,
                "tool": self._plan.subject,
                "attempt": self._number,
                "outcome": _outcome(outcome),
                "cause": cause,
                "status": None if failed is None else failed.status,
                "era": None if session is None else session.era,
                "waited": round(self._waited, 6),
                "started": at,
                "seconds": round(time.monotonic() - attempt.began, 6),
            }
        )


def _outcome(outcome: Answer | Failure | None) -> str:
    if outcome is None:
        return "cancelled"
    if isinstance(outcome, Failure):
        return outcome.kind
    return "answer" if outcome.error is None else "error"
