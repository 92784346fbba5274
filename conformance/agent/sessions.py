"""Sessions: made, told apart, refused; the directories and MCP servers they are made with."""

import sys
from pathlib import Path

import anyio

from conformance.agent.checks import SUITE
from conformance.agent.lab import Lab
from conformance.check import Broken, NotTried, expect
from conformance.wire import Json, compact, mapping

MCP_SERVER = Path(__file__).parents[1] / "mcp_server.py"
AUTH_REQUIRED = -32000
UNKNOWN = "conformance-no-such-session"


@SUITE.check(
    "session.new",
    "MUST",
    "Session Setup: Creating a Session",
    "session/new is answered with the id of the session.",
)
async def new(lab: Lab) -> None:
    client = await lab.client()
    meta = lab.options.session_meta
    params: Json = {"cwd": lab.cwd, "mcpServers": [], **({"_meta": meta} if meta else {})}
    call = await client.start("session/new", params)
    message = await call.answer()
    if mapping(message.get("error")).get("code") == AUTH_REQUIRED:
        raise NotTried("the agent wants authentication first: --auth-method ID")
    session = (await call.result()).get("sessionId")
    expect(isinstance(session, str) and session, f"the sessionId is {compact(session)}")


@SUITE.check(
    "session.auth-required",
    "MUST",
    "Authentication: Authentication Required",
    "An agent that refuses a session with -32000 has advertised a method to authenticate with.",
)
async def auth_required(lab: Lab) -> None:
    client = await lab.spawn()
    await client.initialize()
    call = await client.start("session/new", {"cwd": lab.cwd, "mcpServers": []})
    error = mapping((await call.answer()).get("error"))
    if error.get("code") != AUTH_REQUIRED:
        raise NotTried("the agent asks for no authentication")
    expect(client.agent.get("authMethods"), "authMethods is empty")


@SUITE.check(
    "session.distinct",
    "MUST",
    "Session Setup: Session ID",
    "Every session has an id of its own.",
)
async def distinct(lab: Lab) -> None:
    client, first = await lab.session()
    second = (await lab.new_session(client)).get("sessionId")
    expect(second != first, f"two sessions have the id {first!r}")


@SUITE.check(
    "session.relative-cwd",
    "SHOULD",
    "Session Setup: Working Directory",
    "The working directory is an absolute path: a relative one is refused.",
)
async def relative_cwd(lab: Lab) -> None:
    client = await lab.client()
    await (await client.start("session/new", {"cwd": "relative", "mcpServers": []})).error()


@SUITE.check(
    "session.unknown",
    "SHOULD",
    "Session Setup: Session ID",
    "A prompt for a session that does not exist is an error.",
)
async def unknown(lab: Lab) -> None:
    client = await lab.client()
    turn = await client.prompt(UNKNOWN, lab.options.prompt)
    await turn.call.error()


@SUITE.check(
    "session.parallel",
    "MUST",
    "Session Setup",
    "A connection has several sessions at a time, and each turn's updates carry its session's id.",
)
async def parallel(lab: Lab) -> None:
    await lab.turn()
    client, first = await lab.session()
    second = str((await lab.new_session(client)).get("sessionId"))
    turns = [await client.begin(session, lab.options.prompt) for session in (first, second)]
    for turn in turns:
        await turn.call.answer()
    for turn in turns:
        await turn.reason()
    silent = [turn.session for turn in turns if not turn.of_kind("agent_message_chunk")]
    expect(not silent, f"no message of the agent in {', '.join(silent)}")


async def appears(file: anyio.Path, timeout: float) -> None:
    """Waits until the file is there, but not for longer than that."""
    with anyio.move_on_after(timeout):
        while not await file.exists():  # noqa: ASYNC110 (no event tells of a file)
            await anyio.sleep(0.05)


@SUITE.check(
    "session.mcp-stdio",
    "MUST",
    "Session Setup: MCP Servers",
    "MCP servers on stdio are connected to; every agent supports them.",
)
async def mcp_stdio(lab: Lab) -> None:
    client = await lab.client()
    mark = anyio.Path(lab.cwd) / ".conformance-mcp-server"
    server = {
        "name": "conformance",
        "command": sys.executable,
        "args": ["-I", "-S", str(MCP_SERVER), str(mark)],
        "env": [{"name": "CONFORMANCE_MCP", "value": "given"}],
    }
    meta = lab.options.session_meta
    params = {"cwd": lab.cwd, "mcpServers": [server], **({"_meta": meta} if meta else {})}
    session = str((await client.request("session/new", params)).get("sessionId"))
    if not await mark.exists():
        # Some connect when they first need to.
        await lab.refuse_error(await client.prompt(session, lab.options.prompt))
    await appears(mark, lab.options.timeout)
    if not await mark.exists():
        raise Broken("the server given in mcpServers was never spoken to")
    said = await mark.read_text()
    await mark.unlink()
    expect(said == "given", f"the server's environment variable was {said!r}, not 'given'")
