"""Bytes and lines: what a transport can do to an agent that has a right to nothing but lines."""

from collections.abc import Sequence
from itertools import pairwise

import anyio

from conformance.agent.checks import SUITE
from conformance.agent.client import PING, Client
from conformance.agent.lab import Lab
from conformance.check import Broken, expect
from conformance.wire import compact, mapping

UNICODE = "Độ é 北 🎉"
SEPARATORS = "a\u2028b\u2029c\u0085d"
LARGE = 4 << 20
PAUSE = 0.03
"""Long enough for an agent to read what it has got so far."""


async def same_id(client: Client, ident: str, cuts: Sequence[int] = ()) -> None:
    """An id comes back as it was sent, the request written whole or with pauses at the cuts."""
    call, line = client.prepare(PING, {"text": ident}, ident)
    for start, end in pairwise([0, *cuts, len(line)]):
        await client.write(line[start:end])
        await anyio.sleep(PAUSE if end < len(line) else 0)
    await call.answer()


@SUITE.check(
    "stdio.unicode",
    "MUST",
    "Transports: stdio",
    "Messages are UTF-8: text beyond ASCII and beyond the first plane survives.",
)
async def unicode(lab: Lab) -> None:
    await same_id(await lab.client(), UNICODE)


@SUITE.check(
    "stdio.separators",
    "MUST",
    "Transports: stdio",
    "Messages end with a line feed alone: U+2028, U+2029 and U+0085 inside one do not end it.",
)
async def separators(lab: Lab) -> None:
    client = await lab.client()
    try:
        await same_id(client, SEPARATORS)
    except Broken as broken:
        raise Broken(f"a request with U+2028, U+2029 and U+0085 in it: {broken}") from None


@SUITE.check(
    "stdio.split",
    "MUST",
    "Transports: stdio",
    "A message may arrive in pieces, split anywhere, also inside a character.",
)
async def split(lab: Lab) -> None:
    # Cut inside the last character of the id, which stands before the method.
    at = len(f'{{"jsonrpc":"2.0","id":"{UNICODE}'.encode())
    await same_id(await lab.client(), UNICODE, [1, at - 3, at - 1])


@SUITE.check(
    "stdio.joined",
    "MUST",
    "Transports: stdio",
    "Several messages may arrive at once.",
)
async def joined(lab: Lab) -> None:
    client = await lab.client()
    calls, lines = zip(*(client.prepare(PING, {}) for _ in range(20)), strict=True)
    await client.write(b"".join(lines))
    for call in calls:
        await call.answer()


@SUITE.check(
    "stdio.large",
    "MUST",
    "Transports: stdio",
    f"A message has no greatest length: one of {LARGE >> 20} MiB is read.",
)
async def large(lab: Lab) -> None:
    client = await lab.client()
    call = await client.start(PING, {"text": "x" * LARGE})
    await call.answer()


@SUITE.check(
    "stdio.parse-error",
    "SHOULD",
    "JSON-RPC 2.0: 5.1",
    "A line that is not JSON is answered with the error -32700 and the id null.",
)
async def parse_error(lab: Lab) -> None:
    client = await lab.client()
    await refused(client, b'{"jsonrpc":"2.0","id":1,"method":\n', -32700)


@SUITE.check(
    "stdio.invalid-request",
    "SHOULD",
    "JSON-RPC 2.0: 5.1",
    "JSON that is no request is answered with the error -32600 and the id null.",
)
async def invalid_request(lab: Lab) -> None:
    client = await lab.client()
    await refused(client, b'{"foo":"bar"}\n', -32600)


async def refused(client: Client, line: bytes, code: int) -> None:
    began = len(client.messages)
    await client.write(line)
    await client.ping()
    errors = [m.get("error") for m in client.messages[began:] if m.get("id", 0) is None]
    codes = [mapping(error).get("code") for error in errors]
    expect(codes == [code], f"answered with {compact(errors) if errors else 'nothing'}")


@SUITE.check(
    "stdio.goes-on",
    "SHOULD",
    "JSON-RPC 2.0: 5.1",
    "Lines that are no message (half an object, a number, a list, an empty one) end nothing.",
)
async def goes_on(lab: Lab) -> None:
    client = await lab.client()
    for line in (b"\n", b"{\n", b"42\n", b"[]\n", b'"s"\n', b"null\n", b"\xff\xfe\n"):
        await client.write(line)
        try:
            await client.ping()
        except Broken as broken:
            raise Broken(f"after the line {line!r}: {broken}") from None


@SUITE.check(
    "stdio.end",
    "SHOULD",
    "Transports: stdio",
    "The agent ends when its stdin is closed.",
)
async def end(lab: Lab) -> None:
    client = await lab.fresh()
    await client.child.close_stdin()
    code = await client.child.exit_code(lab.options.timeout)
    expect(code is not None, f"it still runs {lab.options.timeout:g} s after the end of its stdin")


@SUITE.check(
    "stdio.leaves-nothing",
    "SHOULD",
    "Transports: stdio",
    "An agent that has ended leaves no process of its own behind.",
)
async def leaves_nothing(lab: Lab) -> None:
    client = await lab.fresh()
    await lab.new_session(client)
    await client.child.close_stdin()
    left = await client.child.survivors(lab.options.timeout)
    expect(not left, f"still running: {'; '.join(left)}")
