"""Host protocol §3: prompts with ids, steering, the gate, metadata."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteStream, SocketAttribute

from conformance.check import expect
from conformance.daemon.host import ok, result
from conformance.daemon.lab import SUITE, Lab, agent, config
from conformance.wire import Json, compact, mapping

B = "Host protocol: Generation B"


@SUITE.check(
    "b.prompt", "MUST", B, "A prompt's result has exactly its four keys, the reply among them."
)
async def prompt(lab: Lab) -> None:
    host = await lab.host("B")
    found = result(ok(await host.call("prompt", config=config("say hello"))))
    wanted: Json = {"reply": "hello", "stop_reason": "end_turn"}
    wanted |= {"response_metadata": {}, "update_metadata": []}
    expect(found == wanted, f"the result is {compact(found)}")


@SUITE.check(
    "b.failed", "MUST", B, "The result stands in failed responses too, with its four keys."
)
async def failed(lab: Lab) -> None:
    host = await lab.host("B")
    response = await host.bad("prompt", config=config("error"))
    expect(result(response)["stop_reason"] is None, f"the response is {compact(response)}")


@SUITE.check(
    "b.error-data", "MUST", B, "An agent's error is given with its details, data as error_data."
)
async def error_data(lab: Lab) -> None:
    host = await lab.host("B")
    response = await host.bad("prompt", config=config("error"))
    found = response.get("error"), response.get("error_data")
    expect("words" in str(found[0]), f"error is {compact(found[0])}")
    expect(found[1] == {"details": "words"}, f"error_data is {compact(found[1])}")


@SUITE.check("b.ids", "MUST", B, "A response has the id of its request, in its type.")
async def ids(lab: Lab) -> None:
    host = await lab.host("B")
    for ident in ("7", "a b", 0, 4_000_000_000):
        await host.send("prompt", ident, config=config("say hello"))
        await host.answer(ident)


@SUITE.check(
    "b.order", "MUST", B, "Prompts of a session run one after another, in the order they came."
)
async def order(lab: Lab) -> None:
    host = await lab.host("B")
    sent = [await host.send("prompt", config=config(f"say {number}")) for number in range(8)]
    replies = [result(await host.answer(ident))["reply"] for ident in sent]
    expect(replies == [str(n) for n in range(8)], f"the replies were {compact(replies)}")
    places = [host.place(ident) for ident in sent]
    expect(places == sorted(places), f"the responses came in the order {places}")


@SUITE.check("b.reply", "MUST", B, "The reply is the text of the agent's last message, whole.")
async def reply(lab: Lab) -> None:
    said = await lab.reply("chunks 300")
    expect(said == "".join(map(str, range(300))), f"the reply has {len(said)} characters")


@SUITE.check(
    "b.contents",
    "MUST",
    B,
    "Contents are joined by a text block with a blank line; parts of a content stay blocks.",
)
async def contents(lab: Lab) -> None:
    parts = [{"type": "text", "text": "part"}, {"type": "text", "text": "\ndump"}]
    said = await lab.reply("first", parts)
    texts = [str(block.get("text")) for block in blocks(said)]
    expect(texts == ["first", "\n\n", "part", "\ndump"], f"the blocks were {compact(texts)}")


@SUITE.check("b.image", "MUST", B, "An image as a data URL reaches the agent as an image block.")
async def image(lab: Lab) -> None:
    url = {"url": "data:image/png;base64,AAAA"}
    parts = [{"type": "text", "text": "dump"}, {"type": "image_url", "image_url": url}]
    found = [b for b in blocks(await lab.reply(parts)) if b.get("type") == "image"]
    got = [(block.get("mimeType"), block.get("data")) for block in found]
    expect(got == [("image/png", "AAAA")], f"the images were {compact(found)}")


@SUITE.check(
    "b.system-prompt",
    "MUST",
    B,
    "A system prompt is the first block of the first turn, and of no other.",
)
async def system_prompt(lab: Lab) -> None:
    host = await lab.fresh()
    settings = config("\ndump", system_prompt="be brief")
    said = [str(result(ok(await host.call("prompt", config=settings)))["reply"]) for _ in range(2)]
    first = str(blocks(said[0])[0].get("text"))
    expect("be brief" in first, f"the first block was {first!r}")
    expect("be brief" not in said[1], f"it came again: {said[1][:200]}")


def blocks(said: str) -> list[Json]:
    """What the agent said that it was sent."""
    try:
        return json.loads(said)
    except ValueError:
        return []


@SUITE.check(
    "b.capabilities",
    "MUST",
    B,
    "The agent is shown the host's capabilities, session.notices and session.compaction, no more.",
)
async def capabilities(lab: Lab) -> None:
    host = await lab.fresh()
    given = {"_meta": {"conformance": True}}
    response = await host.call("prompt", config=config("client", client_capabilities=given))
    shown = mapping(json.loads(str(result(ok(response))["reply"]) or "{}"))
    expect(shown.get("_meta") == given["_meta"], f"_meta is {compact(shown.get('_meta'))}")
    unasked = {name for name in ("fs", "terminal", "elicitation") if shown.get(name)}
    expect(not unasked, f"also shown: {compact({name: shown[name] for name in unasked})}")


@SUITE.check(
    "b.metadata",
    "MUST",
    B,
    "response_metadata and update_metadata hold what the agent's _meta held.",
)
async def metadata(lab: Lab) -> None:
    host = await lab.host("B")
    found = result(ok(await host.call("prompt", config=config("meta"))))
    expect(
        found["response_metadata"] == {"response": 3},
        f"response_metadata is {compact(found['response_metadata'])}",
    )
    merged = [{"params": 1, "both": "update", "update": 2}]
    got = found["update_metadata"]
    expect(got == merged, f"update_metadata is {compact(got)}, not {compact(merged)}")


@SUITE.check(
    "b.steer", "MUST", B, "A steer overtakes queued prompts, and its receipt is the agent's."
)
async def steer(lab: Lab) -> None:
    host = await lab.fresh()
    await host.good("prompt", config=config("say hello"))
    running = await host.send("prompt", config=config("steer"))
    receipt: object = None
    for _ in range(200):
        # Until the prompt has reached the agent, there is no turn to steer.
        response = await host.good("steer", message="also this", message_id="m1")
        receipt = mapping(response.get("result")).get("outcome")
        if receipt != "promptRequired":
            break
        await anyio.sleep(0.02)
    expect(receipt == "injected", f"the receipt's outcome is {compact(receipt)}")
    said = str(result(ok(await host.answer(running)))["reply"]).removeprefix("waiting")
    sent = mapping(json.loads(said or "{}"))
    behaviour = mapping(mapping(sent.get("_meta")).get("steering")).get("idleBehavior")
    text = compact(sent.get("prompt"))
    right = "also this" in text and behaviour == "promptRequired" and sent["messageId"] == "m1"
    expect(right, f"the agent was sent {compact(sent)}")


@SUITE.check(
    "b.steer-unsupported",
    "MUST",
    B,
    "Steering an agent that does not advertise it is an error, never a silent fallback.",
)
async def steer_unsupported(lab: Lab) -> None:
    host = await lab.fresh()
    await host.good("prompt", config=config("say hello", command=agent("no-steering")))
    await host.bad("steer", message="also this", message_id="m1")


@SUITE.check(
    "b.steer-early", "MUST", B, "Before the session exists the receipt says promptRequired."
)
async def steer_early(lab: Lab) -> None:
    host = await lab.fresh()
    response = await host.good("steer", message="also this", message_id="m1")
    wanted = {"outcome": "promptRequired", "reason": "noRunningTurn"}
    expect(response.get("result") == wanted, f"the receipt is {compact(response.get('result'))}")


@SUITE.check(
    "b.permission", "MUST", B, "Without a gate a permission request is answered with allow_once."
)
async def permission(lab: Lab) -> None:
    said = await lab.reply("ask")
    expect(said == "yes-1", f"the agent was answered {said!r}")


@asynccontextmanager
async def gate(action: str) -> AsyncGenerator[tuple[str, list[bytes]]]:
    """A tool gate with that answer; its URL, and the requests it got."""
    requests: list[bytes] = []

    async def serve(stream: ByteStream) -> None:
        async with stream:
            data = b""
            while not _complete(data):
                data += await stream.receive()
            requests.append(data)
            body = compact({"action": action}).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            await stream.send(head.encode() + body)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield f"http://127.0.0.1:{port}/tool", requests
        tasks.cancel_scope.cancel()


def _complete(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    sizes = [
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length:")
    ]
    return bool(end) and len(body) >= (sizes or [0])[0]


async def gated(lab: Lab, action: str) -> tuple[Json, list[bytes]]:
    """The response to a prompt whose permission request goes to a gate; what the gate got."""
    async with gate(action) as (url, requests):
        host = await lab.fresh()
        interception = {"url": url, "secret": "conformance-secret"}
        response = await host.call("prompt", config=config("ask", tool_interception=interception))
    return response, requests


@SUITE.check(
    "b.gate",
    "MUST",
    B,
    "With a gate, it is asked for each permission, with its secret; deny picks a reject option.",
)
async def gate_denies(lab: Lab) -> None:
    response, requests = await gated(lab, "deny")
    said = result(ok(response))["reply"]
    expect(said == "no-1", f"the gate denied, the agent was answered {said!r}")
    head = requests[0].partition(b"\r\n\r\n")[0].lower() if requests else b""
    expect(b"authorization: bearer conformance-secret" in head, "the secret was not sent")
    body = mapping(json.loads(requests[0].partition(b"\r\n\r\n")[2]))
    right = str(body.get("tool_call_id")).startswith("call-") and body.get("arguments") == {"x": 1}
    expect(right, f"the gate was asked {compact(body)}")


@SUITE.check(
    "b.gate-stop", "MUST", B, "A gate that says stop ends the turn as cancelled, with ok true."
)
async def gate_stops(lab: Lab) -> None:
    response, _ = await gated(lab, "stop")
    reason = result(ok(response))["stop_reason"]
    expect(reason == "cancelled", f"the stop reason is {compact(reason)}")


@SUITE.check(
    "b.shutdown",
    "MUST",
    B,
    "shutdown is answered with response_metadata; then the exit code is 0, and nothing is left.",
)
async def shutdown(lab: Lab) -> None:
    host = await lab.fresh()
    await host.good("prompt", config=config("say hello"))
    response = await host.good("shutdown")
    found = mapping(response.get("result")).get("response_metadata")
    expect(isinstance(found, dict), f"the response is {compact(response)}")
    code = await host.child.exit_code(lab.timeout)
    expect(code == 0, f"the exit code is {code}" if code is not None else "it did not end")
    left = await host.child.survivors(lab.timeout)
    expect(not left, f"still running: {'; '.join(left)}")
