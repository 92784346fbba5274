"""The frame around the commands: help, versions, exit codes and errors of one line."""

import argparse
import subprocess
import sys
from types import ModuleType

import pytest

from bridge import __version__
from bridge.cli import frame
from bridge.errors import BridgeError, UsageError
from tests.peers.host import DAEMON


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A command `probe` whose `run` a test sets."""
    module = ModuleType("bridge.cli.probe")
    module.add_arguments = lambda parser: parser.add_argument("--times", type=int, default=1)
    monkeypatch.setitem(frame.COMMANDS, "probe", "a command for this test")
    monkeypatch.setitem(sys.modules, "bridge.cli.probe", module)
    return module


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], *([name, "--help"] for name in frame.COMMANDS)):
        with pytest.raises(SystemExit) as ended:
            frame.run(arguments)
        assert ended.value.code == 0
        shown = capsys.readouterr()
        assert shown.out.startswith(f"usage: {' '.join(['acp-mcp-bridge', *arguments[:-1]])}")
        assert shown.err == ""
    with pytest.raises(SystemExit):
        frame.run(["--help"])
    listed = capsys.readouterr().out
    assert all(f"  {name} " in listed for name in frame.COMMANDS)
    assert "exit codes" in listed


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    for command in ("doctor --json", "--help"):
        with subprocess.Popen(
            [*DAEMON, *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.close()
            _, err = process.communicate(timeout=60)
        assert err == b""


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        frame.run(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"acp-mcp-bridge {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["streem"], "streem"),
        (["stream", "--nope"], "--nope"),
        (["--nope"], "--nope"),
        (["--loop", "twisted"], "twisted"),
        (["stream", "and-more"], "and-more"),
        (["once"], "CONFIG.json"),
    ],
)
def test_what_is_not_understood_is_named_on_stderr(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        frame.run(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


def test_an_unknown_command_is_answered_with_those_there_are() -> None:
    ended = subprocess.run([*DAEMON, "streem"], capture_output=True, text=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "streem" in ended.stderr
    assert all(name in ended.stderr for name in frame.COMMANDS)
    assert "Traceback" not in ended.stderr


def test_a_commands_exit_code_is_the_programs(probe: ModuleType) -> None:
    given: list[argparse.Namespace] = []
    probe.run = lambda options: given.append(options) or 3
    assert frame.run(["probe", "--times", "2"]) == 3
    assert given[0].times == 2


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (UsageError("no such file: x"), 2, "acp-mcp-bridge: no such file: x\n"),
        (BridgeError("the agent is gone"), 1, "acp-mcp-bridge: the agent is gone\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(
    probe: ModuleType,
    capsys: pytest.CaptureFixture[str],
    failure: BaseException,
    code: int,
    words: str,
) -> None:
    def fail(options: argparse.Namespace) -> int:
        raise failure

    probe.run = fail
    assert frame.run(["probe"]) == code
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", words)


def test_a_bug_is_not_dressed_up_as_a_failure(probe: ModuleType) -> None:
    def fail(options: argparse.Namespace) -> int:
        raise ZeroDivisionError

    probe.run = fail
    with pytest.raises(ZeroDivisionError):
        frame.run(["probe"])


def test_a_commands_module_is_loaded_only_when_it_is_called() -> None:
    script = (
        "import sys; from bridge.cli import frame\n"
        "try: frame.run(['--version'])\n"
        "except SystemExit: pass\n"
        "print([name for name in frame.COMMANDS if f'bridge.cli.{name}' in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "[]", ended.stderr
