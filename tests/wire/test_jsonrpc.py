"""JSON-RPC lines: what each is, and that nothing a peer writes raises or loses its bytes."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.wire import codec, jsonrpc
from bridge.wire.codec import Raw
from bridge.wire.jsonrpc import Fault, Malformed, Notification, Request, Response

IDS = [
    b"1",
    b"0",
    b"-7",
    b"1.0",
    b"1E2",
    b"1.50",
    b"9007199254740993",
    b"123456789012345678901234567890",
    b'"1"',
    b'""',
    b'"caf\\u00e9"',
    '"café"'.encode(),
    b'"\\u0041"',
    b'"a\\/b"',
    b'"\\ud83d"',
    b"null",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)
)


@pytest.mark.parametrize("ident", IDS)
@pytest.mark.parametrize("params", [b"{}", b'{"odd":"\\ud83d"}', b"[1]", b'"x"'])
def test_an_answer_carries_the_id_byte_for_byte(ident: bytes, params: bytes) -> None:
    line = b'{"jsonrpc":"2.0", "id": %s ,"method":"ask","params":%s}' % (ident, params)
    request = jsonrpc.parse(line)
    assert isinstance(request, Request)
    assert request.id == ident
    assert jsonrpc.result(request.id, {}) == b'{"jsonrpc":"2.0","id":%s,"result":{}}\n' % ident
    refused = jsonrpc.failure(request.id, -32601, "no")
    assert refused.startswith(b'{"jsonrpc":"2.0","id":%s,"error":' % ident)
    assert json.loads(refused)["error"] == {"code": -32601, "message": "no"}


@pytest.mark.parametrize(
    "line, code",
    [(b"{", -32700), (b'"\xff"', -32700), (b"[]", -32600), (b'{"jsonrpc":"2.0"}', -32600)],
)
def test_noise_has_the_code_of_what_is_wrong_with_it(line: bytes, code: int) -> None:
    noise = jsonrpc.parse(line)
    assert isinstance(noise, Malformed)
    assert noise.code == code


@pytest.mark.parametrize("ident", [b"[]", b"{}", b"true", b"false", b"[1]"])
@pytest.mark.parametrize("rest", [b'"method":"m"', b'"result":1', b'"method":"m","params":NaN'])
def test_an_id_that_is_neither_text_nor_number_is_noise(ident: bytes, rest: bytes) -> None:
    noise = jsonrpc.parse(b'{"jsonrpc":"2.0","id":%s,%s}' % (ident, rest))
    assert isinstance(noise, Malformed)
    assert (noise.id, "neither a string nor a number" in noise.reason) == (None, True)


NOISE = [
    (b"42", "not an object"),
    (b"[]", "not an object"),
    (b"null", "not an object"),
    (b'"s"', "not an object"),
    (b"true", "not an object"),
    (b"db: migrated 3 tables", "not JSON"),
    (b"\x1b[?25l", "not JSON"),
    (b"{", "not JSON"),
    (b"{}", '"jsonrpc":"2.0"'),
    (b'{"jsonrpc":"1.0","id":1,"method":"m"}', '"jsonrpc":"2.0"'),
    (b'{"jsonrpc":2.0,"id":1,"result":{}}', '"jsonrpc":"2.0"'),
    (b'{"id":1,"result":{}}', '"jsonrpc":"2.0"'),
    (b'{"jsonrpc":"2.0"}', "neither method nor id"),
    (b'{"jsonrpc":"2.0","result":{}}', "neither method nor id"),
    (b'[{"jsonrpc":"2.0","id":1,"method":"m"}]', "not an object"),
    (b'{"jsonrpc":"2.0","method":"m","params":"\xff"}', "not UTF-8"),
    (b"[" * 5000, "not JSON"),
    (b'{"jsonrpc":"2.0","method":"m"} {}', "not JSON"),
    (b'{"jsonrpc":"2.0","method":"m","params":' + b"[" * 10001 + b"]" * 10001 + b"}", "not JSON"),
]


@pytest.mark.parametrize(("line", "reason"), NOISE)
def test_noise_is_named(line: bytes, reason: str) -> None:
    noise = jsonrpc.parse(line)
    assert isinstance(noise, Malformed)
    assert reason in noise.reason
    assert (noise.line, noise.id) == (line, None)


def test_a_request_whose_method_is_no_text_can_be_refused_by_its_id() -> None:
    noise = jsonrpc.parse(b'{"jsonrpc":"2.0","id":"a","method":7}')
    assert isinstance(noise, Malformed)
    assert noise.id == b'"a"'


@given(st.binary() | st.text().map(str.encode) | JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"jsonrpc":"2.0","id":1,"error":"a string"}')
@example(b'{"jsonrpc":"2.0","id":1,"error":[]}')
def test_nothing_a_peer_writes_raises(line: bytes) -> None:
    assert isinstance(jsonrpc.parse(line), Request | Notification | Response | Malformed)


@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0")},
        optional={
            "id": JSON,
            "method": JSON | st.just("m"),
            "params": JSON,
            "result": JSON,
            "error": JSON,
        },
    )
)
def test_every_object_is_taken_for_what_it_is(value: dict[str, Any]) -> None:
    message = jsonrpc.parse(json.dumps(value).encode())
    ident = value.get("id", ...)
    odd_method = not isinstance(value.get("method", ""), str)
    if odd_method or isinstance(ident, bool | list | dict) or not {"id", "method"} & set(value):
        assert isinstance(message, Malformed)
    elif "method" in value:
        assert isinstance(message, Request if "id" in value else Notification)
        assert message.method == value["method"]
    else:
        assert isinstance(message, Response)
        failed = value.get("error") is not None or "result" not in value
        assert (message.error is not None) == failed


def test_an_id_beside_what_is_not_quite_json_keeps_its_value() -> None:
    request = jsonrpc.parse(b'{"jsonrpc":"2.0","id":"a\\/b","method":"ask","params":NaN}')
    assert isinstance(request, Request)
    assert (request.id, request.params) == (b'"a/b"', Raw(b"null"))


@pytest.mark.parametrize(
    "raw", [b'{"a": 1.0}', b"[ ]", b"null", b'"\\u00e9"', b"1e5", b'{ "odd":"\\ud83d"}']
)
def test_params_and_results_keep_their_bytes(raw: bytes) -> None:
    request = jsonrpc.parse(b'{"params":%s,"id":1,"method":"m","jsonrpc":"2.0"}' % raw)
    response = jsonrpc.parse(b'{"jsonrpc":"2.0","result":%s,"id":1}' % raw)
    assert isinstance(request, Request)
    assert isinstance(response, Response)
    assert bytes(request.params) == bytes(response.result) == raw


@pytest.mark.parametrize("depth", [10, 900, 985, 1000, 5000])
def test_nesting_too_deep_to_decode_does_not_hide_whose_answer_it_is(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    response = jsonrpc.parse(b'{"jsonrpc":"2.0","id":3,"result":%s}' % deep)
    request = jsonrpc.parse(b'{"jsonrpc":"2.0","id":"a","method":"m","params":%s}' % deep)
    assert isinstance(response, Response)
    assert isinstance(request, Request)
    assert (response.id, request.id) == (b"3", b'"a"')
    assert bytes(response.result) == bytes(request.params) == deep


def test_what_is_absent_is_null() -> None:
    call = jsonrpc.parse(b'{"jsonrpc":"2.0","method":"m"}')
    assert isinstance(call, Notification)
    assert bytes(call.params) == b"null"


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (b'{"code":-32603,"message":"no"}', Fault(-32603, "no")),
        (b'{"code":1,"message":"no","data":[1]}', Fault(1, "no", [1])),
        (b'"in words"', Fault(None, "in words")),
        (b"17", Fault(None, "17")),
        (b'{"code":"EPERM"}', Fault(None, '{"code":"EPERM"}')),
        (b'{"code":true,"message":""}', Fault(None, '{"code":true,"message":""}')),
        (b'{"code":1.5,"message":{}}', Fault(None, '{"code":1.5,"message":{}}')),
        (b"[]", Fault(None, "[]")),
    ],
)
def test_an_error_of_any_shape_is_an_error_with_words(error: bytes, fault: Fault) -> None:
    response = jsonrpc.parse(b'{"jsonrpc":"2.0","id":3,"error":%s}' % error)
    assert isinstance(response, Response)
    assert response.error == fault


def test_an_error_that_is_null_beside_a_result_is_none() -> None:
    response = jsonrpc.parse(b'{"jsonrpc":"2.0","id":3,"result":{},"error":null}')
    assert isinstance(response, Response)
    assert response.error is None


def test_a_response_with_neither_is_an_error() -> None:
    response = jsonrpc.parse(b'{"jsonrpc":"2.0","id":3}')
    assert isinstance(response, Response)
    assert response.error is not None
    assert "neither" in response.error.message


@pytest.mark.parametrize("before", [b"", codec.BOM, b" "])
@pytest.mark.parametrize("after", [b"", b"\r", b" \r", b"\t"])
def test_a_bom_and_line_ends_do_not_matter(before: bytes, after: bytes) -> None:
    message = jsonrpc.parse(before + '{"jsonrpc":"2.0","id":1,"method":"é"}'.encode() + after)
    assert isinstance(message, Request)
    assert message.method == "é"


@given(JSON)
def test_what_we_write_is_one_line_that_a_peer_can_read(params: Any) -> None:
    written = [
        jsonrpc.request(1, "m", {"given": params}),
        jsonrpc.request("one", "m", {"given": params}),
        jsonrpc.notification("m", {"given": params}),
        jsonrpc.result(b'"x"', {"given": params}),
        jsonrpc.failure(b"1", -1, "no", {"given": params}),
    ]
    for line in written:
        assert line.endswith(b"\n")
        text = line[:-1].decode()
        assert not any(end in text for end in "\n\r\u2028\u2029\x85")
        assert not isinstance(jsonrpc.parse(line[:-1]), Malformed)
        assert json.loads(text)["jsonrpc"] == "2.0"


def test_raw_params_are_written_as_they_stand() -> None:
    line = jsonrpc.notification("m", Raw(b'{ "a" : 1.0 }'))
    assert line == b'{"jsonrpc":"2.0","method":"m","params":{ "a" : 1.0 }}\n'


@pytest.mark.parametrize(
    "escapes",
    [b"\x1b[?25l", b"\x1b[2J\x1b[H\x1b[1;31m", b"\x1b]0;title\x07", b"\x1b]0;t\x1b\\\x1b7"],
)
def test_a_message_right_behind_terminal_escapes_is_one(escapes: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert jsonrpc.parse(escapes + line) == jsonrpc.parse(line)


@pytest.mark.parametrize(
    "noise", [b"\x1b[?25l", b"\x1b[1mtext {}", b"\x1b", b"\x1b[3", b"\x1b]0;t{}"]
)
def test_escapes_without_a_message_are_noise(noise: bytes) -> None:
    found = jsonrpc.parse(noise)
    assert isinstance(found, Malformed)
    assert found.line == noise
