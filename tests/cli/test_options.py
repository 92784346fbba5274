"""Options that commands share: their names, and that they say nothing where they are not given."""

import argparse

import pytest

from bridge.cli import options
from bridge.config import PREFIX, Settings
from bridge.errors import UsageError


def daemon_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="daemon")
    options.add_daemon_options(parser)
    return parser


def test_what_is_not_given_is_left_to_the_environment_and_the_file() -> None:
    given = vars(daemon_parser().parse_args([]))
    assert set(given.values()) == {None}


def test_every_setting_but_the_sessions_defaults_has_its_option() -> None:
    names = set(vars(daemon_parser().parse_args([]))) - {"config"}
    assert names == set(Settings.__struct_fields__) - {"defaults"}


def test_what_is_given_arrives_under_the_settings_name() -> None:
    line = "--config f.toml --loop trio --record out --record-secrets --log-level debug"
    line += " --model-proxy off --mcp-proxy off --intercept http://127.0.0.1:1/v1 --agent pi"
    assert vars(daemon_parser().parse_args(line.split())) == {
        "agent": "pi",
        "config": "f.toml",
        "loop": "trio",
        "record": "out",
        "record_secrets": True,
        "log_level": "debug",
        "model_proxy": "off",
        "mcp_proxy": "off",
        "intercept": "http://127.0.0.1:1/v1",
    }


@pytest.mark.parametrize("name", ["loop", "log_level", "model_proxy", "mcp_proxy"])
def test_a_choice_that_there_is_none_is_refused_with_those_there_are(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    option = f"--{name.replace('_', '-')}"
    with pytest.raises(SystemExit) as ended:
        daemon_parser().parse_args([option, "purple"])
    assert ended.value.code == 2
    words = capsys.readouterr().err
    assert option in words
    assert "purple" in words
    choices = Settings.__annotations__[name].__args__
    assert all(choice in words for choice in choices)
    for choice in choices:
        assert getattr(daemon_parser().parse_args([option, choice]), name) == choice


def test_the_help_tells_of_the_variables() -> None:
    assert f"{PREFIX}LOG_LEVEL" in daemon_parser().format_help()


def test_recording_alone_can_be_had_by_other_commands() -> None:
    parser = argparse.ArgumentParser()
    options.add_record_options(parser)
    assert vars(parser.parse_args([])) == {"record": None, "record_secrets": None}


def test_a_relay_has_no_sessions_agent_and_changes_nothing_unasked() -> None:
    parser = argparse.ArgumentParser()
    options.add_relay_options(parser)
    given = vars(parser.parse_args([]))
    assert set(given) == set(vars(daemon_parser().parse_args([]))) - {"agent"}
    assert set(given.values()) == {None}
    assert "(off, whatever the environment says)" in " ".join(parser.format_help().split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:1", ("localhost", 1)),
    ],
)
def test_an_address_is_taken_apart(text: str, expected: tuple[str, int]) -> None:
    assert options.address(text) == expected


@pytest.mark.parametrize("text", ["", "80", ":80", "h:", "h:x", "h:99999", "h:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="HOST:PORT"):
        options.address(text)
