"""bridge.io.launch: starting a command, and saying why it did not start."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.errors import BridgeError
from bridge.io.launch import launch
from tests.io.tree import open_fds

ENV = {"PATH": os.environ["PATH"]}
ROOT = Path(__file__).parents[2]


def failure(argv: list[str], env: dict[str, str] = ENV, cwd: str | None = None) -> str:
    before = open_fds()
    with pytest.raises(BridgeError) as caught:
        launch(argv, env, cwd)
    assert (caught.value.code, caught.value.origin) == ("spawn_failed", "agent")
    assert open_fds() == before
    return caught.value.message


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "agent"
    path.write_text("#!/nonexistent/interpreter\n")
    path.chmod(0o755)
    return path


def test_a_child_s_pipes_are_ours_alone():
    launched = launch(["sh", "-c", "cat; echo end >&2"], ENV, None)
    assert launched.stdin is not None
    assert launched.stderr is not None
    os.write(launched.stdin, b"hello")
    os.close(launched.stdin)
    assert launched.child.wait(10) == 0
    assert os.read(launched.stdout, 100) == b"hello"
    assert os.read(launched.stdout, 100) == b""
    assert os.read(launched.stderr, 100) == b"end\n"
    os.close(launched.stdout)
    os.close(launched.stderr)


def test_a_command_that_is_nowhere_on_the_path_is_named():
    words = failure(["no-such-agent", "--acp"], {"PATH": "/one:/two"})
    assert words.startswith("cannot start 'no-such-agent': no such command on PATH (/one:/two)")
    assert "install it" in words
    assert "not set" in failure(["no-such-agent"], {})


def test_the_path_searched_is_the_child_s(tmp_path: Path, script: Path):
    script.write_text("#!/bin/sh\nexit 4\n")
    launched = launch(["agent"], {"PATH": str(tmp_path)}, None, stdin=False, merge_stderr=True)
    assert launched.child.wait(10) == 4
    os.close(launched.stdout)


def test_a_file_that_does_not_exist_is_named(tmp_path: Path):
    assert "there is no such file" in failure([str(tmp_path / "agent")])


def test_a_file_that_is_not_executable_is_told_from_a_missing_one(tmp_path: Path):
    (tmp_path / "agent.js").touch()
    assert "chmod +x" in failure([str(tmp_path / "agent.js")])
    (tmp_path / "agent").touch()
    assert "agent" in failure(["agent"], {"PATH": str(tmp_path)})


def test_a_directory_is_no_program(tmp_path: Path):
    assert "it is a directory" in failure([str(tmp_path)])


def test_a_missing_interpreter_is_told_from_a_missing_script(script: Path):
    assert "interpreter named in its first line" in failure([str(script)])
    assert "interpreter named in its first line" in failure(["agent"], {"PATH": str(script.parent)})


def test_a_file_that_is_no_program_is_said_to_be_none(tmp_path: Path):
    path = tmp_path / "agent"
    path.write_bytes(b"\x7fELF not really")
    path.chmod(0o755)
    assert "no program for this machine" in failure([str(path)])


def test_a_missing_working_directory_is_named_and_not_the_command(tmp_path: Path):
    words = failure(["true"], cwd=str(tmp_path / "gone"))
    assert f"the working directory '{tmp_path / 'gone'}' does not exist" in words
    (tmp_path / "file").touch()
    words = failure(["true"], cwd=str(tmp_path / "file"))
    assert f"the working directory '{tmp_path / 'file'}' is a file" in words


@pytest.mark.parametrize("argv", [[], [""]])
def test_an_empty_command_is_refused(argv):
    assert "command is empty" in failure(argv)


def test_text_that_no_program_can_be_given_is_refused():
    assert "argument 1 of the command must be text without NUL" in failure(["true", "a\0b"])
    assert "argument 0 of the command must be text" in failure(["tr\0ue"])
    assert "argument 2 of the command must be text" in failure(["true", "a", "\ud83d"])
    assert "argument 1 of the command must be text" in failure(["true", 7])  # type: ignore[list-item]
    assert "the working directory 'a\\x00b' must be text" in failure(["true"], cwd="a\0b")
    words = failure(["true"], {**ENV, "A": "CANARY\0b"})
    assert "the value of the environment variable 'A' must be text without NUL" in words
    assert "CANARY" not in words
    for name in ("A=B", "A\0", "\ud83d"):
        assert f"the environment variable {name!r}" in failure(["true"], {**ENV, name: "x"})


def test_arguments_that_are_too_large_together_are_said_to_be():
    assert "too large together" in failure(["true", *["x" * 100_000] * 100])


@pytest.mark.parametrize(
    "number, words", [(errno.EMFILE, "ulimit -n"), (errno.EAGAIN, "no room for another process")]
)
def test_a_machine_at_its_limits_is_told_from_a_wrong_command(number, words, monkeypatch):
    def refuse(*args: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert words in failure(["true"])


def test_running_out_of_descriptors_leaks_none(monkeypatch):
    real, made = os.pipe, 0

    def pipe() -> tuple[int, int]:
        nonlocal made
        made += 1
        if made == 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return real()

    monkeypatch.setattr(os, "pipe", pipe)
    assert "ulimit -n" in failure(["true"])


def test_a_host_that_ignores_the_end_of_children_does_not_hide_exit_codes():
    program = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "from bridge.io.launch import launch\n"
        "child = launch(['sh', '-c', 'exit 3'], {'PATH': '/bin:/usr/bin'}, None).child\n"
        "raise SystemExit(child.wait(10))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == 3
    assert signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN
