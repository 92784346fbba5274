"""One turn: the model is asked, its tools are run, until it has nothing more to do.

Owns: the loop and all that a client sees of it. Rules:
- A turn is whole in the history however it ends: a partial answer is kept, every tool call has a
  result, every steering message is there.
- What a client sees precedes the response; cancelling waits for nothing but tools to be gone.
- Steering goes in where the model is asked next, and keeps the turn from ending before that.
Made by `bridge.loop_agent.agent` when session/prompt arrives; `run` gives its result.
"""

import uuid
from dataclasses import dataclass
from typing import Any

import anyio

from bridge.loop_agent.completion import Completion, Kind
from bridge.loop_agent.front import Front, Json, chunk, text
from bridge.loop_agent.model import Model
from bridge.loop_agent.prompt import Content, chat_content, title_of
from bridge.loop_agent.session import Session
from bridge.loop_agent.state import INTERRUPTED, tool_result
from bridge.loop_agent.tool_run import ToolRun, TurnCancelled
from protocol_schemas.chat import TokenUsage
from protocol_schemas.session_file import Message, Spent, Title


@dataclass(frozen=True)
class Limits:
    """`model_requests`: in one turn; `context_window`: tokens, told to clients in usage updates."""

    model_requests: int = 200
    context_window: int = 128_000


class Turn:
    """From the prompt's arrival to its response; raises RequestFailed if it cannot be sent."""

    def __init__(
        self, session: Session, prompt: list[Json], model: Model, front: Front, limits: Limits
    ) -> None:
        self._session = session
        self._prompt = prompt
        self._content = chat_content(prompt)
        self._model = model
        self._front = front
        self._limits = limits
        self._scope = anyio.CancelScope()
        self._steering: list[Message] = []
        self._answer: Answer | None = None
        self._cancelled = False
        self.ended = anyio.Event()

    def cancel(self) -> None:
        """session/cancel: the turn's result will be `cancelled`, also if it has not begun."""
        self._cancelled = True
        self._scope.cancel()

    @property
    def steerable(self) -> bool:
        """Whether a message can still get into this turn."""
        return not self._cancelled

    def steer(self, blocks: list[Json], message_id: str | None) -> None:
        """Puts a message before the model's next request. Raises RequestFailed (-32602)."""
        self._steering.append(user_message(blocks, chat_content(blocks), message_id))

    async def run(self) -> Json:
        """The result of session/prompt. Raises RequestFailed where model or disk fail."""
        stop_reason = "cancelled"
        try:
            with self._scope:
                stop_reason = await self._loop()
        finally:
            self._settle()
        result: Json = {"stopReason": "cancelled" if self._cancelled else stop_reason}
        if usage := self._session.state.usage():
            result["usage"] = usage
        return result

    async def _loop(self) -> str:
        session = self._session
        self._record_prompt()
        for _ in range(self._limits.model_requests):
            while self._steering:
                session.record(self._steering.pop(0))
            completion = await self._ask_model()
            match completion.ended_by:
                case "refusal":
                    return "refusal"
                case "length":
                    return "max_tokens"
                case _:
                    pass
            try:
                for call in completion.tool_calls:
                    await ToolRun(session, self._front, call).run()
            except TurnCancelled:
                return "cancelled"
            if not completion.tool_calls and not self._steering:
                return "end_turn"
        return "max_turn_requests"

    def _record_prompt(self) -> None:
        session = self._session
        if session.state.title is None:
            title = title_of(self._prompt)
            session.record(Title(title))
            self._front.update(session.id, {"sessionUpdate": "session_info_update", "title": title})
        session.record(user_message(self._prompt, self._content, None))

    async def _ask_model(self) -> Completion:
        """One request, streamed to the client, recorded."""
        session = self._session
        self._answer = Answer(session, self._front)
        completion = await self._model.complete(
            session.state.request_messages, session.tools.specs(), self._answer.show
        )
        self._answer.record(completion.message(with_calls=completion.ended_by == "stop"))
        self._answer = None
        if completion.usage is not None:
            self._account(completion.usage)
        return completion

    def _account(self, usage: TokenUsage) -> None:
        prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
        details, reasoning = usage.prompt_tokens_details, usage.completion_tokens_details
        self._session.record(
            Spent(
                prompt,
                completion,
                (reasoning.reasoning_tokens or 0) if reasoning else 0,
                (details.cached_tokens or 0) if details else 0,
            )
        )
        update = {
            "sessionUpdate": "usage_update",
            "used": prompt + completion,
            "size": self._limits.context_window,
        }
        self._front.update(self._session.id, update)

    def _settle(self) -> None:
        """Makes the history whole, whatever ended the turn. Does not wait, so nothing cuts it."""
        session = self._session
        session.turn = None
        self.ended.set()
        if self._answer is not None and self._answer.text:
            self._answer.record({"role": "assistant", "content": self._answer.text})
        for call_id in session.state.unanswered():
            session.record(Message(tool_result(call_id, INTERRUPTED)))
        for message in self._steering:
            session.record(message)


class Answer:
    """A model's answer on its way to the client."""

    def __init__(self, session: Session, front: Front) -> None:
        self._session = session
        self._front = front
        self._said: dict[Kind, list[str]] = {"thought": [], "text": []}
        self._ids: dict[Kind, str] = {
            "thought": f"thought_{uuid.uuid4().hex}",
            "text": f"msg_{uuid.uuid4().hex}",
        }

    @property
    def text(self) -> str:
        return "".join(self._said["text"])

    async def show(self, kind: Kind, piece: str) -> None:
        self._said[kind].append(piece)
        self._front.update(self._session.id, self._chunk(kind, piece))
        await self._front.room()

    def record(self, message: Json) -> None:
        """Keeps the message, with what a replay shows of it."""
        updates = [
            self._chunk(kind, "".join(pieces)) for kind, pieces in self._said.items() if pieces
        ]
        self._session.record(Message(message, updates))

    def _chunk(self, kind: Kind, words: str) -> Json:
        name = "agent_message_chunk" if kind == "text" else "agent_thought_chunk"
        return chunk(name, text(words), self._ids[kind])


def user_message(blocks: list[Json], content: Content, message_id: str | None) -> Message:
    """A user's message: for the model, and as a replay shows it."""
    ident = message_id or f"user_{uuid.uuid4().hex}"
    updates: list[dict[str, Any]] = [chunk("user_message_chunk", block, ident) for block in blocks]
    return Message({"role": "user", "content": content}, updates)
