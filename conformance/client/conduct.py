"""What a client does by itself: the handshake, sessions, prompts, cancelling, the end."""

from conformance.check import Broken, NotTried, expect
from conformance.client.lab import SUITE, Lab, lines
from conformance.client.peer import SESSION
from conformance.schema import methods
from conformance.wire import compact, mapping, objects

BASELINE = {"initialize", "authenticate", "session/new", "session/prompt", "session/cancel"}
BLOCKS = {"text", "resource_link"}


@SUITE.check(
    "initialize.first",
    "MUST",
    "Initialization",
    "The first message is initialize, and nothing else is sent until it is answered.",
)
async def first(lab: Lab) -> None:
    play = await lab.play("turn")
    if not play.told:
        raise Broken(f"the client did not start the agent, or sent it nothing: {play.state}")
    before: list[str] = []
    for direction, message in play.told:
        if direction == "out" and "method" not in message:
            break
        if direction == "in":
            before.append(str(message.get("method")))
    expect(before == ["initialize"], f"before its answer were sent: {', '.join(before)}")


@SUITE.check(
    "initialize.info",
    "SHOULD",
    "Initialization: Implementation Information",
    "The client gives its name and version.",
)
async def info(lab: Lab) -> None:
    found = (await lab.play("turn")).requests("initialize")
    if not found:
        raise NotTried("initialize was not sent")
    about = mapping(mapping(found[0].get("params")).get("clientInfo"))
    expect(about.get("name") and about.get("version"), f"clientInfo is {compact(about)}")


@SUITE.check(
    "initialize.unsupported",
    "SHOULD",
    "Initialization: Version Negotiation",
    "A client that does not speak the version the agent answers with closes the connection.",
)
async def unsupported(lab: Lab) -> None:
    play = await lab.play("version")
    if not play.requests("initialize"):
        raise NotTried("initialize was not sent")
    later = [str(m["method"]) for m in play.sent if "method" in m and m["method"] != "initialize"]
    expect(not later, f"answered with version 999, it went on with {', '.join(later)}")


@SUITE.check(
    "authenticate.method",
    "MUST",
    "Authentication",
    "A client authenticates with a method that the agent has advertised.",
)
async def authenticate(lab: Lab) -> None:
    found = (await lab.play("login")).requests("authenticate")
    if not found:
        raise NotTried("the client does not authenticate when session/new wants it")
    ids = [mapping(message.get("params")).get("methodId") for message in found]
    expect(set(map(str, ids)) == {"login"}, f"advertised was 'login', tried {compact(ids)}")


@SUITE.check(
    "session.cwd",
    "MUST",
    "Session Setup: Working Directory",
    "The working directory of a session is an absolute path.",
)
async def cwd(lab: Lab) -> None:
    found = (await lab.play("turn")).requests("session/new")
    if not found:
        raise NotTried("session/new was not sent")
    path = mapping(found[0].get("params")).get("cwd")
    absolute = isinstance(path, str) and (path.startswith(("/", "\\\\")) or path[1:3] == ":\\")
    expect(absolute, f"cwd is {compact(path)}")


@SUITE.check(
    "session.id",
    "MUST",
    "Session Setup: Session ID",
    "A client uses the session ids that the agent has given it, and no others.",
)
async def session_id(lab: Lab) -> None:
    play = await lab.session()
    used = [mapping(m.get("params")) for m in play.sent if "method" in m]
    strange = {str(p["sessionId"]) for p in used if p.get("sessionId", SESSION) != SESSION}
    expect(not strange, f"given was {SESSION!r}, used {', '.join(sorted(strange))}")


@SUITE.check(
    "session.early-update",
    "MUST",
    "Prompt Turn",
    "An update that comes before session/new is answered does no harm.",
)
async def early_update(lab: Lab) -> None:
    play = await lab.play("turn")
    if not play.requests("session/new"):
        raise NotTried("session/new was not sent")
    went_on = bool(play.requests("session/prompt"))
    if not went_on:
        raise Broken(f"no prompt came after it: {play.state}", lines(play.records)[-8:])


@SUITE.check(
    "capabilities.methods",
    "MUST",
    "Initialization: Capabilities",
    "Methods that need a capability are called where the agent advertises it only.",
)
async def capabilities(lab: Lab) -> None:
    play = await lab.session()
    called = {str(m["method"]) for m in play.sent if "method" in m}
    unasked = {m for m in called if m in methods(1, "agent") and not m.startswith("$/")} - BASELINE
    expect(not unasked, f"not advertised: {', '.join(sorted(unasked))}")


@SUITE.check(
    "capabilities.mcp",
    "MUST",
    "Session Setup: MCP Servers",
    "MCP servers over http or sse are given to agents only that advertise them.",
)
async def mcp(lab: Lab) -> None:
    found = (await lab.session()).requests("session/new")
    servers = [s for m in found for s in objects(mapping(m.get("params")).get("mcpServers"))]
    remote = [server for server in servers if server.get("type") in ("http", "sse")]
    expect(not remote, f"given without the capability: {compact(remote)[:200]}")


@SUITE.check(
    "capabilities.prompt",
    "MUST",
    "Content",
    "Prompts hold text and resource links, and more only as the agent advertises it.",
)
async def prompt_blocks(lab: Lab) -> None:
    found = (await lab.session()).requests("session/prompt")
    blocks = [b for m in found for b in objects(mapping(m.get("params")).get("prompt"))]
    kinds = {str(block.get("type")) for block in blocks} - BLOCKS
    expect(not kinds, f"not advertised: {', '.join(sorted(kinds))}")


@SUITE.check(
    "prompt.one-at-a-time",
    "SHOULD",
    "Prompt Turn",
    "A session's next prompt is sent when the turn before it has ended.",
)
async def one_at_a_time(lab: Lab) -> None:
    running: set[str] = set()
    for direction, message in (await lab.session()).told:
        ident = compact(message.get("id"))
        if direction == "in" and message.get("method") == "session/prompt":
            expect(not running, f"prompt {ident} while {', '.join(running)} runs")
            running.add(ident)
        elif direction == "out" and "method" not in message:
            running.discard(ident)


async def cancelling(lab: Lab) -> None:
    if not (await lab.session("cancel")).requests("session/cancel"):
        raise NotTried("it cancelled nothing; in the scenario `cancel` it should")


@SUITE.check(
    "cancel.notification",
    "MUST",
    "Prompt Turn: Cancellation",
    "session/cancel is a notification, with the session's id.",
)
async def cancel(lab: Lab) -> None:
    await cancelling(lab)
    for message in (await lab.play("cancel")).requests("session/cancel"):
        session = mapping(message.get("params")).get("sessionId")
        right = "id" not in message and session == SESSION
        expect(right, f"it was {compact(message)[:200]}")


@SUITE.check(
    "cancel.permission",
    "MUST",
    "Prompt Turn: Cancellation",
    "After a cancel, open permission requests are answered with the outcome cancelled.",
)
async def cancel_permission(lab: Lab) -> None:
    await cancelling(lab)
    play = await lab.play("cancel")
    order = [
        "cancel" if message.get("method") == "session/cancel" else "answer"
        for direction, message in play.told
        if direction == "in" and ("method" not in message or message["method"] == "session/cancel")
    ]
    if order[:1] == ["answer"] and play.outcome("ask-1").get("outcome") == "selected":
        raise NotTried("the permission request was answered before the cancel")
    outcome = play.outcome("ask-1").get("outcome")
    answer = compact(play.answer("ask-1")) if play.answer("ask-1") else "never answered"
    expect(outcome == "cancelled", f"the permission request: {answer}")


@SUITE.check(
    "end.agent",
    "SHOULD",
    "Transports: stdio",
    "When it ends, the client closes the agent's stdin or ends it by a signal.",
)
async def end(lab: Lab) -> None:
    play = await lab.session()
    expect(play.exit_code is not None, "the client itself did not end")
    expect(play.ends or not play.left, "the agent was left alone, its stdin open")


@SUITE.check(
    "end.leaves-nothing",
    "SHOULD",
    "Transports: stdio",
    "When the client has ended, its agent has ended too.",
)
async def leaves_nothing(lab: Lab) -> None:
    play = await lab.session()
    if play.left is None:
        raise NotTried("the client itself did not end, or what lives cannot be told")
    expect(not play.left, f"still running: {'; '.join(play.left)}")
