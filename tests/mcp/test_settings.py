"""The mcpServers file and ACP's list: templates, checks, and what is inherited."""

import json
from typing import Any

import pytest

from bridge.errors import UsageError
from bridge.mcp.settings import Upstream, from_acp, from_file

ENVIRON = {"PATH": "/bin", "HOME": "/h", "SECRET_OF_OURS": "s", "TOKEN": "t0ken", "EMPTY": ""}


def load(servers: dict[str, Any]) -> list[Upstream]:
    data = json.dumps({"mcpServers": servers}).encode()
    return from_file(data, ENVIRON, where="f.json").upstreams


def refused(servers: Any) -> str:
    with pytest.raises(UsageError) as caught:
        from_file(json.dumps({"mcpServers": servers}).encode(), ENVIRON, where="f.json")
    return str(caught.value)


def test_an_address_and_a_command_are_told_apart() -> None:
    web, local = load(
        {
            "web": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": "k"}},
            "local": {"command": "node", "args": ["s.js"], "env": {"A": "b"}, "cwd": "/tmp"},
        }
    )
    assert (web.name, web.transport, web.url) == ("web", "http", "http://127.0.0.1:1/mcp")
    assert web.headers == (("X-Key", "k"),)
    assert (local.transport, local.argv, local.cwd) == ("stdio", ("node", "s.js"), "/tmp")


def test_a_command_inherits_the_short_list_and_nothing_else() -> None:
    (local,) = load({"l": {"command": "x", "env": {"HOME": "/other", "A": "b"}}})
    assert local.env == {"PATH": "/bin", "HOME": "/other", "A": "b"}


def test_the_policy_has_the_stated_defaults() -> None:
    (server,) = load({"s": {"url": "http://h/"}})
    policy = server.policy
    assert (policy.delivery, policy.attempts, policy.timeout) == ("at-least-once", 6, 600)
    assert (policy.connect_timeout, policy.total_timeout) == (5, None)
    assert (policy.backoff.initial, policy.backoff.max) == (0.5, 30)
    assert policy.max_result_bytes == 256 * 1024 * 1024


def test_the_policy_can_be_said_by_server_and_by_tool() -> None:
    (server,) = load(
        {
            "s": {
                "url": "http://h/",
                "delivery": "safe",
                "tools": {"add": {"delivery": "never", "timeout": 3}},
                "backoff": {"initial": 0.01},
            }
        }
    )
    assert server.policy.delivery == "safe"
    assert server.policy.tools["add"].delivery == "never"
    assert server.policy.tools["add"].timeout == 3
    assert (server.policy.backoff.initial, server.policy.backoff.max) == (0.01, 30)


def test_templates_are_filled_in_wherever_a_string_stands() -> None:
    web, local = load(
        {
            "web": {
                "url": "http://h:${PORT:-8080}/${NONE:-}x",
                "headers": {"Authorization": "Bearer ${TOKEN}", "X": "${EMPTY:-e}${EMPTY}"},
            },
            "local": {"command": "${HOME}/run", "args": ["--t=${TOKEN}", "$TOKEN", "${1}"]},
        }
    )
    assert web.url == "http://h:8080/x"
    assert dict(web.headers) == {"Authorization": "Bearer t0ken", "X": "e"}
    assert local.argv == ("/h/run", "--t=t0ken", "$TOKEN", "${1}")


def test_what_a_template_brings_in_is_not_filled_in_again() -> None:
    data = json.dumps({"mcpServers": {"s": {"command": "${A}"}}}).encode()
    loaded = from_file(data, {"A": "${B}", "B": "no"}, where="f")
    assert loaded.upstreams[0].argv == ("${B}",)


def test_a_missing_variable_is_named_with_its_server() -> None:
    assert "'web'" in refused({"web": {"url": "http://h/${NOPE}"}})
    assert "${NOPE}" in refused({"web": {"url": "http://h/${NOPE}"}})


def test_disabled_servers_are_skipped_whatever_they_say() -> None:
    assert load({"s": {"disabled": True, "url": "${NOPE}", "delivery": 3}}) == []


def test_unknown_keys_are_kept_and_told_once() -> None:
    data = {"mcpServers": {"s": {"url": "http://h/", "autoApprove": [], "gallery": 1}}}
    loaded = from_file(json.dumps(data).encode(), ENVIRON, where="f.json")
    assert len(loaded.upstreams) == 1
    (warning,) = loaded.warnings
    assert "'autoApprove', 'gallery'" in warning
    assert "'s'" in warning


@pytest.mark.parametrize(
    "servers, words",
    [
        ({"s": {}}, ["'s'", "url", "command"]),
        ({"s": {"url": "http://h/", "command": "x"}}, ["'s'", "url", "command"]),
        ({"s": {"url": "ftp://h/"}}, ["'s'", "http://"]),
        ({"s": {"url": "http://"}}, ["'s'", "host"]),
        ({"s": {"url": "http://[::1/"}}, ["'s'", "host"]),
        ({"s": {"url": "http://u:pw@h/"}}, ["'s'", "Authorization"]),
        ({"s": {"command": ""}}, ["'s'", "command"]),
        ({"s": {"type": "stdio", "url": "http://h/"}}, ["'s'", "stdio"]),
        ({"s": {"type": "sse", "command": "x"}}, ["'s'", "sse"]),
        ({"s": {"type": "smoke", "url": "http://h/"}}, ["'s'", "$.type"]),
        ({"s": {"url": "http://h/", "delivery": "twice"}}, ["'s'", "$.delivery"]),
        ({"s": {"url": "http://h/", "attempts": 0}}, ["'s'", "$.attempts"]),
        ({"s": {"url": "http://h/", "timeout": 0}}, ["'s'", "$.timeout"]),
        ({"s": {"url": "http://h/", "headers": {"a b": "c"}}}, ["'s'", "'a b'"]),
        ({"s": {"url": "http://h/", "headers": {"k": "a\nb"}}}, ["'s'", "'k'"]),
        ({"s": 3}, ["'s'", "object"]),
        (3, ["f.json", "mcpServers"]),
    ],
)
def test_a_bad_entry_is_refused_by_server_and_key(servers: Any, words: list[str]) -> None:
    message = refused(servers)
    assert all(word in message for word in words), message
    assert "pw" not in message


def test_a_header_value_is_in_no_error() -> None:
    message = refused({"s": {"url": "http://h/", "headers": {"k": "s3cret\u20ac"}}})
    assert "s3cret" not in message


def test_a_file_that_is_not_json_is_named() -> None:
    with pytest.raises(UsageError, match=r"f\.json is not JSON"):
        from_file(b"{", ENVIRON, where="f.json")


def test_headers_the_protocol_sets_itself_are_ours() -> None:
    (server,) = load({"s": {"url": "http://h/", "headers": {"Accept": "x", "Host": "v", "K": "1"}}})
    assert server.headers == (("Host", "v"), ("K", "1"))


def test_acp_entries_have_pairs_and_their_own_policies() -> None:
    entries = [
        {
            "type": "http",
            "name": "a",
            "url": "http://h/",
            "headers": [{"name": "K", "value": "1"}],
        },
        {"type": "sse", "name": "b", "url": "http://h/sse", "headers": []},
        {"name": "c", "command": "x", "args": ["y"], "env": [{"name": "E", "value": "1"}]},
    ]
    a, b, c = from_acp(entries, {"b": {"delivery": "never"}}, ENVIRON)
    assert (a.transport, a.headers, a.policy.delivery) == ("http", (("K", "1"),), "at-least-once")
    assert (b.transport, b.policy.delivery) == ("sse", "never")
    assert (c.transport, c.argv, c.env["E"]) == ("stdio", ("x", "y"), "1")
    assert "SECRET_OF_OURS" not in c.env


@pytest.mark.parametrize(
    "entries, policies, words",
    [
        ([{"type": "http", "url": "http://h/"}], {}, "mcpServers\\[0\\].*name"),
        ([{"name": "a", "type": "http"}], {}, "'a'.*url"),
        ([{"name": "a"}], {}, "'a'.*command"),
        ([{"name": "a", "command": "x"}] * 2, {}, "'a' is given twice"),
        ([{"name": "a", "command": "x"}], {"a": {"attempts": "six"}}, "'a'.*attempts"),
        ([{"name": "a", "command": "x"}], {"b": {}}, "'b'"),
    ],
)
def test_bad_acp_entries_are_refused(entries: list[Any], policies: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        from_acp(entries, policies, ENVIRON)
