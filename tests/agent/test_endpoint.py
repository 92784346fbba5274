"""bridge.agent.endpoint: which model an agent is told of, and in which form."""

from typing import Any

import pytest

from bridge.agent.endpoint import NO_KEY, Endpoint, endpoint, wanted
from bridge.errors import BridgeError
from bridge.wire import codec
from protocol_schemas.host import ModelEndpoint
from protocol_schemas.profile import Profile, Wire, WireUse


def profile(*wires: str) -> Profile:
    values: dict[str, Any] = {"name": "x", "title": "X", "launch": {"command": ["x"]}}
    shapes = {wire: {"v1": wire in ("chat", "responses")} for wire in wires}
    return codec.convert(values | {"wires": shapes}, Profile)


ALL = profile("chat", "responses", "anthropic", "gemini")
WHOLE = ModelEndpoint(base_url="http://h/v1", name="m", api_key="k", wire="responses")
OPENAI = {"OPENAI_BASE_URL": "http://o/v1", "OPENAI_API_KEY": "ok", "OPENAI_MODEL": "om"}
ANTHROPIC = {
    "ANTHROPIC_BASE_URL": "http://a",
    "ANTHROPIC_API_KEY": "ak",
    "ANTHROPIC_MODEL": "am",
}


def test_what_the_host_says_wins():
    assert endpoint(ALL, WHOLE, OPENAI, "http://i") == Endpoint(
        "responses", "http://h/v1", "k", "m"
    )


def test_what_it_does_not_say_comes_from_the_environment_of_the_wire():
    assert endpoint(ALL, ModelEndpoint(), OPENAI) == Endpoint("chat", "http://o/v1", "ok", "om")
    given = ModelEndpoint(wire="anthropic", name="m")
    both = OPENAI | ANTHROPIC
    assert endpoint(ALL, given, both) == Endpoint("anthropic", "http://a", "ak", "m")


def test_the_wire_is_the_first_that_there_is_a_server_for():
    assert endpoint(ALL, ModelEndpoint(), ANTHROPIC).wire == "anthropic"
    gemini = {"GEMINI_API_KEY": "g", "GEMINI_MODEL": "gm"}
    public = "https://generativelanguage.googleapis.com"
    assert endpoint(ALL, ModelEndpoint(), gemini) == Endpoint("gemini", public, "g", "gm")
    assert endpoint(ALL, ModelEndpoint(), gemini | ANTHROPIC).wire == "anthropic"


def test_the_interception_server_stands_before_a_vendors_public_one():
    keyed = {"OPENAI_API_KEY": "ok", "OPENAI_MODEL": "om"}
    assert endpoint(ALL, ModelEndpoint(), keyed, "http://i:1").url == "http://i:1/v1"
    assert endpoint(ALL, ModelEndpoint(), keyed).url == "https://api.openai.com/v1"


def test_an_agent_gets_some_key_where_there_is_none():
    assert endpoint(ALL, ModelEndpoint(base_url="http://h", name="m"), {}).key == NO_KEY


@pytest.mark.parametrize(
    "given, words",
    [
        (ModelEndpoint(name="m"), "needs a model server: give config.model.base_url .*OPENAI_BASE"),
        (ModelEndpoint(base_url="http://h"), "needs a model's name: give config.model.name"),
        (ModelEndpoint(base_url="http://h", name="m", wire="gemini"), "'gemini'; it speaks chat"),
    ],
)
def test_what_is_missing_or_not_spoken_is_named(given: ModelEndpoint, words: str):
    with pytest.raises(BridgeError, match=words):
        endpoint(profile("chat", "responses"), given, {})


@pytest.mark.parametrize(
    "url, wire, v1, form",
    [
        ("http://h", "chat", True, "http://h/v1"),
        ("http://h/", "chat", True, "http://h/v1"),
        ("http://h/v1", "chat", True, "http://h/v1"),
        ("http://h/v1/", "responses", True, "http://h/v1"),
        ("http://h/openai/x", "chat", True, "http://h/openai/x"),
        ("http://h", "anthropic", False, "http://h"),
        ("http://h/v1", "anthropic", False, "http://h"),
        ("http://h/vendor/v1/", "anthropic", False, "http://h/vendor"),
        ("http://h/vendor", "anthropic", True, "http://h/vendor/v1"),
        ("http://h/v1", "anthropic", True, "http://h/v1"),
        ("http://h", "gemini", False, "http://h"),
    ],
)
def test_the_url_has_the_form_that_the_agent_wants(url: str, wire: Wire, v1: bool, form: str):
    assert wanted(url, wire, WireUse(v1=v1)) == form
