"""Settings: command line over environment over file over defaults."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bridge.config import PREFIX, Settings, backend, load, misspelt
from bridge.errors import UsageError
from protocol_schemas.host import Config


def test_without_anything_the_defaults_hold() -> None:
    assert load({}, {}) == Settings()
    assert Settings().model_proxy == Settings().mcp_proxy == "auto"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.json", '{"loop": "trio", "log_level": "info"}'), ("a.toml", 'loop = "trio"')],
)
def test_each_place_wins_over_the_next(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert load({"config": str(file)}, {}).loop == "trio"
    assert load({}, {"BRIDGE_CONFIG": str(file)}).loop == "trio"
    assert load({}, {"BRIDGE_CONFIG": str(file), "BRIDGE_LOOP": "uvloop"}).loop == "uvloop"
    options = {"config": str(file), "loop": "asyncio"}
    assert load(options, {"BRIDGE_LOOP": "uvloop"}).loop == "asyncio"


@pytest.mark.parametrize(
    ("variable", "value", "name", "expected"),
    [
        ("BRIDGE_RECORD", "x.trace", "record", "x.trace"),
        ("BRIDGE_RECORD_SECRETS", "1", "record_secrets", True),
        ("BRIDGE_RECORD_SECRETS", "Yes", "record_secrets", True),
        ("BRIDGE_RECORD_SECRETS", "no", "record_secrets", False),
        ("BRIDGE_INTERCEPT", "http://127.0.0.1:1", "intercept", "http://127.0.0.1:1"),
        ("BRIDGE_MODEL_PROXY", "off", "model_proxy", "off"),
        ("BRIDGE_MCP_PROXY", "off", "mcp_proxy", "off"),
        ("BRIDGE_LOOP", "", "loop", "auto"),
        ("BRIDGE_AGENT", "pi", "agent", "pi"),
    ],
)
def test_every_option_has_a_variable(variable: str, value: str, name: str, expected: Any) -> None:
    assert getattr(load({}, {variable: value}), name) == expected


def test_variables_that_are_nearly_settings_are_found() -> None:
    given = ["BRIDGE_LOG_LEVL", "BRIDGE_LOOP", "BRIDGE_AGENTS_DIR", "BRIDGE_X", "RECORD", "PATH"]
    hint = "; did you mean 'BRIDGE_LOG_LEVEL'?"
    assert misspelt(dict.fromkeys(given, "x")) == {"BRIDGE_LOG_LEVL": hint}


def test_an_agent_is_a_default_for_sessions_beside_the_others(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"agent": "codex", "defaults": {"turn_timeout": 5}}))
    settings = load({"config": str(file)}, {"BRIDGE_AGENT": "pi"})
    assert settings.defaults == {"turn_timeout": 5, "agent": "pi"}


def test_defaults_for_sessions_come_from_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"defaults": {"turn_timeout": 5}}))
    assert load({"config": str(file)}, {}).defaults == {"turn_timeout": 5}
    assert load({}, {"BRIDGE_DEFAULTS": "x"}).defaults == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "not a JSON object"),
        ("{nope", "a.json: "),
        ('{"loop": "twisted"}', "a.json: loop: 'twisted' is none of auto, asyncio, uvloop, trio"),
        ('{"record": 1}', "a.json: record: Expected"),
        ('{"recrod": "x"}', "a.json: there is no setting 'recrod'; did you mean 'record'?"),
        ('{"zzz": 1}', "there is no setting 'zzz'; there are loop, log_level, "),
        ('{"defaults": 1}', "a.json: defaults: Expected `object`"),
        ('{"defaults": {"comand": []}}', "defaults: a config has no key 'comand'; did you mean"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(text)
    for options, environment, name in (
        ({"config": str(file)}, {}, "--config"),
        ({}, {"BRIDGE_CONFIG": str(file)}, "BRIDGE_CONFIG"),
    ):
        with pytest.raises(UsageError) as error:
            load(options, environment)
        assert str(error.value).startswith(f"{name} {file}: ")
        assert words in str(error.value)


def test_a_missing_file_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "missing.toml"
    with pytest.raises(UsageError) as error:
        load({"config": str(file)}, {})
    assert str(error.value) == f"--config {file}: No such file or directory"


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("BRIDGE_LOOP", "twisted", "'twisted' is none of auto, asyncio, uvloop, trio"),
        ("BRIDGE_MCP_PROXY", "on", "'on' is none of auto, off"),
        ("BRIDGE_RECORD_SECRETS", "maybe", "'maybe' is neither 1 nor 0"),
    ],
)
def test_a_wrong_variable_is_named_with_what_there_is(
    tmp_path: Path, variable: str, value: str, words: str
) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"log_level": "info"}')
    with pytest.raises(UsageError) as error:
        load({"config": str(file)}, {variable: value})
    assert str(error.value) == f"{variable}: {words}"


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("trio", {"backend": "trio"}),
        ("asyncio", {"backend": "asyncio", "backend_options": {"use_uvloop": False}}),
        ("uvloop", {"backend": "asyncio", "backend_options": {"use_uvloop": True}}),
        ("auto", {"backend": "asyncio", "backend_options": {"use_uvloop": True}}),
    ],
)
def test_a_loop_is_named_as_anyio_wants_it(loop: str, expected: dict[str, Any]) -> None:
    assert backend(loop) == expected


PAGE = (Path(__file__).parents[1] / "docs/configuration.md").read_text()


def first_cells(heading: str) -> list[list[str]]:
    """The names in backquotes in the first cells of a section's tables, a list a row."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [re.findall(r"`([a-z_]+)`", row) for row in rows]


def test_the_page_has_each_setting_with_its_option_and_its_variable() -> None:
    names = [name for row in first_cells("The daemon's settings") for name in row]
    assert names == list(Settings.__struct_fields__)
    for name in set(names) - {"defaults"}:
        row = f"| `{name}` | `--{name.replace('_', '-')}` | `{PREFIX}{name.upper()}` |"
        assert row in PAGE


def test_the_page_has_each_key_of_a_config_and_no_other() -> None:
    names = [name for row in first_cells("A session's config") for name in row]
    assert set(names) == set(Config.__struct_fields__)
