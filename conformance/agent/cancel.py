"""session/cancel: the stop reason, the order of what comes, and what is left of the session."""

from conformance.agent.checks import SUITE
from conformance.agent.client import Client, Turn, content
from conformance.agent.lab import Lab
from conformance.agent.prompts import REASONS
from conformance.agent.sessions import UNKNOWN
from conformance.check import expect
from conformance.wire import compact


async def cancelled_turn(lab: Lab) -> tuple[Client, str, Turn]:
    """A running turn, cancelled and answered, in a session of its own."""
    client = await lab.client()
    session = str((await lab.new_session(client)).get("sessionId"))
    turn = await lab.slow_turn(client, session)
    await client.cancel(session)
    await turn.call.answer()
    return client, session, turn


@SUITE.check(
    "cancel.stop-reason",
    "MUST",
    "Prompt Turn: Cancellation",
    "A cancelled turn is answered with the stop reason cancelled, not with an error.",
)
async def stop_reason(lab: Lab) -> None:
    reason = await (await cancelled_turn(lab))[2].reason()
    if reason == "end_turn":
        # It may have ended just when it was cancelled; not twice, though.
        reason = await (await cancelled_turn(lab))[2].reason()
    expect(reason == "cancelled", f"the stop reason is {compact(reason)}")


@SUITE.check(
    "cancel.nothing-after",
    "MUST",
    "Prompt Turn: Cancellation",
    "All updates of a cancelled turn come before its response.",
)
async def nothing_after(lab: Lab) -> None:
    client, session, turn = await cancelled_turn(lab)
    ping = await client.ping()
    late = content(client.updates(session, turn.call.at, ping.at))
    expect(not late, f"after the response came {', '.join(late)}")


@SUITE.check(
    "cancel.next-turn",
    "MUST",
    "Prompt Turn: Cancellation",
    "After a cancelled turn the session takes the next prompt, and that is not cancelled.",
)
async def next_turn(lab: Lab) -> None:
    client, session, _ = await cancelled_turn(lab)
    reason = await (await client.prompt(session, lab.options.prompt)).reason()
    expect(reason in REASONS - {"cancelled"}, f"the next stop reason is {compact(reason)}")


@SUITE.check(
    "cancel.idle",
    "MUST",
    "Prompt Turn: Cancellation",
    "A cancel when nothing runs is not answered, and does not cancel the next turn.",
)
async def idle(lab: Lab) -> None:
    await lab.turn()
    client, session = await lab.session()
    began = len(client.messages)
    await client.cancel(session)
    answers = await client.answers(began)
    expect(not answers, f"answered with {compact(answers)}")
    reason = await (await client.prompt(session, lab.options.prompt)).reason()
    expect(reason != "cancelled", "the next turn was cancelled")


@SUITE.check(
    "cancel.unknown-session",
    "SHOULD",
    "Prompt Turn: Cancellation",
    "A cancel for a session that does not exist is ignored.",
)
async def unknown_session(lab: Lab) -> None:
    client = await lab.client()
    began = len(client.messages)
    await client.cancel(UNKNOWN)
    answers = await client.answers(began)
    expect(not answers, f"answered with {compact(answers)}")


@SUITE.check(
    "cancel.other-session",
    "MUST",
    "Prompt Turn: Cancellation",
    "A cancel ends the turn of its own session alone.",
)
async def other_session(lab: Lab) -> None:
    client = await lab.client()
    first, second = [str((await lab.new_session(client)).get("sessionId")) for _ in range(2)]
    running = await lab.slow_turn(client, first)
    await client.cancel(second)
    await client.ping()
    expect(running.call.message is None, f"{first} was cancelled, but only {second} was meant")
    await client.cancel(first)
    await running.call.answer()
