"""Where secrets come from: names that are secret, and the places in messages where they stand."""

import base64
import json
from typing import Any

import pytest

from bridge.trace import secrets


def values(found: Any) -> set[str]:
    return {value for _, value in found}


def call(to: str, **params: object) -> dict[str, object]:
    return {"method": to, "params": params}


@pytest.mark.parametrize("name", ["PWD", "OLDPWD", "BRIDGE_SECRETS", "BRIDGE_RECORD_SECRETS"])
def test_variables_of_the_shell_and_of_our_own_are_no_secrets(name: str) -> None:
    assert not secrets.is_secret_name(name)


def test_the_environment_gives_what_is_secret_by_name_declared_or_a_password_in_a_url() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-1",
        "HOME": "/root",
        "DEPLOYMENT": "hidden-1",
        "BRIDGE_SECRETS": "DEPLOYMENT, OTHER",
        "HTTPS_PROXY": "http://user:pa%20ss@proxy:1",
        "USE_TOKEN": "false",
    }
    assert values(secrets.of_environment(environment)) == {
        "sk-1", "hidden-1", "pa ss", "pa%20ss", "user:pa ss",
    }  # fmt: skip


def test_a_bearer_is_secret_with_and_without_its_scheme() -> None:
    assert values(secrets.of_value("Authorization", "Bearer abc")) == {"Bearer abc", "abc"}


def test_basic_credentials_are_secret_encoded_and_decoded() -> None:
    encoded = base64.b64encode(b"user:hunter2").decode()
    assert values(secrets.of_value("Authorization", f"Basic {encoded}")) >= {
        encoded, "user:hunter2", "hunter2",
    }  # fmt: skip


def test_every_header_of_a_server_is_secret_save_those_that_negotiate() -> None:
    headers = [("X-Tok", "abc"), ("Accept", "application/json"), ("Cookie", "a=1234567; b=7654321")]
    found = values(secrets.of_headers(headers))
    assert {"abc", "1234567", "7654321"} <= found
    assert "application/json" not in found


def test_a_host_s_request_gives_headers_secrets_environment_and_urls() -> None:
    config = {
        "mcp_headers": {"tools": {"X-Tok": "c-1"}},
        "mcp_urls": {"tools": "http://u:c-2@h/mcp?api_key=c-3&page=2"},
        "tool_interception": {"url": "http://h/", "secret": "c-4"},
        "mcp_servers": [{"name": "s", "headers": [{"name": "A", "value": "c-5"}]}],
        "env": {"MY_TOKEN": "c-6", "PLAIN": "open", "DECLARED": "c-7"},
        "secrets": ["DECLARED"],
        "model": {"upstream": "http://u:c-8@h/v1", "api_key": "c-9"},
    }
    body = json.dumps({"id": 1, "operation": "prompt", "config": config}).encode()
    found = values(secrets.of_host(body))
    assert {f"c-{number}" for number in range(1, 10)} <= found
    assert "open" not in found
    assert "2" not in found


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{}", b'{"config":7}', b"\xff"),
        b'{"config":{"env":[1,[2],{"name":3}],"mcp_headers":{"x":5}}}',
    ],
)
def test_a_request_of_any_shape_is_survived(body: bytes) -> None:
    assert list(secrets.of_host(body)) == []


def test_a_host_s_command_is_a_command_line() -> None:
    body = json.dumps({"config": {"command": ["agent", "--api-key=c-1"]}}).encode()
    assert values(secrets.of_host(body)) == {"c-1"}


def test_a_client_s_message_gives_servers_and_provider_headers() -> None:
    servers = [
        {"name": "a", "command": "x", "env": [{"name": "A_TOKEN", "value": "c-1"}]},
        {"name": "b", "type": "http", "url": "u", "headers": [{"name": "H", "value": "c-2"}]},
    ]
    new = {"method": "session/new", "params": {"cwd": "/", "mcpServers": servers}}
    assert values(secrets.of_acp(json.dumps(new).encode())) == {"c-1", "c-2"}
    provider = {"method": "providers/set", "params": {"headers": {"X-A": "c-3"}}}
    assert values(secrets.of_acp(json.dumps(provider).encode())) == {"c-3"}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--api-key", "c-1", "--token=c-2", "-v", "x"], {"c-1", "c-2"}),
        (["--header", "Authorization: Bearer c-1", "-H", "X-Tok: c-2"], {"c-1", "c-2"}),
        (["--header=X-Tok:c-1", "http://u:c-2@h/?key=c-3"], {"c-1", "c-2", "u:c-2", "c-3"}),
        (["--url=http://h/?token=c-1", "--database-password", "c-2"], {"c-1", "c-2"}),
        (["--auth", "login", "--token", "--verbose", "--header", "Accept: all", "a=b"], set()),
        (["--token"], set()),
    ],
)
def test_a_command_line_brings_what_stands_behind_secret_options(
    arguments: list[str], found: set[str]
) -> None:
    assert values(secrets.of_arguments(arguments)) - {"Bearer c-1"} == found


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (call("providers/set", baseUrl="http://u:c-1@h/v1"), {"c-1", "u:c-1"}),
        (call("terminal/create", command="x", args=["--token", "c-1"]), {"c-1"}),
        (call("authenticate", methodId="m", _meta={"gateway": {"headers": {"X": "c-1"}}}), {"c-1"}),
        (call("auth/login", methodId="m", _meta={"a": [{"apiKey": "c-1", "name": "n"}]}), {"c-1"}),
        (call("authenticate", _meta={"api-key": {"value": "c-1"}}), {"c-1"}),
        ({"result": {"action": "accept", "content": {"password": "c-1", "user": "u"}}}, {"c-1"}),
        (
            call("session/new", mcpServers=[{"command": "x", "args": ["--api-key=c-1"]}]),
            {"c-1"},
        ),
        (
            call("proxy/successor", **call("providers/set", headers={"X": "c-1"})),
            {"c-1"},
        ),
        (
            call("_proxy/successor/request", **call("terminal/create", env={"A_KEY": "c-1"})),
            {"c-1"},
        ),
    ],
)
def test_credentials_are_found_wherever_a_message_has_a_place_for_them(
    message: dict[str, object], found: set[str]
) -> None:
    line = json.dumps(message).encode()
    assert values(secrets.of_acp(line)) == found


def test_a_message_with_secrets_has_a_marker() -> None:
    of_the_agent = call("terminal/create", command="x", env={"A_KEY": "c-1"})
    assert any(marker in json.dumps(of_the_agent).encode() for marker in secrets.AGENT_MARKERS)
    for message in (
        call("session/new", mcpServers=[]),
        call("providers/set", baseUrl="x"),
        call("authenticate", methodId="m"),
        {"result": {"action": "accept", "content": {}}},
        call("proxy/successor", **of_the_agent),
    ):
        line = json.dumps(message).encode()
        assert any(marker in line for marker in secrets.CLIENT_MARKERS), message


def test_what_a_tool_says_is_no_source_of_secrets() -> None:
    update = {
        "method": "session/update",
        "params": {"headers": {"X": "the"}, "env": {"A_KEY": "b"}},
    }
    assert list(secrets.of_acp(json.dumps(update).encode())) == []


def test_credentials_among_an_event_s_headers_are_known_by_name() -> None:
    headers = [["x-api-key", "c-1"], ["user-agent", "agent/1"], ["x-stainless-os", "Linux"]]
    assert values(secrets.of_event({"headers": headers})) == {"c-1"}
    assert values(secrets.of_event({"response_headers": [["Set-Cookie", "s=c-22"]]})) == {
        "s=c-22",
        "c-22",
    }


def test_credentials_in_a_request_s_target_are_known_by_their_parameter() -> None:
    target = "/v1beta/models/m:generateContent?alt=sse&key=c-1&sig=c%2D2&X-Token=c-3&page=2"
    assert values(secrets.of_event({"target": target})) == {"c-1", "c%2D2", "c-2", "c-3"}
    assert not values(secrets.of_event({"target": "/v1/keys/key"}))


@pytest.mark.parametrize(
    "data",
    [{}, {"headers": None}, {"headers": 3}, {"headers": [3, ["a"], ["a", 3], {}]}, {"target": 3}],
)
def test_an_event_of_any_shape_is_looked_through(data: dict[str, object]) -> None:
    assert not values(secrets.of_event(data))
