"""Which API a request speaks, and what an answer says of its cost and of what went wrong."""

import json

import pytest

from bridge.model.dialects import Kind, kind, read_answer
from protocol_schemas.model import Usage


@pytest.mark.parametrize(
    "method, path, expected",
    [
        ("POST", "/v1/chat/completions", Kind("chat", "turn")),
        ("POST", "/chat/completions/", Kind("chat", "turn")),
        ("POST", "/v1/completions", Kind("completions", "turn")),
        ("POST", "/v1/messages", Kind("anthropic", "turn")),
        ("POST", "/v1/messages/count_tokens", Kind("anthropic", "count")),
        ("POST", "/v1/responses", Kind("responses", "turn")),
        ("POST", "/v1/responses/input_tokens", Kind("responses", "count")),
        ("POST", "/v1beta/models/gemini-2.5:generateContent", Kind("gemini", "turn")),
        ("POST", "/v1beta/models/g:streamGenerateContent", Kind("gemini", "turn")),
        ("POST", "/v1beta/models/g:countTokens", Kind("gemini", "count")),
        ("GET", "/v1/models", Kind("other", "models")),
        ("GET", "/v1/models/gpt-5", Kind("other", "models")),
        ("GET", "/v1/chat/completions", Kind("other", "other")),
        ("POST", "/v1/embeddings", Kind("other", "other")),
    ],
)
def test_method_and_path_tell_the_dialect(method: str, path: str, expected: Kind) -> None:
    assert kind(method, path) == expected


CHAT_USAGE = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
ANTHROPIC = [
    {
        "type": "message_start",
        "message": {
            "model": "claude",
            "usage": {
                "input_tokens": 10,
                "cache_creation_input_tokens": 3,
                "cache_read_input_tokens": 4,
                "output_tokens": 1,
            },
        },
    },
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "hi"}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 9},
    },
]
RESPONSE = {
    "id": "r",
    "object": "response",
    "model": "gpt",
    "status": "completed",
    "usage": {
        "input_tokens": 7,
        "output_tokens": 3,
        "input_tokens_details": {"cached_tokens": 2},
        "output_tokens_details": {"reasoning_tokens": 1},
    },
}
GEMINI = {
    "modelVersion": "gemini",
    "candidates": [{"finishReason": "STOP", "content": {}}],
    "usageMetadata": {
        "promptTokenCount": 8,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 3,
        "cachedContentTokenCount": 1,
    },
}
ANSWERS = [
    (
        "chat",
        [
            {"model": "m", "choices": [{"delta": {"content": "a"}, "finish_reason": None}]},
            {"model": "m", "choices": [{"delta": {}, "finish_reason": "length"}], "usage": None},
            {"choices": [], "usage": CHAT_USAGE},
        ],
        ("m", "length", Usage(10, 5, 4, 2)),
    ),
    ("anthropic", ANTHROPIC, ("claude", "tool_use", Usage(17, 9, 4))),
    (
        "responses",
        [
            {
                "type": "response.created",
                "response": {**RESPONSE, "status": "in_progress", "usage": None},
            },
            {"type": "response.output_text.delta", "delta": "x"},
            {"type": "response.completed", "response": RESPONSE},
        ],
        ("gpt", "completed", Usage(7, 3, 2, 1)),
    ),
    (
        "responses",
        [
            {
                "type": "response.incomplete",
                "response": {
                    **RESPONSE,
                    "status": "incomplete",
                    "incomplete_details": {"reason": "max_output_tokens"},
                },
            }
        ],
        ("gpt", "max_output_tokens", Usage(7, 3, 2, 1)),
    ),
    ("gemini", [GEMINI], ("gemini", "STOP", Usage(8, 5, 1, 3))),
]


@pytest.mark.parametrize("dialect, events, expected", ANSWERS)
def test_a_stream_tells_what_it_cost(dialect, events, expected) -> None:
    body = b": ping\n\n" + b"".join(b"data: %b\n\n" % json.dumps(e).encode() for e in events)
    found = read_answer(dialect, b"text/event-stream; charset=utf-8", body + b"data: [DONE]\n\n")
    assert (found.model, found.finish_reason, found.usage) == expected


@pytest.mark.parametrize(
    "dialect, value, expected",
    [
        (
            "chat",
            {"model": "m", "choices": [{"finish_reason": "stop"}], "usage": CHAT_USAGE},
            ("m", "stop", Usage(10, 5, 4, 2)),
        ),
        (
            "anthropic",
            {
                "model": "c",
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 2},
            },
            ("c", "end_turn", Usage(1, 2)),
        ),
        ("responses", RESPONSE, ("gpt", "completed", Usage(7, 3, 2, 1))),
        ("gemini", [{"candidates": []}, GEMINI], ("gemini", "STOP", Usage(8, 5, 1, 3))),
        ("chat", {"error": {"message": "no"}}, (None, None, None)),
        ("chat", ["odd", 1, None], (None, None, None)),
        ("chat", {"choices": 7, "usage": [], "model": {}}, (None, None, None)),
        (
            "chat",
            {"usage": {"prompt_tokens": "x", "completion_tokens": True}},
            (None, None, Usage()),
        ),
        (
            "chat",
            {"usage": {"prompt_tokens": 3.0, "completion_tokens": -1, "total_tokens": 1e999}},
            (None, None, Usage(3)),
        ),
        (
            "anthropic",
            {"usage": {"input_tokens": 1, "cache_read_input_tokens": True, "output_tokens": 2.5}},
            (None, None, Usage(1)),
        ),
        ("other", {"model": "m", "usage": CHAT_USAGE}, (None, None, None)),
    ],
)
def test_a_whole_answer_tells_what_it_cost(dialect, value, expected) -> None:
    found = read_answer(dialect, b"application/json", json.dumps(value).encode())
    assert (found.model, found.finish_reason, found.usage) == expected


@pytest.mark.parametrize(
    "dialect, event, words",
    [
        ("chat", {"error": {"message": "overloaded", "code": 502}}, "overloaded"),
        ("chat", {"error": "just words"}, "just words"),
        ("chat", {"choices": [], "error": None}, None),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}}, "overloaded_error"),
        ("responses", {"type": "error", "code": "c", "message": "no room"}, "no room"),
        (
            "responses",
            {
                "type": "response.failed",
                "response": {"object": "response", "error": {"message": "m"}},
            },
            "m",
        ),
        (
            "responses",
            {"type": "response.completed", "response": {**RESPONSE, "error": None}},
            None,
        ),
        ("gemini", {"error": {"code": 503, "message": "busy"}}, "busy"),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_told(dialect, event, words) -> None:
    body = b"data: %b\n\n" % json.dumps(event).encode()
    assert read_answer(dialect, b"text/event-stream", body).error == words
    assert read_answer(dialect, b"application/json", json.dumps(event).encode()).error == words


@pytest.mark.parametrize("content_type", [b"", b"text/plain", b"application/json"])
@pytest.mark.parametrize("before", [b"", b": ping\n\n", b"event: x\r\n", b"\n"])
def test_a_stream_of_another_type_is_read(content_type: bytes, before: bytes) -> None:
    event = {"model": "m", "choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
    found = read_answer("chat", content_type, before + b"data: %b\n\n" % json.dumps(event).encode())
    assert (found.model, found.finish_reason, found.usage) == ("m", "stop", Usage(3))


@pytest.mark.parametrize(
    "end", [b"", b"\n", b"\r\n\r\n", b"\n\ndata: [DONE]", b'\n\ndata: {"usage":{"p']
)
def test_a_stream_s_last_event_is_read_whatever_stands_behind_it(end: bytes) -> None:
    body = b'data: {"model":"m"}\n\ndata: {"usage":{"prompt_tokens":3}}' + end
    assert read_answer("chat", b"text/event-stream", body).usage == Usage(3)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"usage":', b"data: {", b"\xff"])
@pytest.mark.parametrize("content_type", [b"application/json", b"text/event-stream"])
def test_what_cannot_be_read_says_nothing(body: bytes, content_type: bytes) -> None:
    found = read_answer("chat", content_type, body)
    assert (found.model, found.finish_reason, found.usage) == (None, None, None)
