"""What agents may offer for sessions that exist: load, resume, fork, list, close, delete."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from conformance.agent.checks import SUITE
from conformance.agent.client import Client, content
from conformance.agent.lab import Lab
from conformance.agent.sessions import UNKNOWN
from conformance.check import Broken, NotTried, expect
from conformance.wire import Json, compact, objects

CAPABILITIES: dict[str, tuple[str, ...]] = {
    "session/load": ("loadSession",),
    "session/resume": ("sessionCapabilities", "resume"),
    "session/fork": ("sessionCapabilities", "fork"),
    "session/list": ("sessionCapabilities", "list"),
    "session/close": ("sessionCapabilities", "close"),
    "session/delete": ("sessionCapabilities", "delete"),
}


def params(lab: Lab, session: str) -> Json:
    return {"sessionId": session, "cwd": lab.cwd, "mcpServers": []}


async def used(lab: Lab, method: str) -> str:
    """A session that has had a turn, if the agent has the method."""
    lab.advertises(await lab.client(), *CAPABILITIES[method])
    return (await lab.turn()).session


@asynccontextmanager
async def restored(lab: Lab, method: str) -> AsyncGenerator[tuple[Client, str, list[Json]]]:
    """A session of a process that has ended, opened again by another one: the client, the session,
    and what was replayed before the answer, which must be a result."""
    lab.advertises(await lab.client(), *CAPABILITIES[method])
    session = await lab.past_session()
    client = await lab.fresh()
    call = await client.start(method, params(lab, session))
    await call.result()
    yield client, session, client.updates(session, call.began, call.at)
    # Only one process at a time may have it.
    await lab.leave(client)


@SUITE.check(
    "capabilities.honest",
    "SHOULD",
    "Initialization: Capabilities",
    "Methods whose capability is not advertised are not there: they are errors.",
)
async def honest(lab: Lab) -> None:
    client = await lab.client()
    missing: list[str] = []
    for method, path in CAPABILITIES.items():
        try:
            lab.advertises(client, *path)
        except NotTried:
            missing.append(method)
    if not missing:
        raise NotTried("every method that needs a capability is advertised")
    session = (await lab.session())[1]
    for method in missing:
        message = await (await client.start(method, params(lab, session))).answer()
        expect("error" in message, f"{method} is not advertised, but succeeds")


@SUITE.check(
    "load.works",
    "MUST",
    "Session Setup: Loading Sessions",
    "session/load opens a session again, also in another process, and it takes prompts.",
)
async def load_works(lab: Lab) -> None:
    async with restored(lab, "session/load") as (client, session, _):
        await (await client.prompt(session, lab.options.prompt)).reason()


@SUITE.check(
    "load.replay",
    "MUST",
    "Session Setup: Loading Sessions",
    "The whole conversation is replayed as updates before session/load is answered.",
)
async def load_replay(lab: Lab) -> None:
    async with restored(lab, "session/load") as (client, session, updates):
        kinds = content(updates)
        wanted = {"user_message_chunk", "agent_message_chunk"}
        expect(wanted <= set(kinds), f"the replay was {', '.join(kinds) or 'empty'}")
        before = len(client.messages)
        await client.ping()
        late = content(client.updates(session, before))
        expect(not late, f"after the response came {', '.join(late)}")


@SUITE.check(
    "load.unknown",
    "SHOULD",
    "Session Setup: Loading Sessions",
    "Loading a session that does not exist is an error.",
)
async def load_unknown(lab: Lab) -> None:
    client = await lab.client()
    lab.advertises(client, *CAPABILITIES["session/load"])
    await (await client.start("session/load", params(lab, UNKNOWN))).error()


@SUITE.check(
    "resume.works",
    "MUST",
    "Session Setup: Resuming Sessions",
    "session/resume opens a session again, also in another process, and it takes prompts.",
)
async def resume_works(lab: Lab) -> None:
    async with restored(lab, "session/resume") as (client, session, _):
        await (await client.prompt(session, lab.options.prompt)).reason()


@SUITE.check(
    "resume.no-replay",
    "MUST",
    "Session Setup: Resuming Sessions",
    "session/resume does not replay the conversation.",
)
async def resume_no_replay(lab: Lab) -> None:
    async with restored(lab, "session/resume") as (_, _, updates):
        expect(not content(updates), f"replayed: {', '.join(content(updates))}")


@SUITE.check(
    "resume.unknown",
    "SHOULD",
    "Session Setup: Resuming Sessions",
    "Resuming a session that does not exist is an error.",
)
async def resume_unknown(lab: Lab) -> None:
    client = await lab.client()
    lab.advertises(client, *CAPABILITIES["session/resume"])
    await (await client.start("session/resume", params(lab, UNKNOWN))).error()


@SUITE.check(
    "fork.works",
    "MUST",
    "Schema (unstable): session/fork",
    "session/fork makes a session with an id of its own, and it takes prompts.",
)
async def fork_works(lab: Lab) -> None:
    session = await used(lab, "session/fork")
    client = await lab.client()
    forked = (await client.request("session/fork", params(lab, session))).get("sessionId")
    expect(isinstance(forked, str) and forked != session, f"the new id is {compact(forked)}")
    await (await client.prompt(str(forked), lab.options.prompt)).reason()


async def listed(client: Client, cwd: str | None = None) -> list[Json]:
    """Every session the agent lists, all pages of it."""
    found: list[Json] = []
    cursor: object = None
    for _ in range(1000):
        more: Json = {"cwd": cwd} if cwd is not None else {}
        more |= {"cursor": cursor} if cursor is not None else {}
        page = await client.request("session/list", more)
        found += objects(page.get("sessions"))
        cursor = page.get("nextCursor")
        if cursor is None:
            return found
    raise Broken("session/list gives a nextCursor for ever")


@SUITE.check(
    "list.works",
    "MUST",
    "Session List",
    "session/list has the sessions that there are, with their working directories.",
)
async def list_works(lab: Lab) -> None:
    session = await used(lab, "session/list")
    found = {str(one.get("sessionId")): one.get("cwd") for one in await listed(await lab.client())}
    expect(session in found, f"{session!r} is not among the {len(found)} sessions")
    expect(found[session] == lab.cwd, f"its cwd is {compact(found[session])}, not {lab.cwd!r}")


@SUITE.check(
    "list.cwd",
    "MUST",
    "Session List",
    "With a cwd, session/list has the sessions of that directory only.",
)
async def list_cwd(lab: Lab) -> None:
    session = await used(lab, "session/list")
    client = await lab.client()
    here = [one.get("sessionId") for one in await listed(client, lab.cwd)]
    expect(session in here, f"{session!r} is not listed for its own directory")
    elsewhere = await listed(client, f"{lab.cwd}/none")
    expect(not elsewhere, f"listed for a directory without sessions: {compact(elsewhere)[:200]}")


@SUITE.check(
    "close.works",
    "MUST",
    "Session Setup: Closing Sessions",
    "session/close cancels what runs in the session: the turn ends with the stop reason cancelled.",
)
async def close_works(lab: Lab) -> None:
    client = await lab.client()
    lab.advertises(client, *CAPABILITIES["session/close"])
    session = str((await lab.new_session(client)).get("sessionId"))
    turn = await lab.slow_turn(client, session)
    await client.request("session/close", {"sessionId": session})
    reason = await turn.reason()
    expect(reason == "cancelled", f"the stop reason is {compact(reason)}")


@SUITE.check(
    "close.idle",
    "MUST",
    "Session Setup: Closing Sessions",
    "session/close of a session in which nothing runs succeeds.",
)
async def close_idle(lab: Lab) -> None:
    client = await lab.client()
    lab.advertises(client, *CAPABILITIES["session/close"])
    session = str((await lab.new_session(client)).get("sessionId"))
    await client.request("session/close", {"sessionId": session})


async def deleted(lab: Lab) -> tuple[Client, str]:
    """A session with a turn, deleted."""
    client = await lab.client()
    lab.advertises(client, *CAPABILITIES["session/delete"])
    session = str((await lab.new_session(client)).get("sessionId"))
    await lab.refuse_error(await client.prompt(session, lab.options.prompt))
    await client.request("session/delete", {"sessionId": session})
    return client, session


@SUITE.check(
    "delete.works",
    "MUST",
    "Session Delete",
    "A session that was deleted is no longer listed.",
)
async def delete_works(lab: Lab) -> None:
    client, session = await deleted(lab)
    try:
        lab.advertises(client, *CAPABILITIES["session/list"])
    except NotTried:
        return
    left = [one.get("sessionId") for one in await listed(client)]
    expect(session not in left, f"{session!r} is still listed")


@SUITE.check(
    "delete.again",
    "SHOULD",
    "Session Delete",
    "Deleting a session that is already deleted succeeds.",
)
async def delete_again(lab: Lab) -> None:
    client, session = await deleted(lab)
    await client.request("session/delete", {"sessionId": session})
