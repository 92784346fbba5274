"""One stream for all a server says: in order, noise and others' answers passed over."""

import pytest

from bridge.mcp.channel import Fault, Outgoing
from bridge.mcp.single_stream import SingleStream
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Notification, Request

pytestmark = pytest.mark.anyio

NOTE = b'{"jsonrpc":"2.0","method":"note"}'
ASKS = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Stream(SingleStream):
    """What was given to it, then the end."""

    def __init__(self, *given: bytes) -> None:
        self.seen: list[str] = []
        super().__init__(self.take)
        self._given = list(given)

    async def take(self, message: Request | Notification) -> None:
        self.seen.append(message.method)

    async def next_data(self, request: Outgoing) -> bytes | None:
        return self._given.pop(0) if self._given else None

    async def died(self, request: Outgoing) -> Fault:
        return request.fault("it is over")


def answer(ident: int, text: bytes = b"1") -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (ident, text)


async def test_an_answer_is_found_behind_noise_and_answers_to_others() -> None:
    stream = Stream(b"", b" \n", b"not JSON", answer(6), NOTE, ASKS, answer(7, b"[2]"))
    found = await stream.answer(Outgoing("m", None, id=7))
    assert found.result == Raw(b"[2]")
    assert stream.seen == ["note", "ping"]


async def test_what_follows_an_answer_in_its_batch_is_kept_for_the_next_one() -> None:
    stream = Stream(b"[%b,%b,%b]" % (NOTE, answer(7), ASKS), answer(8))
    await stream.answer(Outgoing("m", None, id=7))
    assert stream.seen == ["note"]
    await stream.answer(Outgoing("m", None, id=8))
    assert stream.seen == ["note", "ping"]


async def test_the_end_is_a_fault_for_who_waits_and_none_for_who_listens() -> None:
    stream = Stream(NOTE)
    with pytest.raises(Fault, match="it is over"):
        await stream.answer(Outgoing("m", None, id=7))
    stream = Stream(NOTE, answer(7))
    begun: list[bool] = []
    await stream.listen(lambda: begun.append(True))
    assert (begun, stream.seen) == ([True], ["note"])
