"""Calls of modern callers that a legacy server asks something in the middle of.

A modern caller cannot be sent requests: it gets `input_required` and sends its call again with the
answers. The server's session must live meanwhile, so the call is parked. Rules: the state that
leads back to it is unguessable; who does not come back in time, or leaves while it runs, has it
cancelled. Source: MCP 2026-07-28, "Multi round-trip requests". Called by `bridge.mcp.dispatch`.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.abc import TaskGroup

from bridge.mcp import messages
from bridge.mcp.eras import Client
from bridge.mcp.messages import Answer, Members
from bridge.mcp.relay import Caller
from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw

Json = dict[str, Any]
Made = Callable[[Caller], Awaitable[Answer]]

KEPT_FOR = 600.0
_PREFIX = "dev.acp-mcp-bridge."


class Parked:
    """One call, as its caller for the server's side. `caller` is whoever waits for it now."""

    def __init__(self, caller: Caller) -> None:
        self.caller: Caller | None = caller
        self.client: Client = caller.client
        self.outcome: Answer | BaseException | None = None
        self.answered = False
        self.scope = anyio.CancelScope()
        self._news = anyio.Event()
        self._open: dict[str, Json] = {}
        self._answers: dict[str, Callable[[Answer], None]] = {}
        self._count = 0

    # -- for the server's side ------------------------------------------------------------------

    async def tell(self, message: bytes) -> None:
        if self.caller is not None:
            await self.caller.tell(message)

    async def ask(self, method: str, params: Raw) -> Answer:
        self._count += 1
        name = f"q{self._count}"
        got: list[Answer] = []
        settled = anyio.Event()

        def settle(answer: Answer) -> None:
            got.append(answer)
            settled.set()

        question: Json = {"method": method}
        if bytes(params) != b"null":
            question["params"] = params
        self._open[name], self._answers[name] = question, settle
        self._news.set()
        try:
            await settled.wait()
        finally:
            self._open.pop(name, None)
            self._answers.pop(name, None)
        return got[0]

    async def run(self, made: Made) -> None:
        with self.scope:
            try:
                self.outcome = await made(self)
                self.answered = True
            except Exception as error:  # noqa: BLE001 - raised again for whoever waits
                self.outcome = error
        if self.outcome is None:
            self.outcome = messages.error(jsonrpc.INTERNAL_ERROR, "the call was given up")
        self._news.set()

    # -- for the caller's side ------------------------------------------------------------------

    def take(self, responses: Members) -> None:
        """The caller's answers to what it was asked."""
        for name, value in responses.items():
            if name in self._answers:
                self._answers[name](Answer(value))
                self._open.pop(name, None)

    async def step(self, state: str) -> Answer:
        """Waits for the outcome, or for something to be asked; raises what the call raised."""
        while self.outcome is None and not self._open:
            self._news = anyio.Event()
            await self._news.wait()
        if isinstance(self.outcome, Answer):
            return self.outcome
        if self.outcome is not None:
            raise self.outcome
        return messages.result(
            {
                "resultType": "input_required",
                "inputRequests": dict(self._open),
                "requestState": state,
            }
        )


class Lot:
    """The parked calls of one hub."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._parked: dict[str, Parked] = {}

    @property
    def waiting(self) -> int:
        """How many calls there are that may be gone on with."""
        return len(self._parked)

    async def begin(self, caller: Caller, made: Made) -> Answer:
        """Makes a call that may be parked."""
        state = _PREFIX + secrets.token_urlsafe(18)
        parked = self._parked[state] = Parked(caller)
        self._tasks.start_soon(self._run, state, parked, made)
        return await self._wait(state, parked)

    async def _run(self, state: str, parked: Parked, made: Made) -> None:
        await parked.run(made)
        if parked.caller is None and not parked.answered:
            # Given up, or ended with its turn: nobody will come back for that.
            self._parked.pop(state, None)

    async def resume(self, caller: Caller, params: Members) -> Answer | None:
        """Goes on with the call that a state leads to; None if it is no state of ours."""
        state = codec.decode(params["requestState"]) if "requestState" in params else None
        if not isinstance(state, str) or not state.startswith(_PREFIX):
            return None
        parked = self._parked.get(state)
        if parked is None or parked.caller is not None:
            return messages.error(
                jsonrpc.INVALID_PARAMS, "requestState leads to no call that waits for its input"
            )
        parked.scope.deadline = float("inf")
        parked.caller = caller
        parked.take(messages.members(params.get("inputResponses", Raw(b"{}"))) or {})
        return await self._wait(state, parked)

    async def _wait(self, state: str, parked: Parked) -> Answer:
        try:
            answer = await parked.step(state)
        except BaseException:
            parked.scope.cancel()
            self._parked.pop(state, None)
            raise
        parked.caller = None
        if parked.outcome is None:
            parked.scope.deadline = anyio.current_time() + KEPT_FOR
        else:
            del self._parked[state]
        return answer

    def end(self) -> None:
        """Gives all of them up."""
        for parked in self._parked.values():
            parked.scope.cancel()
