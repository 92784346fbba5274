"""Version 2, where the agent speaks it: the handshake, and turns that state_update ends."""

import anyio

from conformance.agent.checks import SUITE
from conformance.agent.client import Client
from conformance.agent.lab import SETTLE, TOO_SOON, Lab
from conformance.check import NotTried, expect
from conformance.wire import Json, compact, mapping

VERSION = 2


async def speaker(lab: Lab) -> Client:
    """A client that has agreed on version 2, in a process of its own."""
    if (reason := lab.reasons.get("version 2")) is not None:
        raise NotTried(reason)
    client = await lab.fresh(VERSION)
    if client.version != VERSION:
        reason = f"asked for version 2, the agent answers {client.version}"
        lab.reasons["version 2"] = reason
        raise NotTried(reason)
    return client


async def idle(client: Client, session: str, began: int) -> Json:
    """The state_update that ends the turn begun at that message."""

    def found() -> list[Json]:
        updates = client.updates(session, began)
        states = [u for u in updates if u.get("sessionUpdate") == "state_update"]
        return [u for u in states if u.get("state") == "idle" and u.get("stopReason") is not None]

    return (await client.wait(found, "no state_update idle with a stopReason"))[0]


@SUITE.check(
    "v2.initialize",
    "MUST",
    "Version 2: Initialization",
    "The agent answers with version 2, its info and the capabilities of that version.",
)
async def initialize(lab: Lab) -> None:
    client = await speaker(lab)
    expect(isinstance(client.agent.get("info"), dict), "info is missing")
    capabilities = mapping(client.agent.get("capabilities"))
    given = isinstance(capabilities.get("session"), dict)
    expect(given, f"capabilities.session is missing: {compact(capabilities)}")


@SUITE.check(
    "v2.prompt",
    "MUST",
    "Version 2: Prompt",
    "session/prompt is answered with the id of the message, which a user_message update has too.",
)
async def prompt(lab: Lab) -> None:
    client = await speaker(lab)
    session = str((await client.new_session(lab.cwd)).get("sessionId"))
    turn = await client.prompt(session, lab.options.prompt)
    message = (await turn.call.result()).get("messageId")
    expect(isinstance(message, str), f"messageId is {compact(message)}")
    await idle(client, session, turn.call.began)
    said = [u for u in client.updates(session, turn.call.began) if _is_users(u)]
    ids = [update.get("messageId") for update in said]
    expect(message in ids, f"user messages have the ids {compact(ids)}, the response {message!r}")


def _is_users(update: Json) -> bool:
    return update.get("sessionUpdate") in ("user_message", "user_message_chunk")


@SUITE.check(
    "v2.state",
    "MUST",
    "Version 2: Session State",
    "A turn begins with the state running and ends with the state idle and a stop reason.",
)
async def state(lab: Lab) -> None:
    client = await speaker(lab)
    session = str((await client.new_session(lab.cwd)).get("sessionId"))
    turn = await client.prompt(session, lab.options.prompt)
    await turn.call.result()
    last = await idle(client, session, turn.call.began)
    expect(last.get("stopReason") == "end_turn", f"the stop reason is {compact(last)}")
    states = [
        update.get("state")
        for update in client.updates(session, turn.call.began)
        if update.get("sessionUpdate") == "state_update"
    ]
    expect(states[:1] == ["running"], f"the states were {compact(states)}")


@SUITE.check(
    "v2.cancel",
    "MUST",
    "Version 2: Cancellation",
    "A cancelled turn ends with the state idle and the stop reason cancelled.",
)
async def cancel(lab: Lab) -> None:
    client = await speaker(lab)
    session = str((await client.new_session(lab.cwd)).get("sessionId"))
    turn = await client.begin(session, lab.options.slow_prompt)
    await turn.call.result()
    began = turn.call.began
    await client.wait(lambda: _is_running(client, session, began), "no state_update running")
    # What the agent has written in one go is read first.
    await anyio.sleep(SETTLE)
    if any(update.get("state") == "idle" for update in client.updates(session, began)):
        raise NotTried(TOO_SOON)
    await client.cancel(session)
    last = await idle(client, session, began)
    expect(last.get("stopReason") == "cancelled", f"the last state is {compact(last)}")


def _is_running(client: Client, session: str, began: int) -> bool:
    return any(update.get("state") == "running" for update in client.updates(session, began))
