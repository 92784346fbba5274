"""An upstream's response on its way to the agent: as it stands, filtered, or as a tunnel.

Rules: head and body go on the moment they come, in the framing they have where the agent
understands it; nothing is sent after a break. Only what a rule on answers asks for is held, event
by event or (in one piece) whole. Called by bridge.model.relay.
"""

import anyio

from bridge.io.exchange import Exchange
from bridge.io.httpclient import Call
from bridge.io.httppool import UpstreamError
from bridge.model.body import CEILING
from bridge.model.call_filter import CallFilter
from bridge.model.record import Silent
from bridge.model.upstream import is_end_to_end, reframed, response_headers
from bridge.wire.http_head import Response, members


async def pass_on(exchange: Exchange, call: Call, head: Response, record: Silent) -> None:
    """Passes the response on byte for byte. Raises Cut."""
    framed = head.framing in ("length", "none") or (
        head.framing == "chunked" and exchange.version == 1
    )
    piece = call.ready()
    first = b"" if piece is None else piece.raw if framed else piece.data
    if framed and head.version and exchange.keep_alive and is_end_to_end(head.fields):
        await exchange.relay(head.status, head.raw, first)
    else:
        headers = response_headers(head.headers, head.fields, framed=framed)
        await exchange.start(head.status, headers, reason=head.reason, first=first, framed=framed)
    if piece is not None:
        record.piece(piece.data)
    while not call.ended and (piece := await call.receive()) is not None:
        await exchange.send(piece.raw if framed else piece.data)
        record.piece(piece.data)
    await exchange.finish()


def filterable(head: Response) -> bool:
    """Whether calls can be taken out of this response: an answer, in an encoding we can read."""
    encodings = members(head.fields.get(b"content-encoding"))
    return head.status == 200 and all(name == b"identity" for name in encodings)


async def pass_on_filtered(
    exchange: Exchange, call: Call, head: Response, record: Silent, offered: frozenset[str]
) -> None:
    """Passes the response on without the calls to tools that were not offered. Raises Cut, and
    UpstreamError for an answer in one piece that is over the ceiling.
    """
    stream = head.fields.get(b"content-type", b"").lower().startswith(b"text/event-stream")
    calls = CallFilter(offered, stream=stream)
    headers = response_headers(head.headers, head.fields, framed=False)
    if stream:
        headers = [pair for pair in headers if pair[0].lower() != b"content-length"]
        await exchange.start(head.status, headers, reason=head.reason)
    try:
        while (piece := await call.receive()) is not None:
            ready = calls.feed(piece.data)
            if stream:
                await exchange.send(ready)
            record.piece(piece.data)
            if calls.held > CEILING:
                raise UpstreamError(f"an answer of more than {CEILING} bytes")
        rest = calls.end()
    finally:
        record.changed(calls.changes)
    if stream:
        await exchange.send(rest)
    else:
        headers = reframed(headers, len(rest), plain=False)
        await exchange.start(head.status, headers, reason=head.reason, first=rest)
    await exchange.finish()


async def tunnel(exchange: Exchange, call: Call, head: Response) -> None:
    """Passes bytes both ways, after a 101, until one side ends."""
    await exchange.start(101, head.headers, reason=head.reason)
    agent = exchange.detach()

    async def up(scope: anyio.CancelScope) -> None:
        while data := await agent.receive():
            await call.send_raw(data)
        scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(up, tasks.cancel_scope)
            while data := await call.receive_raw():
                await agent.send(data)
            tasks.cancel_scope.cancel()
    except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
