"""Reading a request's fields: what is wrong is named with its operation and place."""

import math
from typing import Any

import pytest

from bridge.errors import BridgeError
from bridge.host.requests import fields_of
from protocol_schemas import host as shapes


def test_fields_are_read_and_unknown_ones_ignored() -> None:
    fields = fields_of({"operation": "steer", "message": "m", "later": 1}, shapes.Steer)
    assert (fields.message, fields.message_id) == ("m", None)


@pytest.mark.parametrize(
    ("request_", "kind", "place"),
    [
        ({"operation": "open"}, shapes.Open, "config"),
        ({"operation": "open", "config": []}, shapes.Open, r"\$\.config"),
        ({"operation": "prompt", "config": {"command": "x"}}, shapes.Prompt, r"config\.command"),
        ({"operation": "prompt", "config": {"env": {"A": 1}}}, shapes.Prompt, r"config\.env"),
        (
            {"operation": "prompt", "config": {"permission": "maybe"}},
            shapes.Prompt,
            r"config\.permission",
        ),
        ({"operation": "prompt", "config": {"turn_timeout": -1}}, shapes.Prompt, "turn_timeout"),
        (
            {"operation": "prompt", "config": {"idle_timeout": math.nan}},
            shapes.Prompt,
            "idle_timeout",
        ),
        ({"operation": "send", "message": "m", "mode": "now"}, shapes.Send, r"\$\.mode"),
        ({"operation": "permission", "request_id": "p"}, shapes.PermissionAnswer, "outcome"),
        (
            {"operation": "permission", "request_id": "p", "outcome": "yes"},
            shapes.PermissionAnswer,
            r"\$\.outcome",
        ),
        ({"operation": "fork"}, shapes.Fork, "new_session"),
    ],
)
def test_what_is_wrong_is_named(request_: dict[str, Any], kind: Any, place: str) -> None:
    with pytest.raises(BridgeError, match=place) as caught:
        fields_of(request_, kind)
    assert caught.value.message.startswith(request_["operation"] + ":")
    assert (caught.value.code, caught.value.origin) == ("invalid_request", "host")
