"""JSON-RPC as ACP uses it: ids, unknown methods, errors, the cancellation of a request."""

from conformance.agent.checks import SUITE
from conformance.agent.client import PING
from conformance.agent.lab import Lab
from conformance.check import Broken, expect
from conformance.wire import compact, mapping

NUMBERS = (0, 7_000_001, (1 << 53) - 1)
CANCELLED = -32800


async def echoed(lab: Lab, *idents: str | int) -> None:
    client = await lab.client()
    for ident in idents:
        call = await client.start(PING, {}, ident)
        try:
            await call.answer()
        except Broken as broken:
            raise Broken(f"the request with the id {compact(ident)}: {broken}") from None


@SUITE.check(
    "rpc.id-number",
    "MUST",
    "JSON-RPC 2.0: 5",
    "An id that is a number comes back as that number.",
)
async def id_number(lab: Lab) -> None:
    await echoed(lab, *NUMBERS)


@SUITE.check(
    "rpc.id-string",
    "MUST",
    "JSON-RPC 2.0: 5",
    "An id that is a string comes back as that string.",
)
async def id_string(lab: Lab) -> None:
    await echoed(lab, "7000002", "a b", "00000000-0000-0000-0000-000000000001")


@SUITE.check(
    "rpc.unknown-method",
    "MUST",
    "JSON-RPC 2.0: 5.1",
    "A request for a method that does not exist gets the error -32601.",
)
async def unknown_method(lab: Lab) -> None:
    client = await lab.client()
    error = await (await client.start("conformance/none", {})).error()
    expect(error.get("code") == -32601, f"the error is {compact(error)}")


@SUITE.check(
    "rpc.extension-method",
    "SHOULD",
    "Extensibility: Extension Methods",
    "A request for an extension (with an underscore) that is not known gets the error -32601.",
)
async def extension_method(lab: Lab) -> None:
    client = await lab.client()
    error = await (await client.start("_conformance.example/none", {"x": 1})).error()
    expect(error.get("code") == -32601, f"the error is {compact(error)}")


@SUITE.check(
    "rpc.unknown-notification",
    "MUST",
    "Extensibility: Custom Notifications",
    "A notification that is not known is ignored, and not answered.",
)
async def unknown_notification(lab: Lab) -> None:
    client = await lab.client()
    began = len(client.messages)
    for method in ("_conformance.example/news", "conformance/news", "$/news"):
        await client.notify(method, {"x": 1})
    answers = await client.answers(began)
    expect(not answers, f"answered with {compact(answers)}")


@SUITE.check(
    "rpc.invalid-params",
    "SHOULD",
    "JSON-RPC 2.0: 5.1",
    "A request whose params are not what the schema says gets the error -32602.",
)
async def invalid_params(lab: Lab) -> None:
    client = await lab.client()
    call = await client.start("session/new", {"cwd": 7, "mcpServers": "none"})
    error = await call.error()
    expect(error.get("code") == -32602, f"the error is {compact(error)}")


@SUITE.check(
    "rpc.stray-response",
    "SHOULD",
    "JSON-RPC 2.0: 5",
    "A response to no open request is ignored.",
)
async def stray_response(lab: Lab) -> None:
    client = await lab.client()
    began = len(client.messages)
    await client.send({"id": "conformance-stray", "result": {}})
    answers = await client.answers(began)
    expect(not answers, f"answered with {compact(answers)}")


@SUITE.check(
    "rpc.cancel-unknown",
    "MUST",
    "Cancellation",
    "$/cancel_request for a request that is not open is ignored.",
)
async def cancel_unknown(lab: Lab) -> None:
    client = await lab.client()
    began = len(client.messages)
    await client.notify("$/cancel_request", {"requestId": "conformance-none"})
    answers = await client.answers(began)
    expect(not answers, f"answered with {compact(answers)}")


@SUITE.check(
    "rpc.cancel-request",
    "MUST",
    "Cancellation",
    "A request taken back by $/cancel_request is still answered: with its result, or with -32800.",
)
async def cancel_request(lab: Lab) -> None:
    client = await lab.client()
    session = str((await lab.new_session(client)).get("sessionId"))
    turn = await lab.slow_turn(client, session)
    await client.notify("$/cancel_request", {"requestId": turn.call.id})
    await client.ping()
    if turn.call.message is None:
        # An agent may not know this notification; session/cancel it does.
        await client.cancel(session)
    message = await turn.call.answer()
    code = mapping(message.get("error")).get("code", CANCELLED)
    expect(code == CANCELLED, f"the error is {compact(message.get('error'))}")
