"""What `agents show` says: the recipe filled in as far as it can be, and no key anywhere."""

from pathlib import Path

import pytest

from bridge.agent.installed import READY, Ready, place
from bridge.agent.profile import parse
from bridge.agent.recipe import MASK, recipe, shown
from bridge.wire import codec
from protocol_schemas.profile import Profile

TEXT = """
name = "tiny"
title = "a tiny agent"
[install]
packages = { tiny = "1.0.0", tiny-acp = "0.1.0" }
node = "22.19"
[launch]
command = ["${bin}/tiny-acp", "--model", "${model.name}"]
[launch.environment]
TINY_URL = "${model.url}"
TINY_KEY = "Bearer ${model.key}"
[[files]]
path = "settings.json"
[files.json]
key = "${model.key}"
home = "${state}"
[session.meta]
session = "${session}"
[wires.chat]
"""
KEY = "sk-a-secret-of-the-user"


@pytest.fixture
def tiny() -> Profile:
    return parse(TEXT, "tiny.toml")


def test_what_only_a_session_knows_stands_as_its_placeholder(tiny: Profile, tmp_path: Path) -> None:
    fields = recipe(tiny, {"BRIDGE_AGENTS_DIR": str(tmp_path)}, "/work")
    assert fields["command"] == ["${bin}/tiny-acp", "--model", "${model.name}"]
    assert fields["environment"]["TINY_URL"] == "${model.url}"
    assert fields["meta"] == {"session": "${session}"}
    assert fields["installed"] is None
    text = "\n".join(shown(fields))
    assert text.startswith("tiny: a tiny agent\n")
    assert "no; acp-mcp-bridge agents install tiny" in text
    assert "22.19 or newer" in text


def test_what_is_known_is_filled_in_and_keys_are_masked(tiny: Profile, tmp_path: Path) -> None:
    where = {
        "BRIDGE_AGENTS_DIR": str(tmp_path),
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
        "OPENAI_API_KEY": KEY,
        "OPENAI_MODEL": "some-model",
    }
    prefix = place("tiny", {"tiny": "1.0.0", "tiny-acp": "0.1.0"}, where)
    prefix.mkdir(parents=True)
    said = Ready("tiny", {"tiny": "1.0.0", "tiny-acp": "0.1.0"})
    (prefix / READY).write_bytes(codec.encode(said))
    fields = recipe(tiny, where, "/work")
    assert fields["installed"] == str(prefix)
    assert fields["command"] == [f"{prefix}/node_modules/.bin/tiny-acp", "--model", "some-model"]
    assert fields["environment"] == {
        "TINY_URL": "http://127.0.0.1:1/v1",
        "TINY_KEY": f"Bearer {MASK}",
    }
    assert codec.decode(fields["files"]["settings.json"].encode()) == {
        "key": MASK,
        "home": "${state}",
    }
    text = codec.encode(fields).decode() + "\n".join(shown(fields))
    assert KEY not in text
    assert str(prefix) in text
