"""The shapes of our own errors."""

import json

import pytest

from bridge.model.answers import STATUSES, error, is_anthropic, refusal


def test_the_shape_is_openai_s_or_anthropic_s() -> None:
    inner = {"message": "words", "type": "bridge_error", "code": "model_upstream"}
    assert json.loads(error("model_upstream", "words")) == {"error": inner}
    wrapped = {"type": "error", "error": inner}
    assert json.loads(error("model_upstream", "words", anthropic=True)) == wrapped


@pytest.mark.parametrize(
    "target, found",
    [
        (b"/x/v1/messages", True),
        (b"/x/v1/messages/?beta=true", True),
        (b"/x/v1/messages/count_tokens?beta=true", True),
        (b"/x/v1/messages/batches/b_1/results", True),
        (b"/x/v1/messages/m_1", False),
        (b"/x/v1/chat/completions", False),
        (b"/x/v1/chat/completions?to=/v1/messages", False),
        (b"", False),
    ],
)
def test_anthropic_s_paths(target: bytes, found: bool) -> None:
    assert is_anthropic(target) is found


@pytest.mark.parametrize(
    "status, code",
    [(400, "bad_request"), (413, "too_large"), (500, "internal"), (431, "bad_request")],
)
def test_a_refusal_has_the_code_of_its_status(status: int, code: str) -> None:
    assert json.loads(refusal(status, "w"))["error"]["code"] == code
    assert json.loads(refusal(status, "w", b"/v1/messages"))["type"] == "error"
    assert STATUSES["limit"] == 400
