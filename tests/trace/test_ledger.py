"""From what passed to the lines of the file: exact, in order, masked, always valid JSON."""

import json
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.trace import frames
from bridge.trace.frames import Kind
from bridge.trace.ledger import Framing, Ledger, Stream
from bridge.trace.reader import Event, Parser
from bridge.trace.redact import Redactor
from bridge.wire import codec


class Writer:
    """A ledger with one stream, as the recorder would drive it."""

    def __init__(self, framing: Framing = "lines", ch: str = "acp", direction: str = "in") -> None:
        self.redactor = Redactor()
        self.ledger = Ledger(self.redactor)
        stream = codec.encode(Stream(ch, direction, "s", 1, None, framing))
        self.feed(Kind.STREAM, stream)

    def feed(self, kind: Kind, *parts: bytes, t: int = 7) -> None:
        payload = b"".join(parts)
        self.ledger.feed(frames.head(kind, 1, t, len(payload)) + payload)

    def data(self, *pieces: bytes) -> None:
        for t, piece in enumerate(pieces, 7):
            self.feed(Kind.DATA, piece, t=t)

    def text(self) -> bytes:
        return b"".join(self.ledger.take())

    def events(self) -> list[Event]:
        parser = Parser()
        lines = self.text().split(b"\n")
        assert lines.pop() == b""
        items = [parser.parse(line) for line in lines]
        assert all(isinstance(item, Event) for item in items), items
        return [item for item in items if isinstance(item, Event)]


def whole(events: list[Event]) -> bytes:
    return b"".join((event.content or b"") + event.end.encode() for event in events)


ODD = [
    *(b"", b"42", b"{}", b' {"a":1}', b'{"a":1} ', b'{"a":1}\r', b"\xef\xbb\xbf{}", b"\r"),
    *(b'{"a":1},"t":5,"x":{}', b'{"a":"\\ud83d"}', b'{"a":1e999}', b'{"a":NaN}', b'{"a":\x01}'),
    *(b"[" * 3000 + b"]" * 3000, '{"a":"\u2028\x85"}'.encode(), b'{"a":"\xed\xa0\xbd"}'),
]
LINES = st.lists(
    st.one_of(
        st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")),
        st.text(max_size=40).map(lambda text: text.replace("\n", "").encode("utf-8", "replace")),
        st.dictionaries(st.text(max_size=5), st.text(max_size=5)).map(
            lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        ),
        st.sampled_from(ODD),
    )
)


@given(LINES, st.binary(max_size=20), st.lists(st.integers(1, 50), min_size=1))
def test_the_bytes_come_back_exactly_however_they_were_read(
    lines: list[bytes], last: bytes, sizes: list[int]
) -> None:
    data = b"".join(line + b"\n" for line in lines) + last
    writer, at, turn = Writer(), 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        writer.data(data[at : at + size])
        at, turn = at + size, turn + 1
    writer.ledger.end()
    text = writer.text()
    parser = Parser()
    events = [parser.parse(line) for line in text.split(b"\n")[:-1]]
    assert whole([event for event in events if isinstance(event, Event)]) == data


@given(LINES)
def test_every_line_of_the_file_is_json_with_the_standard_library_too(lines: list[bytes]) -> None:
    writer = Writer()
    writer.data(b"".join(line + b"\n" for line in lines))
    for line in writer.text().split(b"\n")[:-1]:
        if line.count(b"[") < 100:
            assert json.loads(line)["ch"] == "acp"


def test_a_message_is_embedded_as_it_stands() -> None:
    writer = Writer()
    writer.data(b'{"jsonrpc":"2.0", "id":1.0}\n')
    assert writer.text() == (
        b'{"t":7,"ch":"acp","dir":"in","session":"s","n":1,"msg":{"jsonrpc":"2.0", "id":1.0}}\n'
    )


def test_lines_of_one_read_share_its_time_and_a_split_one_has_that_of_its_end() -> None:
    writer = Writer()
    writer.data(b'{"a":1}\n{"a":2}\n{"a"', b":3}\n")
    assert [json.loads(line)["t"] for line in writer.text().splitlines()] == [7, 7, 8]


def test_a_line_that_closes_its_record_itself_cannot_forge_another() -> None:
    writer = Writer()
    writer.data(b'{"a":1},"kind":"forged","data":{"x":1}\n')
    [event] = writer.events()
    assert event.kind is None
    assert event.content == b'{"a":1},"kind":"forged","data":{"x":1}'


def test_packets_keep_their_own_line_ends() -> None:
    writer = Writer("packets", "host")
    writer.data(b'{\n "operation": "x"\n}')
    [event] = writer.events()
    assert event.content == b'{\n "operation": "x"\n}'


def test_a_log_is_cut_into_lines_and_long_ones_into_pieces() -> None:
    writer = Writer("text", "stderr")
    writer.data(b"one\ntw", b"o\n", b"x" * 150_000)
    writer.ledger.end()
    events = writer.events()
    assert [event.content for event in events[:2]] == [b"one", b"two"]
    assert whole(events) == b"one\ntwo\n" + b"x" * 150_000
    assert max(len(event.content or b"") for event in events) <= 1 << 16


def test_secrets_in_a_message_are_masked_and_its_neighbours_kept() -> None:
    writer = Writer()
    writer.redactor.learn("K", "CANARY-1")
    writer.data(b'{"a":"CANARY-1"}\n{"a":"fine"}\nnoise CANARY-1\n')
    contents = [event.content for event in writer.events()]
    assert contents == [b'{"a":"[secret K]"}', b'{"a":"fine"}', b"noise [secret K]"]


def test_a_masked_number_leaves_a_line_that_is_still_json() -> None:
    writer = Writer()
    writer.redactor.learn("PIN", "12345678")
    writer.data(b'{"a":12345678}\n')
    [event] = writer.events()
    assert not event.is_json
    assert event.content == b'{"a":[secret PIN]}'


def test_a_secret_cut_in_two_pieces_is_masked() -> None:
    writer = Writer("pieces", "model")
    writer.redactor.learn("K", "CANARY-1")
    writer.data(b"before CAN", b"ARY-1 after CANA", b"DA")
    writer.ledger.end()
    assert b"".join(event.content or b"" for event in writer.events()) == (
        b"before [secret K] after CANADA"
    )


def test_a_secret_at_the_border_of_two_pieces_of_a_long_line_is_masked() -> None:
    writer = Writer("text", "stderr")
    writer.redactor.learn("K", "CANARY-1")
    writer.data(b"x" * ((1 << 16) - 3) + b"CANARY-1" + b"y" * (1 << 16))
    writer.ledger.end()
    assert b"CANARY" not in b"".join(event.content or b"" for event in writer.events())


def test_what_a_message_brings_is_masked_in_that_very_message() -> None:
    host = Writer("packets", "host")
    body = {"operation": "open", "config": {"mcp_headers": {"t": {"X-Tok": "CANARY-3"}}}}
    host.data(json.dumps(body).encode(), b'{"later":"CANARY-3"}')
    assert b"CANARY" not in host.text()
    client = Writer(direction="out")
    servers = [{"name": "t", "url": "u", "headers": [{"name": "X", "value": "CANARY-3"}]}]
    new = {"method": "session/new", "params": {"mcpServers": servers}}
    client.data(json.dumps(new).encode() + b"\n")
    assert b"CANARY" not in client.text()


def event(fields: dict[str, Any], content: bytes = b"") -> tuple[bytes, ...]:
    text = json.dumps(fields).encode()
    return struct.pack("<I", len(text)), text, content


@pytest.mark.parametrize("end", [b"\n", b""])
def test_what_a_message_brings_is_masked_wherever_reads_cut_it(end: bytes) -> None:
    header = {"name": "X-Tok", "value": "CANARY-3"}
    server = {"name": "t", "type": "http", "url": "u", "headers": [header]}
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"mcpServers": [server]}}
    line = codec.encode(new) + end
    for cut in range(1, len(line)):
        writer = Writer(direction="out")
        writer.data(line[:cut], line[cut:])
        writer.feed(Kind.ENDED)
        [event] = writer.events()
        assert event.content is not None
        assert b"CANARY" not in event.content, cut


def test_an_event_keeps_its_particulars_and_its_bytes() -> None:
    writer = Writer()
    writer.feed(Kind.EVENT, *event({"ch": "model", "kind": "body", "data": {"n": 1}}, b"\xff\x00"))
    [found] = writer.events()
    assert (found.ch, found.kind, found.data) == ("model", "body", {"n": 1})
    assert found.content == b"\xff\x00"


def test_an_event_s_credentials_are_masked_by_their_header_s_name() -> None:
    writer = Writer()
    data = {"headers": [["Authorization", "Bearer CANARY-2"]]}
    writer.feed(Kind.EVENT, *event({"ch": "model", "kind": "request", "data": data}, b"CANARY-2"))
    assert b"CANARY" not in writer.text()


def test_a_secret_that_is_a_word_of_the_format_spoils_no_line() -> None:
    writer = Writer()
    writer.redactor.learn("K", '"kind"')
    writer.feed(Kind.EVENT, *event({"ch": "process", "kind": "start", "data": {}}))
    [found] = writer.events()
    assert found.kind == "event"


def test_a_goodbye_is_noticed() -> None:
    writer = Writer()
    assert not writer.ledger.complete
    writer.feed(Kind.BYE)
    assert writer.ledger.complete


def test_frames_sent_together_are_the_same_as_one_by_one() -> None:
    writer = Writer()
    heads = [[b"x-api-key", b"CANARY-2"], [b"x-name", b"J\xfcrgen"]]
    data = {"headers": heads, "target": b"/v1/models?key=CANARY-3", "odd": 1}
    members = ("model", "in", "s", 3, "request", data)
    many = [
        (Kind.DATA, 1, 8, b'{"a":1}\n{"b"'),
        (Kind.SECRET, 0, 9, b'["K","CANARY-1"]'),
        (Kind.EVENT, 0, 10, b"bytes of CANARY-1", *members),
        (Kind.DATA, 1, 11, b":2}\n"),
    ]
    writer.feed(Kind.MANY, msgspec.msgpack.encode(many))
    first, event, last = writer.events()
    assert (first.content, last.content) == (b'{"a":1}', b'{"b":2}')
    assert (event.ch, event.dir, event.session, event.n, event.kind) == members[:5]
    # Latin-1, as HTTP's heads are.
    assert event.data == {
        "headers": [["x-api-key", "[secret x-api-key]"], ["x-name", "J\xfcrgen"]],
        "target": "/v1/models?key=[secret target.key]",
        "odd": 1,
    }
    assert event.content == b"bytes of [secret K]"
