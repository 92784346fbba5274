"""Bodies of model exchanges: whole, masked across pieces, decoded, bounded."""

import gzip
import json
import struct
import zlib
from typing import Any

import pytest

from bridge.trace import bodies
from bridge.trace.frames import Kind
from bridge.trace.reader import Event
from tests.trace.test_ledger import Writer


class Exchange:
    """One exchange as the model proxy tells of it."""

    def __init__(self, secret: str = "CANARY-1", *, masking: bool = True) -> None:
        self.writer = Writer()
        self.writer.redactor.masking = masking
        self.writer.redactor.learn("K", secret)

    def tell(self, kind: str, data: dict[str, Any] | None = None, content: bytes = b"") -> None:
        fields: dict[str, Any] = {"ch": "model", "n": 1, "kind": kind}
        text = json.dumps(fields | ({"data": data} if data else {}), separators=(",", ":")).encode()
        self.writer.feed(Kind.EVENT, struct.pack("<I", len(text)), text, content)

    def respond(self, *pieces: bytes, encoding: str = "", end: bool = True) -> list[Event]:
        headers = [["Content-Encoding", encoding]] if encoding else []
        self.tell("response", {"status": 200, "headers": headers})
        for piece in pieces:
            self.tell("response_body", None, piece)
        if end:
            self.tell("end", {"outcome": "complete"})
        else:
            self.writer.ledger.end()
        return [event for event in self.writer.events() if event.kind == "response_body"]


def text(events: list[Event]) -> bytes:
    return b"".join(event.content or b"" for event in events)


def test_each_piece_is_a_record_and_together_they_are_the_body() -> None:
    events = Exchange().respond(b"data: one\n\n", b"data: two\n\n", b"\xff")
    assert [event.content for event in events] == [b"data: one\n\n", b"data: two\n\n", b"\xff"]


@pytest.mark.parametrize("end", [True, False])
def test_a_secret_across_pieces_is_masked_and_what_was_held_back_is_written(end: bool) -> None:
    events = Exchange().respond(b"x CAN", b"ARY-1 y CANAR", end=end)
    assert text(events) == b"x [secret K] y CANAR"


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw_deflate)],
)
def test_compressed_bodies_are_decoded_since_secrets_hide_in_them(
    encoding: str, encode: Any
) -> None:
    data = encode(b'{"key":"CANARY-1","long":"' + b"y" * 5000 + b'"}')
    pieces = [data[at : at + 7] for at in range(0, len(data), 7)]
    events = Exchange().respond(*pieces, encoding=encoding)
    assert text(events) == b'{"key":"[secret K]","long":"' + b"y" * 5000 + b'"}'
    assert events[0].data == {"decoded": encoding}


def test_what_cannot_be_decoded_is_left_out_and_said() -> None:
    [event] = Exchange().respond(b"\x28\xb5CANARY", encoding="zstd")
    assert event.content is None
    assert event.data == {"omitted": 8, "encoding": "zstd"}


def test_it_is_written_as_it_is_where_secrets_are_kept() -> None:
    events = Exchange(masking=False).respond(b"\x28\xb5CANARY", encoding="zstd")
    assert text(events) == b"\x28\xb5CANARY"


def test_a_body_is_written_to_a_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "CEILING", 10)
    events = Exchange().respond(b"12345", b"6789012345", b"more")
    assert text(events) == b"1234567890"
    assert events[-1].data == {"cut": 10}


def test_bodies_of_two_exchanges_do_not_mix() -> None:
    exchange = Exchange()
    for n, content in ((1, b"CANAR"), (2, b"Y-1")):
        fields = f'{{"ch":"model","n":{n},"kind":"response_body"}}'.encode()
        exchange.writer.feed(Kind.EVENT, struct.pack("<I", len(fields)), fields, content)
    exchange.writer.ledger.end()
    found = {event.n: event.content for event in exchange.writer.events()}
    assert found == {1: b"CANAR", 2: b"Y-1"}
