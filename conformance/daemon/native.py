"""Host protocol §4: hello, sessions by name, events, cancelling, queued messages, errors."""

from conformance.check import expect
from conformance.daemon.host import ok, result
from conformance.daemon.lab import PEER, SUITE, Lab, agent, config
from conformance.wire import Json, compact, mapping

C = "Host protocol: Generation C"
CODES = {
    *("agent_error", "agent_exited", "spawn_failed", "timeout", "cancelled", "session_not_found"),
    *("unsupported", "invalid_request", "auth_required", "mcp_failed", "outcome_unknown"),
    *("model_upstream", "limit", "protocol", "internal"),
}
ORIGINS = {"host", "agent", "mcp", "model", "bridge"}


def error(response: Json, *codes: str) -> None:
    """The shape of an error in this generation: one of the codes, and an origin."""
    code, origin = response.get("code"), response.get("origin")
    expect(code in (codes or CODES), f"the code is {compact(code)}")
    expect(origin in ORIGINS, f"the origin is {compact(origin)}")


@SUITE.check(
    "c.hello", "MUST", C, "hello is answered with protocol 1, the daemon, operations and limits."
)
async def hello(lab: Lab) -> None:
    found = mapping((await lab.hello(await lab.fresh("C"))).get("result"))
    about = mapping(found.get("daemon"))
    right = (
        found.get("protocol") == 1
        and isinstance(about.get("name"), str)
        and isinstance(about.get("version"), str)
        and {"prompt", "cancel", "shutdown"} <= set(found.get("operations") or [])
        and "update" in (found.get("events") or [])
        and isinstance(mapping(found.get("limits")).get("packet_bytes"), int)
    )
    expect(right, f"the result is {compact(found)}")


@SUITE.check(
    "c.hello-version", "MUST", C, "hello with another protocol number gets the code unsupported."
)
async def hello_version(lab: Lab) -> None:
    response = await (await lab.fresh("C")).bad("hello", protocol=99, client={}, events=[])
    error(response, "unsupported")


@SUITE.check(
    "c.duplicate-id", "MUST", C, "An id that is already in flight gets the code invalid_request."
)
async def duplicate_id(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    running = await host.send("prompt", "twice", session=session, config=config("wait"))
    await host.said("waiting", session=session)
    before = len(host.frames)
    await host.raw(host.frame({"id": "twice", "operation": "status"}))
    first = (await host.wait(lambda: host.frames[before:], "no answer"))[0]
    refused = first.get("ok") is False and first.get("code") == "invalid_request"
    await host.good("cancel", session=session)
    await host.wait(lambda: not host.busy or host.ended, "the first request has no response")
    # The faults that this has caused on purpose.
    lab.faults[:] = [fault for fault in lab.faults if '"twice"' not in fault.line]
    expect(refused, f"the second {running!r} was answered {compact(first)[:200]}")


@SUITE.check(
    "c.unknown-operation", "MUST", C, "An operation that does not exist is an error with a code."
)
async def unknown_operation(lab: Lab) -> None:
    error(await (await lab.host("C")).bad("conformance"), "unsupported", "invalid_request")


@SUITE.check("c.open", "MUST", C, "open starts the agent, and tells the session and what it can.")
async def open_(lab: Lab) -> None:
    host = await lab.host("C")
    found = mapping((await host.good("open", session=lab.name(), config=config())).get("result"))
    wanted = {"session_id", "agent", "protocol_version", "capabilities", "auth_methods"}
    missing = wanted - found.keys()
    expect(not missing, f"the result lacks {', '.join(sorted(missing))}: {compact(found)[:200]}")
    name = mapping(found.get("agent")).get("name")
    expect(name == "conformance", f"agent is {compact(found.get('agent'))}")


@SUITE.check(
    "c.turn", "MUST", C, "Beside a prompt's result stand its turn, outcome and agent_stop_reason."
)
async def turn(lab: Lab) -> None:
    host = await lab.host("C")
    response = await host.good("prompt", session=lab.name(), config=config("say hello"))
    result(response)
    got = [response.get(name) for name in ("turn", "outcome", "agent_stop_reason")]
    expect(got == [1, "completed", "end_turn"], f"they are {compact(got)}")


@SUITE.check(
    "c.events",
    "MUST",
    C,
    "Updates are events in the agent's order, seq counting up, before the turn's response.",
)
async def events(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    ident = await host.send("prompt", session=session, config=config("chunks 50"))
    await host.answer(ident)
    seen = host.frames[: host.place(ident)]
    mine = [f for f in seen if f.get("event") == "update" and f.get("session") == session]
    said = [mapping(mapping(f.get("update")).get("content")).get("text") for f in mine]
    expect(said == [str(n) for n in range(50)], f"before the response came {compact(said)[:200]}")
    turns = {event.get("turn") for event in mine}
    expect(turns == {1}, f"their turns are {compact(sorted(map(str, turns)))}")
    seqs = [f["seq"] for f in host.frames if isinstance(f.get("seq"), int)]
    expect(len(seqs) >= 50 and seqs == sorted(set(seqs)), "seq does not count up")


@SUITE.check("c.sessions", "MUST", C, "Sessions run at the same time, each with its own agent.")
async def sessions(lab: Lab) -> None:
    host = await lab.host("C")
    first, second = lab.name(), lab.name()
    running = await host.send("prompt", session=first, config=config("wait"))
    await host.said("waiting", session=first)
    response = await host.good("prompt", session=second, config=config("say hello"))
    expect(result(response)["reply"] == "hello", f"the reply is {compact(response)}")
    await host.good("cancel", session=first)
    await host.answer(running)


@SUITE.check(
    "c.cancel",
    "MUST",
    C,
    "A cancelled turn is ok true with the stop reason cancelled; cancel is answered after it.",
)
async def cancel(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    running = await host.send("prompt", session=session, config=config("wait"))
    await host.said("waiting", session=session)
    cancelling = await host.send("cancel", session=session)
    ok(await host.answer(cancelling))
    reason = result(ok(await host.answer(running)))["stop_reason"]
    expect(reason == "cancelled", f"the stop reason is {compact(reason)}")
    ended = host.place(running) < host.place(cancelling)
    expect(ended, "cancel was answered before the turn had ended")


@SUITE.check("c.cancel-idle", "MUST", C, "cancel is answered at once with {} when nothing runs.")
async def cancel_idle(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    await host.good("prompt", session=session, config=config("say hello"))
    response = await host.good("cancel", session=session)
    expect(response.get("result") == {}, f"the result is {compact(response.get('result'))}")


@SUITE.check(
    "c.cancel-permission",
    "MUST",
    C,
    "A cancel answers an open permission request as cancelled.",
)
async def cancel_permission(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    asking = config("ask", permission="ask")
    running = await host.send("prompt", session=session, config=asking)
    await host.event("permission", session=session)
    await host.good("cancel", session=session)
    found = result(ok(await host.answer(running)))
    said = [found["reply"], found["stop_reason"]]
    expect(said == ["cancelled", "cancelled"], f"reply and stop reason are {compact(said)}")


@SUITE.check(
    "c.permission",
    "MUST",
    C,
    "With permission ask, the request is an event, and the agent gets the option chosen.",
)
async def permission(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    asking = config("ask", permission="ask")
    running = await host.send("prompt", session=session, config=asking)
    event = await host.event("permission", session=session)
    asked = event.get("request_id"), mapping(event.get("tool_call")).get("title")
    expect(asked[0] is not None and asked[1] == "tool", f"the event is {compact(event)}")
    outcome = {"option_id": "yes-2"}
    await host.good("permission", session=session, request_id=asked[0], outcome=outcome)
    said = result(ok(await host.answer(running)))["reply"]
    expect(said == "yes-2", f"the agent was answered {said!r}")


@SUITE.check(
    "c.queue",
    "MUST",
    C,
    "A queued message has a receipt at once, and a turn of its own after the running one.",
)
async def queue(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    running = await host.send("prompt", session=session, config=config("steer"))
    await host.said("waiting", session=session)
    message = {"mode": "queue", "message": "say queued", "message_id": "q1"}
    for _ in range(2):
        # The same message again gets the first receipt, and no turn of its own.
        receipt = (await host.good("send", session=session, **message)).get("result")
        wanted = {"outcome": "accepted", "message_id": "q1"}
        expect(receipt == wanted, f"the receipt is {compact(receipt)}")
    await host.good("steer", session=session, message="go on")
    await host.answer(running)
    ended = await host.event("turn", session=session, state="ended", message_ids=["q1"])
    reply = mapping(ended.get("result")).get("reply")
    expect(reply == "queued", f"the turn's event is {compact(ended)}")
    expect(len(host.events("turn", session=session, state="started")) == 1, "it ran twice")


@SUITE.check(
    "c.steer-send", "MUST", C, "send with the mode steer gives the message to the running turn."
)
async def steer_send(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    running = await host.send("prompt", session=session, config=config("steer"))
    await host.said("waiting", session=session)
    await host.good("send", session=session, mode="steer", message="look here", message_id="s1")
    said = str(result(ok(await host.answer(running)))["reply"])
    expect("look here" in said, f"the agent was sent {said[:200]!r}")


@SUITE.check(
    "c.agent-exit",
    "MUST",
    C,
    "An agent's death ends its turn with the code agent_exited and its exit code; others go on.",
)
async def agent_exit(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    response = await host.bad("prompt", session=session, config=config("exit 7"))
    error(response, "agent_exited")
    expect(response.get("exit_code") == 7, f"exit_code is {compact(response.get('exit_code'))}")
    expect("last words" in str(response.get("stderr")), "the agent's stderr is not in it")
    result(response)
    error(await host.bad("prompt", session=session, config=config("say hello")), "agent_exited")
    await host.good("prompt", session=lab.name(), config=config("say hello"))


@SUITE.check(
    "c.spawn-failed", "MUST", C, "A command that cannot be started gets the code spawn_failed."
)
async def spawn_failed(lab: Lab) -> None:
    host = await lab.host("C")
    broken = config("say hello", command=["/conformance/none"])
    error(await host.bad("prompt", session=lab.name(), config=broken), "spawn_failed")


@SUITE.check(
    "c.agent-error", "MUST", C, "An agent's error has the code agent_error, and agent_code its own."
)
async def agent_error(lab: Lab) -> None:
    host = await lab.host("C")
    response = await host.bad("prompt", session=lab.name(), config=config("error"))
    error(response, "agent_error")
    code = response.get("agent_code")
    expect(code == -32603, f"agent_code is {compact(code)}")


@SUITE.check("c.timeout", "MUST", C, "A turn over its deadline is ok false with the code timeout.")
async def timeout(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    await host.good("prompt", session=session, config=config("say hello"))
    late = config("wait", turn_timeout=1.0)
    response = await host.bad("prompt", session=session, config=late)
    error(response, "timeout")
    expect(result(response)["reply"] == "waiting", f"the result is {compact(response['result'])}")


@SUITE.check("c.status", "MUST", C, "status tells the sessions that there are.")
async def status(lab: Lab) -> None:
    host = await lab.host("C")
    session = lab.name()
    await host.good("prompt", session=session, config=config("say hello"))
    found = (await host.good("status")).get("result")
    expect(session in compact(found), f"{session} is not in {compact(found)[:300]}")


@SUITE.check("c.close", "MUST", C, "close ends the session's agent and gives its metadata.")
async def close(lab: Lab) -> None:
    host = await lab.fresh("C")
    await lab.hello(host)
    await host.good("prompt", session="gone", config=config("say hello", command=agent()))
    found = (await host.good("close", session="gone")).get("result")
    given = mapping(found).get("response_metadata")
    expect(given == {"closed": True}, f"the result is {compact(found)}")
    left = await host.child.survivors(lab.timeout, PEER.name)
    expect(not left, f"still running: {'; '.join(left)}")
