"""Host protocol §1: how packets are cut, and what becomes of bytes that are none."""

import anyio

from conformance.check import Broken, expect
from conformance.daemon.host import CEILING, PREFIX, Host, packet
from conformance.daemon.lab import SUITE, Lab, config, old_config
from conformance.wire import Json, compact

SECTION = "Host protocol: Framing"
TEXT = "Độ é 北 🎉"
PAUSE = 0.02
RULES = {
    "framing.pure": (SECTION, "Nothing but packets is ever on stdout."),
    "requests.once": (
        "Host protocol: Generation C",
        "Every request gets exactly one response, with its id.",
    ),
    "requests.errors": (
        "Host protocol: Generation C",
        "A response that is not ok has ok false and error, in words.",
    ),
}
"""Rules that hold for every frame: judged as the frames come, reported at the end."""


async def answers(host: Host) -> None:
    """The stream is in step: the next request is answered."""
    response = await host.call("shutdown")
    expect("ok" in response, f"the answer was {compact(response)[:200]}")


@SUITE.check(
    "framing.packets", "MUST", SECTION, "A stream that begins with a zero byte is one of packets."
)
async def packets(lab: Lab) -> None:
    await answers(await lab.fresh("B", "packets"))


@SUITE.check(
    "framing.lines", "MUST", SECTION, "A stream that begins with anything else is one of lines."
)
async def lines(lab: Lab) -> None:
    await answers(await lab.fresh("B", "lines"))


@SUITE.check(
    "framing.line-ends", "MUST", SECTION, "Lines may end with CRLF, be blank, follow a BOM."
)
async def line_ends(lab: Lab) -> None:
    host = await lab.fresh("B", "lines")
    _, data = host.prepare("shutdown", 1)
    await host.raw(b"\xef\xbb\xbf\r\n\n" + data.rstrip(b"\n") + b"\r\n")
    await host.answer(1)
    others = [frame for frame in host.frames if frame.get("id") != 1]
    expect(not others, f"also answered: {compact(others)[:200]}")


@SUITE.check("framing.split", "MUST", SECTION, "A packet may arrive in pieces, split anywhere.")
async def split(lab: Lab) -> None:
    host = await lab.host("B")
    await host.good("prompt", config=config("say hello"))
    ident, data = host.prepare("prompt", config=config(f"say {TEXT}"))
    inside = data.index("🎉".encode()) + 1
    start = 0
    for end in (1, PREFIX - 1, PREFIX + 3, inside, inside + 1, len(data)):
        await host.raw(data[start:end])
        await anyio.sleep(PAUSE)
        start = end
    response = await host.answer(ident)
    expect(TEXT in compact(response), f"the reply is not {TEXT!r}: {compact(response)[:200]}")


@SUITE.check("framing.joined", "MUST", SECTION, "Several packets may arrive at once.")
async def joined(lab: Lab) -> None:
    host = await lab.host("B")
    sent = [host.prepare("prompt", config=config(f"say {number}")) for number in range(5)]
    await host.raw(b"".join(data for _, data in sent))
    for ident, _ in sent:
        await host.answer(ident)


@SUITE.check(
    "framing.bytes", "MUST", SECTION, "The length counts bytes of UTF-8, and text comes back whole."
)
async def bytes_(lab: Lab) -> None:
    reply = await lab.reply(f"say {TEXT}")
    expect(reply == TEXT, f"sent {TEXT!r}, the reply is {reply!r}")


@SUITE.check(
    "framing.not-a-request",
    "MUST",
    SECTION,
    "What is no JSON object with an operation gets an error with the id null and the code "
    "invalid_request; the stream stays in step.",
)
async def not_a_request(lab: Lab) -> None:
    host = await lab.fresh("C")
    for body in (b"[]", b"{}", b"7", b"{not json", b'"s"'):
        before = len(host.frames)
        await host.raw(packet(body))
        await refused(host, before, f"after {body.decode()!r}")
    await answers(host)


async def refused(host: Host, before: int, when: str) -> None:
    def frames() -> list[Json]:
        return host.frames[before:]

    try:
        frame = (await host.wait(frames, "no answer"))[0]
    except Broken as broken:
        raise Broken(f"{when}: {broken}") from None
    wanted = {"id": None, "ok": False, "code": "invalid_request"}
    got = {name: frame.get(name, "missing") for name in wanted}
    expect(got == wanted, f"{when} came {compact(frame)[:200]}")


@SUITE.check(
    "framing.oversize",
    "MUST",
    SECTION,
    "A length over the ceiling gets the same error, then the daemon ends as at the end of input.",
)
async def oversize(lab: Lab) -> None:
    host = await lab.fresh("C")
    await host.raw((CEILING + 1).to_bytes(PREFIX, "big") + b"{")
    await refused(host, 0, f"after a length of {CEILING + 1}")
    code = await host.child.exit_code(lab.timeout)
    expect(code == 0, f"the exit code is {code}" if code is not None else "it did not end")


@SUITE.check(
    "framing.end-inside", "MUST", SECTION, "The end of input inside a packet is an orderly stop."
)
async def end_inside(lab: Lab) -> None:
    host = await lab.fresh()
    await host.good("prompt", config=config("say hello"))
    await host.raw(packet(b'{"operation":"shutdown"}')[:-3])
    await host.child.close_stdin()
    code = await host.child.exit_code(lab.timeout)
    expect(code == 0, f"the exit code is {code}" if code is not None else "it did not end")


A = "Host protocol: Generation A"


@SUITE.check("a.prompt", "MUST", A, "A prompt is answered with ok and the reply, and no id.")
async def a_prompt(lab: Lab) -> None:
    host = await lab.host("A")
    message = {"role": "user", "content": "say hello"}
    response = await host.good("prompt", config=old_config(message))
    expect(response == {"ok": True, "reply": "hello"}, f"it was {compact(response)[:200]}")


@SUITE.check("a.failed", "MUST", A, "A failed turn is ok false with error; the daemon lives on.")
async def a_failed(lab: Lab) -> None:
    host = await lab.host("A")
    response = await host.bad("prompt", config=old_config({"role": "user", "content": "error"}))
    expect("words" in str(response.get("error")), f"error is {compact(response.get('error'))}")
    await host.good("prompt", config=old_config({"role": "user", "content": "say hello"}))


@SUITE.check(
    "a.transcript",
    "MUST",
    A,
    "Several messages are a transcript: each after a text block of its role in brackets.",
)
async def a_transcript(lab: Lab) -> None:
    host = await lab.fresh("A")
    messages: list[Json] = [
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "second"},
        {"role": "user", "content": "\ndump"},
    ]
    response = await host.good("prompt", config=old_config(*messages))
    said = str(response.get("reply"))
    places = [said.find(part) for part in ("[user]", "first", "[assistant]", "second", "dump")]
    found = -1 not in places and places == sorted(places)
    expect(found, f"the agent was sent {said[:300]}")


@SUITE.check("a.differs", "MUST", A, "A later request with another command gets an error.")
async def a_differs(lab: Lab) -> None:
    host = await lab.host("A")
    message = {"role": "user", "content": "say hello"}
    await host.good("prompt", config=old_config(message))
    await host.bad("prompt", config=old_config(message, command=["true"]))


@SUITE.check("a.shutdown", "MUST", A, "shutdown is answered with ok alone; the exit code is 0.")
async def a_shutdown(lab: Lab) -> None:
    host = await lab.fresh("A")
    response = await host.good("shutdown")
    expect(response == {"ok": True}, f"it was {compact(response)[:200]}")
    code = await host.child.exit_code(lab.timeout)
    expect(code == 0, f"the exit code is {code}" if code is not None else "it did not end")
