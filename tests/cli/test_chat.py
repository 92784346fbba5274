"""`agents run` against scripted agents: through pipes, and in a terminal of its own."""

import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.agent import AgentLog, scripted
from tests.peers.processes import MARKER, survivors, wait_until

BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
PATIENCE = 30
ASK = (
    'permission [{"optionId":"o1","name":"Yes","kind":"allow_once"},'
    '{"optionId":"o2","name":"Always","kind":"allow_always"},'
    '{"optionId":"o3","name":"No","kind":"reject_once"}] {"toolCallId":"t","title":"rm -r x"}'
)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Checks at the end that nothing is left running."""
    marker = str(tmp_path)
    log = {"SCRIPTED_LOG": str(tmp_path / "agent.ndjson")}
    yield {**os.environ, **log, MARKER: marker, "HOME": marker, "NO_COLOR": "1"}
    assert survivors(marker, 5) == []


def chat(
    environment: dict[str, str], text: str, *options: str, agent: tuple[str, ...] = ()
) -> "subprocess.CompletedProcess[str]":
    command = [BRIDGE, "agents", "run", *options, "--", *scripted(*agent)]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=PATIENCE, env=environment
    )


def test_each_line_of_a_pipe_is_a_prompt_and_stdout_has_the_replies_alone(
    environment: dict[str, str], tmp_path: Path
) -> None:
    ended = chat(environment, "say one\n\nsay two")
    assert (ended.returncode, ended.stdout) == (0, "one\ntwo\n")
    assert ended.stderr.startswith("scripted 1 is ready")
    log = AgentLog(tmp_path / "agent.ndjson")
    assert [prompt[0]["text"] for prompt in log.prompts()] == ["say one", "say two"]


def test_tool_calls_are_a_line_each(environment: dict[str, str]) -> None:
    call = '{"sessionUpdate":"tool_call","toolCallId":"t","title":"List files","status":"pending"}'
    failed = '{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed"}'
    ended = chat(environment, f"update {call}\nupdate {failed}\n")
    lines = ended.stderr.splitlines()
    silence = "the agent said nothing"
    assert lines[1:] == ["* List files", silence, "* List files: failed", silence]


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [("y", "o1"), ("a", "o2"), ("no", "o3"), ("what?\nyes", "o1"), ("", "o3")],
)
def test_a_permission_is_asked_for_and_the_next_line_answers(
    environment: dict[str, str], answer: str, outcome: str
) -> None:
    ended = chat(environment, f"{ASK}\n{answer}")
    assert "may it? rm -r x (yes, no, always): \n" in ended.stderr
    assert outcome in ended.stdout
    assert ended.returncode == 0


@pytest.mark.parametrize(("policy", "outcome"), [("allow", "o1"), ("deny", "o3")])
def test_a_policy_answers_without_asking(
    environment: dict[str, str], policy: str, outcome: str
) -> None:
    ended = chat(environment, ASK, "--permission", policy)
    assert "may it?" not in ended.stderr
    assert outcome in ended.stdout


def test_a_turn_that_ends_otherwise_is_told_and_is_the_exit_code(
    environment: dict[str, str],
) -> None:
    ended = chat(environment, "stop max_tokens\n")
    assert ended.returncode == 1
    assert "stopped: max_tokens" in ended.stderr
    ended = chat(environment, 'error {"code":-32000,"message":"no way"}\nsay but now\n')
    assert (ended.returncode, ended.stdout) == (0, "but now\n")
    assert "failed: " in ended.stderr
    assert "no way" in ended.stderr


def test_an_agent_that_dies_ends_the_chat_with_its_last_words(environment: dict[str, str]) -> None:
    ended = chat(environment, "stderr 30\nexit 3\nsay never\n")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-1].startswith("acp-mcp-bridge: ")
    assert "3" in ended.stderr.splitlines()[-1]


def profile(folder: Path, *agent: str) -> str:
    """A profile of one's own for the scripted agent; its path."""
    file = folder / "mine.toml"
    launch = (
        f"command = {json.dumps(scripted(*agent))}\nenvironment = {{ MODEL = '${{model.name}}' }}"
    )
    file.write_text(f"name = 'mine'\ntitle = 'mine'\n[launch]\n{launch}\n[wires.chat]\n")
    return str(file)


def test_an_agent_by_its_profile_is_asked_one_thing(
    environment: dict[str, str], tmp_path: Path
) -> None:
    model = ["--model-url", "http://127.0.0.1:9/v1", "--model", "some-model"]
    command = [BRIDGE, "agents", "run", profile(tmp_path), *model, "--", "env", "MODEL"]
    ended = subprocess.run(
        command,
        input="say never",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment,
    )
    assert ended.returncode == 0, ended.stderr
    assert "some-model" in ended.stdout
    assert "never" not in ended.stdout
    assert ended.stderr == ""


def test_what_an_agent_lacks_is_named_as_it_is_given_here(
    environment: dict[str, str], tmp_path: Path
) -> None:
    bare = {name: text for name, text in environment.items() if not name.startswith("OPENAI_")}
    command = [BRIDGE, "agents", "run", profile(tmp_path), "--", "hello"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=bare)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert "--model-url" in line
    assert "config." not in line


def test_an_agent_that_cannot_be_started_is_one_line(environment: dict[str, str]) -> None:
    command = [BRIDGE, "agents", "run", "--", "/no/such/agent"]
    ended = subprocess.run(
        command, input="", capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert "/no/such/agent" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name an agent, or give a command"),
        (["--"], "name an agent, or give a command"),
        (["--model", "m", "--", "cat"], "--model is for an agent with a profile"),
        (["nonsense", "--version", "1.0.0"], "no agent profile 'nonsense'"),
        (["pi", "--version", "latest"], "an exact one is needed"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    environment: dict[str, str], arguments: list[str], words: str
) -> None:
    command = [BRIDGE, "agents", "run", *arguments]
    ended = subprocess.run(
        command, input="", capture_output=True, text=True, timeout=PATIENCE, env=environment
    )
    assert ended.returncode == 2
    [line] = ended.stderr.splitlines()
    assert words in line


class Terminal:
    """A chat in a terminal: what is typed, and what is shown."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.fd, theirs = pty.openpty()
        self.log = AgentLog(Path(environment["SCRIPTED_LOG"]))
        self.shown = ""

        def control() -> None:
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [BRIDGE, "agents", "run", "--", *scripted()],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=environment,
            preexec_fn=control,
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def prompt(self, text: str) -> None:
        """Types a prompt; returns when the agent has it."""
        count = len(self.log.prompts())
        self.type(f"{text}\n")
        assert wait_until(lambda: len(self.log.prompts()) > count, PATIENCE)

    def until(self, pattern: str) -> str:
        """What was shown up to the pattern, since the last time."""
        while (match := re.search(pattern, self.shown)) is None:
            assert select.select([self.fd], [], [], PATIENCE)[0], self.shown
            data = os.read(self.fd, 4096)
            self.shown += data.decode().replace("\r\n", "\n")
        before, self.shown = self.shown[: match.end()], self.shown[match.end() :]
        return before


@pytest.fixture
def terminal(environment: dict[str, str]) -> Iterator[Terminal]:
    terminal = Terminal(environment)
    yield terminal
    terminal.process.kill()
    terminal.process.wait()
    os.close(terminal.fd)


def test_in_a_terminal_a_turn_is_cancelled_and_the_end_of_input_ends(terminal: Terminal) -> None:
    terminal.until("Ctrl-D ends\n> ")
    terminal.type("say hello\n")
    assert "\nhello\n> " in terminal.until("hello\n> ")
    terminal.prompt("wait cancel")
    terminal.type("\x03")
    terminal.until("stopped: cancelled\n> ")
    terminal.type(f"{ASK}\n")
    terminal.until("always\\): ")
    terminal.type("\x03")
    terminal.until("stopped: cancelled\n> ")
    terminal.type("say still here\n")
    terminal.until("still here\n> ")
    terminal.type("\x04")
    assert terminal.process.wait(PATIENCE) == 0


def test_a_second_interrupt_leaves(terminal: Terminal) -> None:
    terminal.until("Ctrl-D ends\n> ")
    terminal.prompt("hang")
    terminal.type("\x03")
    terminal.until("Ctrl-C again leaves\n")
    terminal.type("\x03")
    assert terminal.process.wait(PATIENCE) == 130


def test_an_interrupt_between_turns_leaves(terminal: Terminal) -> None:
    terminal.until("Ctrl-D ends\n> ")
    terminal.type("\x03")
    assert terminal.process.wait(PATIENCE) == 130
