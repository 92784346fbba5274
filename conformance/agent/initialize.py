"""The handshake: versions, capabilities, who the agent is, and how one logs in."""

from conformance.agent.checks import SUITE
from conformance.agent.lab import Lab
from conformance.check import NotTried, expect
from conformance.wire import Json, compact, mapping, objects

UNKNOWN_VERSION = 65535
UNSUPPORTED = -32022


@SUITE.check(
    "initialize.answer",
    "MUST",
    "Initialization",
    "initialize is answered with a protocol version, an integer.",
)
async def answer(lab: Lab) -> None:
    client = await lab.spawn()
    version = (await client.initialize()).get("protocolVersion")
    is_version = isinstance(version, int) and not isinstance(version, bool)
    expect(is_version, f"protocolVersion is {compact(version)}")


@SUITE.check(
    "initialize.version",
    "MUST",
    "Initialization: Version Negotiation",
    "An agent that supports the requested version answers with that version.",
)
async def version(lab: Lab) -> None:
    client = await lab.client()
    agreed = client.agent.get("protocolVersion")
    expect(agreed == 1, f"asked for version 1, the agent answered {compact(agreed)}")


@SUITE.check(
    "initialize.version-unknown",
    "MUST",
    "Initialization: Version Negotiation",
    "An agent that does not support the requested version answers with the latest that it does.",
)
async def version_unknown(lab: Lab) -> None:
    client = await lab.spawn()
    params: Json = {"protocolVersion": UNKNOWN_VERSION, "clientCapabilities": {}}
    about = {"name": "conformance", "version": "1"}
    more = {"clientInfo": about, "info": about, "capabilities": {}}
    call = await client.start("initialize", {**params, **more})
    message = await call.answer()
    if "error" in message:
        error = await call.error()
        expect(error.get("code") == UNSUPPORTED, f"the answer is the error {compact(error)}")
        return
    agreed = (await call.result()).get("protocolVersion")
    expect(agreed in (1, 2), f"asked for {UNKNOWN_VERSION}, the agent answered {compact(agreed)}")


@SUITE.check(
    "initialize.info",
    "SHOULD",
    "Initialization: Implementation Information",
    "The agent gives its name and version.",
)
async def info(lab: Lab) -> None:
    client = await lab.client()
    about = mapping(client.agent.get("agentInfo"))
    expect(about.get("name") and about.get("version"), f"agentInfo is {compact(about)}")


@SUITE.check(
    "initialize.unknown-members",
    "MUST",
    "Extensibility",
    "Capabilities and _meta that the agent does not know are no reason to refuse.",
)
async def unknown_members(lab: Lab) -> None:
    client = await lab.spawn()
    await client.initialize(1, {"_meta": {"conformance.example": {"x": [1, None]}}, "later": {}})
    meta = {"conformance.example/trace": "1", "traceparent": f"00-{'1' * 32}-{'2' * 16}-01"}
    await client.new_session(lab.cwd, _meta={**meta, **lab.options.session_meta})


def methods(agent: Json) -> list[Json]:
    """The authentication methods of an initialize result."""
    return objects(agent.get("authMethods"))


@SUITE.check(
    "authenticate.ids",
    "MUST",
    "Authentication: Advertising Authentication Methods",
    "Authentication methods have different ids.",
)
async def authentication_ids(lab: Lab) -> None:
    client = await lab.client()
    ids = [method.get("id") for method in methods(client.agent)]
    if not ids:
        raise NotTried("the agent has no authMethods")
    expect(len(set(map(str, ids))) == len(ids), f"the ids are {compact(ids)}")


@SUITE.check(
    "authenticate.terminal",
    "MUST",
    "Authentication: Terminal Authentication",
    "Methods of type terminal are offered to clients only that advertised auth.terminal.",
)
async def authentication_terminal(lab: Lab) -> None:
    client = await lab.client()
    if not methods(client.agent):
        raise NotTried("the agent has no authMethods")
    terminal = [m.get("id") for m in methods(client.agent) if m.get("type") == "terminal"]
    expect(not terminal, f"of type terminal, unasked: {compact(terminal)}")


@SUITE.check(
    "authenticate.method",
    "MUST",
    "Authentication",
    "Authenticating with an advertised method succeeds, and sessions can be made after it.",
)
async def authentication_method(lab: Lab) -> None:
    method = lab.options.auth_method
    if method is None:
        raise NotTried("--auth-method ID names the method to try")
    client = await lab.spawn()
    await client.initialize()
    await client.request("authenticate", {"methodId": method})
    await client.new_session(lab.cwd)


@SUITE.check(
    "authenticate.unknown",
    "SHOULD",
    "Authentication",
    "Authenticating with a method that was not advertised is an error.",
)
async def authentication_unknown(lab: Lab) -> None:
    client = await lab.client()
    call = await client.start("authenticate", {"methodId": "conformance.example/none"})
    await call.error()
