"""What all channels share: ids, whose answer it is, and which row of the table a fault is."""

import anyio
import anyio.lowlevel
import pytest

from bridge.mcp.channel import Fault, Outgoing, helpers, new_id, nobody
from bridge.rules.retry import Kind
from bridge.wire import jsonrpc


def response(line: bytes) -> jsonrpc.Response:
    message = jsonrpc.parse(line)
    assert isinstance(message, jsonrpc.Response)
    return message


def test_no_two_requests_share_an_id() -> None:
    ids = [new_id() for _ in range(100)] + [Outgoing("m", None).id for _ in range(100)]
    assert len(set(ids)) == 200


@pytest.mark.parametrize(
    "text, own",
    [("7", True), ('"7"', True), ("7.0", True), ("8", False), ('"x"', False), ("null", False)],
)
def test_an_answer_is_known_by_its_id_in_whatever_form(text: str, own: bool) -> None:
    line = f'{{"jsonrpc":"2.0","id":{text},"result":1}}'.encode()
    assert Outgoing("m", None, id=7).owns(response(line)) is own


@pytest.mark.parametrize(
    "counted, written, kind",
    [
        (True, True, "lost"),
        (True, False, "opening"),
        (False, True, "opening"),
        (False, False, "opening"),
    ],
)
def test_only_a_call_that_was_written_may_have_been_executed(
    counted: bool, written: bool, kind: str
) -> None:
    request = Outgoing("m", None, counted, written=written)
    assert request.fault("x").failure.kind == kind


def test_a_response_with_nothing_in_it_is_a_fault() -> None:
    request = Outgoing("m", None, counted=True, written=True)
    with pytest.raises(Fault, match="neither"):
        request.answer_in(response(b'{"jsonrpc":"2.0","id":1}'))


@pytest.mark.parametrize(
    "kind, status, refuses",
    [
        ("rejected", 405, True),
        ("rejected", 401, False),
        ("rejected", None, False),
        ("lost", 400, False),
    ],
)
def test_a_refusal_may_be_of_the_era(kind: Kind, status: int | None, refuses: bool) -> None:
    assert Fault(kind, "x", status=status).refuses is refuses


def test_what_is_too_large_is_named_with_the_limit() -> None:
    words = "is over the limit of 5 bytes (max_result_bytes)"
    assert str(Outgoing("tools/call", None).too_large(5)) == f"the answer to tools/call {words}"
    assert str(nobody().too_large(5)) == f"an answer {words}"


@pytest.mark.anyio
async def test_helpers_end_with_the_body_and_never_wrap_its_error() -> None:
    ended = anyio.Event()

    async def helps() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async def fails() -> None:
        async with helpers() as tasks:
            tasks.start_soon(helps)
            await anyio.lowlevel.checkpoint()
            raise Fault("lost", "x")

    with pytest.raises(Fault):
        await fails()
    assert ended.is_set()


@pytest.mark.anyio
async def test_a_cancelled_body_stays_cancelled() -> None:
    with anyio.CancelScope() as scope:
        async with helpers() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
