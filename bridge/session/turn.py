"""What one turn comes to: fed with updates and the agent's answer, asked for its result. Sans-IO.

Owns: the reply text, the statuses of the tool calls, the metadata, and why the turn was stopped.
Rules: the reply is the text of the last agent message (a chunk with another messageId starts it
anew, chunks without an id append); a turn that was stopped reports that, whatever the agent says.
Fed by `bridge.session.session`; results are shaped by `bridge.session.responses`.
"""

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bridge.agent.updates import Incoming
from bridge.errors import BridgeError
from protocol_schemas.acp import PromptResult, TextBlock

if TYPE_CHECKING:
    from protocol_schemas.model import ModelTurn

Stop = Literal["cancelled", "timeout"]
Outcome = Literal[
    "completed", "truncated", "refused", "cancelled", "timeout", "failed", "model_failed", "empty"
]

_OUTCOMES: dict[str, Outcome] = {
    "max_tokens": "truncated",
    "max_turn_requests": "truncated",
    "refusal": "refused",
    "cancelled": "cancelled",
}


_OPEN = ("pending", "in_progress")


class TurnResult(msgspec.Struct):
    """The end of a turn. `error` is set where it failed; the rest is what had come by then."""

    reply: str = ""
    stop_reason: str | None = None
    response_metadata: dict[str, Any] = {}
    update_metadata: list[dict[str, Any]] = []
    turn: int | None = None
    agent_stop_reason: str | None = None
    outcome: Outcome = "failed"
    usage: dict[str, Any] | None = None
    tool_statuses: list[str] = []
    limit: str | None = None
    """The limit on the model's use that stopped it (`config.model.limits`)."""
    model_errors: list[dict[str, Any]] | None = None
    """The turn's model calls that failed (protocol_schemas.model.ModelError); None: not known."""
    open_tool_calls: list[str] = []
    """The ids of the tool calls that never got a final status."""
    error: BridgeError | None = None

    @property
    def visible(self) -> bool:
        """Whether the reply has text that a person would see."""
        return bool(self.reply) and not self.reply.isspace()


class Turn:
    """A turn from the moment its prompt is sent to its one end."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.stopped: Stop | None = None
        self.stop_words = ""
        self.stirred = False
        """Whether the agent has shown life since this was last set to False."""
        self._parts: list[str] = []
        self._visible = False
        self._message_id: str | None = None
        self._tools: dict[str, str] = {}
        self._metadata: list[dict[str, Any]] = []
        self._answer: PromptResult | None = None
        self._error: BridgeError | None = None

    def update(self, incoming: Incoming) -> None:
        """Takes in one `session/update`."""
        self.stirred = True
        update = incoming.params.update
        if update.kind == "agent_message_chunk":
            content = update.content
            if isinstance(content, TextBlock) and content.text and content.type == "text":
                self._text(content.text, update.message_id)
        elif update.tool_call_id is not None and update.kind in ("tool_call", "tool_call_update"):
            status = update.status or self._tools.get(update.tool_call_id, "pending")
            self._tools[update.tool_call_id] = status
        if update.meta or incoming.params.meta:
            self._metadata.append(incoming.metadata() or {})

    def _text(self, text: str, message_id: str | None) -> None:
        if message_id is not None and message_id != self._message_id:
            self._message_id = message_id
            self._parts.clear()
            self._visible = False
        self._parts.append(text)
        if not self._visible and not text.isspace():
            self._visible = True

    def anew(self) -> None:
        """What was taken in so far was not of this turn."""
        self._parts, self._visible, self._message_id = [], False, None
        self._tools.clear()
        self._metadata.clear()

    def answer(self, result: PromptResult) -> None:
        """Takes in the response to `session/prompt`."""
        self._answer = result

    def fail(self, error: BridgeError) -> None:
        """The prompt was answered with an error, or can't be answered any more."""
        self._error = error

    def stop(self, why: Stop, words: str = "") -> bool:
        """The turn is being stopped from our side; False if it was already."""
        if self.stopped is not None:
            return False
        self.stopped = why
        self.stop_words = words
        return True

    @property
    def wants_text(self) -> bool:
        """Answered without visible text, and late text is worth a short wait (HOST §2)."""
        return (
            self._answer is not None
            and not self._visible
            and self.stopped is None
            and self._answer.stop_reason not in ("cancelled", "refusal")
        )

    @property
    def answered(self) -> bool:
        """Whether the agent's response is there; what still comes is late."""
        return self._answer is not None

    @property
    def visible(self) -> bool:
        """Whether there is text that a person would see."""
        return self._visible

    def result(self, models: "ModelTurn | None" = None) -> TurnResult:
        """What the turn came to. Meaningful once it was answered, failed or stopped for good.

        `models`: what its model calls came to, where that is known."""
        answer = self._answer or PromptResult()
        result = TurnResult(
            reply="".join(self._parts),
            stop_reason=answer.stop_reason,
            response_metadata=answer.meta or {},
            update_metadata=self._metadata,
            turn=self.number,
            agent_stop_reason=answer.stop_reason,
            outcome=_OUTCOMES.get(answer.stop_reason or "", "completed"),
            usage=answer.usage,
            tool_statuses=list(self._tools.values()),
            open_tool_calls=[name for name, status in self._tools.items() if status in _OPEN],
        )
        if models is not None:
            result.model_errors = msgspec.to_builtins(models.errors)
            result.outcome = _with_models(result, models)
        if self.stopped is not None:
            if answer.usage is not None and not any(answer.usage.values()):
                # Agents report zeros for a turn that was stopped: that is not a measurement.
                result.usage = None
            result.outcome = self.stopped
            result.stop_reason = "cancelled" if self.stopped == "cancelled" else None
            if self.stopped == "timeout":
                result.error = BridgeError(self.stop_words, code="timeout", origin="bridge")
        elif self._error is not None:
            result.outcome = "failed"
            result.stop_reason = None
            result.error = self._error
        return result


def begin(number: int, version: int) -> Turn:
    """A turn of an agent that speaks that version of ACP."""
    if version == 1:
        return Turn(number)
    # For those who ask for version 2.
    from bridge.session.message_turn import MessageTurn

    return MessageTurn(number)


def _with_models(result: TurnResult, models: "ModelTurn") -> Outcome:
    """The outcome of a turn that the agent ended as if all were well, seen from its model."""
    if result.outcome != "completed":
        return result.outcome
    if models.last == "failed":
        return "model_failed"
    return "empty" if models.last == "answered" and not result.visible else "completed"
