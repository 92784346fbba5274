"""Every model URL is found, and nothing else is touched."""

import json

import pytest

from bridge.model.rewrite import rewrite


def routed(url: str) -> str:
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"http://127.0.0.1:7/{scheme}-{host.replace(':', '.')}{slash}{path}"


def one(name: str, value: str, intercept: str | None = None) -> str:
    return rewrite({name: value}, [], intercept, routed)[0][name]


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
        *("POOLSIDE_STANDALONE_BASE_URL", "KIMI_MODEL_BASE_URL", "COPILOT_PROVIDER_BASE_URL"),
        *("CODEX_BASE_URL", "AZURE_OPENAI_ENDPOINT", "LLM_BASE_URL"),
    ],
)
@pytest.mark.parametrize("url", ["http://h:9000/v1", "https://api.example/v1/", "HTTP://h"])
def test_well_known_variables_are_replaced(name: str, url: str) -> None:
    assert one(name, url) == routed(url)


@pytest.mark.parametrize(
    "name, value",
    [
        ("OPENAI_BASE_URL", ""),
        ("OPENAI_BASE_URL", "unix:///run/x.sock"),
        ("OPENAI_BASE_URL", "127.0.0.1:9000"),
        ("OPENAI_API_KEY", "http://h:9000/v1"),
        ("SENTRY_BASE_URL", "http://h:9000/v1"),
        ("HTTP_PROXY", "http://h:9000"),
        ("CODEX_HOME", "/home/x"),
        ("CODEX_CONFIG", "{broken"),
        ("CODEX_CONFIG", '{"mcp":{"url":"http://h/mcp"},"x":"http://h","base_url":7}'),
        ("SOME_JSON", '{"base_url":"http://h"}'),
    ],
)
def test_everything_else_stays(name: str, value: str) -> None:
    assert one(name, value) == value


def test_a_document_keeps_its_spelling() -> None:
    value = (
        '{ "provider" : {"f":{"options":{"baseURL":"http://h:9/v1","n":1.0}}},"u":"http://h:9/v1x"}'
    )
    expected = value.replace('"http://h:9/v1"', f'"{routed("http://h:9/v1")}"')
    assert one("OPENCODE_CONFIG_CONTENT", value) == expected
    escaped = '{"base_url":"http:\\/\\/h:9\\/v1"}'
    assert json.loads(one("CODEX_CONFIG", escaped)) == {"base_url": routed("http://h:9/v1")}


def test_codex_s_gateway_is_found_in_its_auth_request() -> None:
    value = json.dumps(
        {"methodId": "gateway", "_meta": {"gateway": {"baseUrl": "http://127.0.0.1:18080/v1"}}}
    )
    found = json.loads(one("DEFAULT_AUTH_REQUEST", value))
    assert found["_meta"]["gateway"]["baseUrl"] == routed("http://127.0.0.1:18080/v1")


INTERCEPT = "http://127.0.0.1:9000/v1"
HERE = routed(INTERCEPT)


@pytest.mark.parametrize("intercept", [INTERCEPT, INTERCEPT + "/"])
@pytest.mark.parametrize(
    "text, expected",
    [
        (INTERCEPT, HERE),
        (f"{INTERCEPT}/", f"{HERE}/"),
        (f"{INTERCEPT}/chat/completions?x=1", f"{HERE}/chat/completions?x=1"),
        (f"--url={INTERCEPT},{INTERCEPT}", f"--url={HERE},{HERE}"),
        (f'{{"a":["{INTERCEPT}"]}}', f'{{"a":["{HERE}"]}}'),
        ('{"a":"http:\\/\\/127.0.0.1:9000\\/v1"}', f'{{"a":"{HERE}"}}'),
        ("http://127.0.0.1:9000/v10", "http://127.0.0.1:9000/v10"),
        ("http://127.0.0.1:9000/v1.1", "http://127.0.0.1:9000/v1.1"),
        ("http://127.0.0.1:9000", "http://127.0.0.1:9000"),
        ("nothing", "nothing"),
    ],
)
def test_the_intercept_url_is_replaced_wherever_it_stands(intercept, text, expected) -> None:
    env, argv = rewrite({"ANY": text, "OPENAI_BASE_URL": text}, ["x", text], intercept, routed)
    assert argv == ["x", expected]
    assert env["ANY"] == expected
    if text.startswith(INTERCEPT) and expected != text:
        assert env["OPENAI_BASE_URL"] == expected


def test_a_port_is_not_taken_for_a_longer_one() -> None:
    assert one("ANY", "http://h:90001/x", "http://h:9000") == "http://h:90001/x"
    assert one("ANY", "http://h:9000/x", "http://h") == "http://h:9000/x"


def test_each_url_is_routed_once_and_none_is_made_up() -> None:
    asked: list[str] = []

    def route(url: str) -> str:
        asked.append(url)
        return "http://proxy"

    env = {"OPENAI_BASE_URL": "http://h/v1", "ANTHROPIC_BASE_URL": "http://h/v1", "PATH": "/bin"}
    found, _ = rewrite(env, [], None, route)
    assert asked == ["http://h/v1"]
    assert found.keys() == env.keys()
    assert rewrite({}, [], None, route) == ({}, [])
    assert env["OPENAI_BASE_URL"] == "http://h/v1"


def test_an_intercept_that_is_no_url_replaces_nothing() -> None:
    assert rewrite({"A": "x"}, ["x"], "x", routed) == ({"A": "x"}, ["x"])
