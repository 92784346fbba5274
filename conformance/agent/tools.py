"""Tool calls and the permission to make them."""

from collections.abc import Sequence

from conformance.agent.checks import SUITE
from conformance.agent.client import Client, Turn
from conformance.agent.lab import Lab
from conformance.check import NotTried, expect
from conformance.wire import Json, compact, mapping, objects

NO_PERMISSION = "it asked for no permission; --tool-prompt TEXT and --mode ID are to make it ask"


def states(updates: Sequence[Json]) -> dict[str, str]:
    """The last status of every tool call, by its id; the first is pending unless it is given."""
    found: dict[str, str] = {}
    for update in updates:
        if update.get("sessionUpdate") in ("tool_call", "tool_call_update"):
            ident = str(update.get("toolCallId"))
            found[ident] = str(update.get("status") or found.get(ident, "pending"))
    return found


async def asking_turn(lab: Lab) -> tuple[Client, str, Turn, Json]:
    """A turn that waits for permission, in a session of its own; the request."""
    client = await lab.client()
    session = str((await lab.new_session(client)).get("sessionId"))
    client.policy = None
    turn = await client.begin(session, lab.options.tool_prompt)
    await client.wait(lambda: client.held or turn.call.message, "neither permission nor response")
    if not client.held:
        await lab.refuse_error(turn)
        raise NotTried(NO_PERMISSION)
    return client, session, turn, client.held[0]


@SUITE.check(
    "tool.announced",
    "MUST",
    "Tool Calls: Creating",
    "A tool call is announced by tool_call before it is updated.",
)
async def announced(lab: Lab) -> None:
    turn = await lab.tool_turn()
    known: set[str] = set()
    for update in turn.of_kind("tool_call", "tool_call_update"):
        ident = str(update.get("toolCallId"))
        if update["sessionUpdate"] == "tool_call":
            known.add(ident)
        expect(ident in known, f"tool_call_update for {ident!r}, which was not announced")


@SUITE.check(
    "tool.finished",
    "SHOULD",
    "Tool Calls: Status",
    "When a turn has ended, its tool calls are completed or failed.",
)
async def finished(lab: Lab) -> None:
    turn = await lab.tool_turn()
    open_calls = {k: v for k, v in states(turn.updates).items() if v in ("pending", "in_progress")}
    expect(not open_calls, f"left open: {compact(open_calls)}")


@SUITE.check(
    "permission.options",
    "MUST",
    "Tool Calls: Requesting Permission",
    "A permission request offers at least one option, and each has an id of its own.",
)
async def options(lab: Lab) -> None:
    client, _, turn, request = await asking_turn(lab)
    offered = objects(mapping(request.get("params")).get("options"))
    ids = [str(option.get("optionId")) for option in offered]
    await client.permit(request, "allow_once")
    client.policy = "allow_once"
    await turn.call.answer()
    expect(ids and len(set(ids)) == len(ids), f"the option ids are {compact(ids)}")


@SUITE.check(
    "permission.allowed",
    "MUST",
    "Tool Calls: Requesting Permission",
    "When permission is given, the tool runs and the turn goes on to its end.",
)
async def allowed(lab: Lab) -> None:
    client, _, turn, request = await asking_turn(lab)
    await client.permit(request, "allow_once")
    client.policy = "allow_once"
    await turn.reason()
    done = [ident for ident, state in states(turn.updates).items() if state == "completed"]
    expect(done, f"no tool call was completed: {compact(states(turn.updates))}")


@SUITE.check(
    "permission.rejected",
    "MUST",
    "Tool Calls: Requesting Permission",
    "When permission is refused, the tool does not run and the turn ends all the same.",
)
async def rejected(lab: Lab) -> None:
    client, session, turn, request = await asking_turn(lab)
    client.policy = "reject_once"
    await client.permit(request, "reject_once")
    await turn.call.answer()
    params = [mapping(message.get("params")) for message in client.asked]
    asked = {
        str(mapping(one.get("toolCall")).get("toolCallId"))
        for one in params
        if one.get("sessionId") == session
    }
    states_now = states(turn.updates)
    ran = [ident for ident in asked if states_now.get(ident) == "completed"]
    expect(not ran, f"completed though it was refused: {', '.join(ran)}")


@SUITE.check(
    "permission.cancelled",
    "MUST",
    "Prompt Turn: Cancellation",
    "A turn cancelled while it waits for permission ends with the stop reason cancelled.",
)
async def cancelled(lab: Lab) -> None:
    client, session, turn, _ = await asking_turn(lab)
    await client.cancel(session)
    reason = await turn.reason()
    expect(reason == "cancelled", f"the stop reason is {compact(reason)}")
