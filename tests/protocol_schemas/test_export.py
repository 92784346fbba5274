"""The exported JSON Schemas are current, valid, and say what the decoders say."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bridge.wire import codec
from protocol_schemas import export
from protocol_schemas.host import Config


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(export, "FOLDER", tmp_path)
    return tmp_path


def test_the_files_are_current() -> None:
    assert export.main(["--check"]) == 0


@pytest.mark.parametrize("path", sorted(export.FOLDER.glob("*.json")), ids=lambda path: path.name)
def test_each_is_a_json_schema(path: Path) -> None:
    document = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    for name in document["$defs"]:
        jsonschema.Draft202012Validator.check_schema(document["$defs"][name])


def test_a_stale_file_is_found_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export.main([]) == 0
    assert export.main(["--check"]) == 0
    (folder / "host.json").write_text("{}\n")
    (folder / "gone.json").write_text("{}\n")
    assert export.main(["--check"]) == 3
    said = capsys.readouterr().err
    assert "host.json is not current" in said
    assert "gone.json is not current" in said


@pytest.mark.parametrize(
    ("config", "valid"),
    [
        (
            {"command": ["node", "agent.js"], "user_contents": ["hi", [{"type": "text"}], None]},
            True,
        ),
        ({"messages": [{"role": "user", "content": "hi"}], "mcp_urls": {}}, True),
        ({"permission": "ask", "client_services": ["fs"], "turn_timeout": 1.5}, True),
        ({"a key of tomorrow": 1}, True),
        ({"command": "node agent.js"}, False),
        ({"permission": "maybe"}, False),
        ({"client_services": ["mail"]}, False),
        ({"turn_timeout": "soon"}, False),
    ],
)
def test_schema_and_decoder_agree_on_a_config(config: dict[str, Any], valid: bool) -> None:
    document = json.loads((export.FOLDER / "host.json").read_text())
    schema = document | {"$ref": "#/$defs/Config"}
    assert jsonschema.Draft202012Validator(schema).is_valid(config) is valid
    try:
        codec.convert(config, Config)
    except codec.JSONError:
        assert not valid
    else:
        assert valid
