"""Delivering what waits in a session's mailbox: a turn of its own for all of it.

Rules: what came while a turn ran goes out as one turn after it, before any prompt that waits; after
a cancel nothing does unasked; what was taken is told of by the turn's events, whatever becomes of
it. Called by `bridge.session.controls` (`send`), and by the session's queue after each job.
"""

from typing import TYPE_CHECKING

from bridge.host import responses
from bridge.session.jobs import Block, PromptJob
from bridge.session.turn import TurnResult
from protocol_schemas.acp import AgentCapabilities

if TYPE_CHECKING:
    from bridge.session.session import Session


def post(session: "Session", message_id: str, blocks: list[Block]) -> None:
    """Queues a message for a turn of its own."""
    session.mailbox.put(message_id, blocks)
    if not any(session.queue.prompts()):
        session.mailbox.held = False
    if session.queue.idle:
        deliver(session)


def deliver(session: "Session") -> None:
    """Begins the turn for what waits, if something does and may."""
    mailbox = session.mailbox
    if not mailbox or mailbox.held or session.state == "closed":
        return
    ids: list[str] = []

    def take(_can: AgentCapabilities, _first: bool) -> list[Block]:
        taken, blocks = mailbox.take()
        ids.extend(taken)
        return blocks

    def respond(result: TurnResult) -> None:
        if not ids:
            if result.error is None:
                # Cancelled before it began: what waits goes on waiting.
                return
            ids.extend(mailbox.withdraw())
        fields = responses.turn_ended(ids, result)
        session.host.event("turn", session.name, result.turn, fields)

    session.queue.put_next(PromptJob(None, take, respond, message_ids=ids))
