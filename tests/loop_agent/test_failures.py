"""The errors' codes and data, as ACP has them."""

import pytest

from bridge.errors import RequestFailed
from bridge.loop_agent import failures


@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        (failures.invalid_params("x"), -32602, None),
        (failures.invalid_request("x"), -32600, None),
        (failures.session_not_found("s"), -32002, {"sessionId": "s"}),
        (failures.failed("x", "why"), -32603, {"details": "why"}),
    ],
)
def test_each_failure_has_its_code_and_data(error: RequestFailed, code: int, data: object) -> None:
    assert (error.code, error.data) == (code, data)
    assert error.message
