"""Our own agent, daemon and client pass their suites; the command line tells what came of it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
PLANTED = Path(__file__).with_name("planted_agent.py")
NOT_OFFERED = {
    "agent.authenticate.ids",
    "agent.authenticate.terminal",
    "agent.authenticate.method",
    "agent.session.auth-required",
    "agent.prompt.audio",
    "agent.capabilities.honest",
    "agent.config.current",
    "agent.config.boolean",
    "agent.config.set",
    "agent.config.unknown",
}
"""What the embedded agent has no use for, beside version 2."""


def module(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A module of Python, run."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def conformance(*arguments: str) -> subprocess.CompletedProcess[str]:
    return module("conformance", *arguments)


def verdicts(run: subprocess.CompletedProcess[str], verdict: str) -> dict[str, str]:
    checks: list[dict[str, Any]] = json.loads(run.stdout)["checks"]
    return {check["id"]: check["words"] for check in checks if check["verdict"] == verdict}


def test_the_embedded_agent_conforms() -> None:
    found = module("tests.conformance.embedded", "--json")
    assert verdicts(found, "failed") == {}
    untried = {name for name in verdicts(found, "not tried") if ".v2." not in name}
    assert untried == NOT_OFFERED
    assert found.returncode == 0


def test_the_daemon_conforms() -> None:
    found = conformance("daemon", "--json", "--", BRIDGE, "stream")
    assert verdicts(found, "failed") == {}
    assert verdicts(found, "not tried") == {}
    assert found.returncode == 0


def test_the_daemon_as_a_client_conforms() -> None:
    driver = str(Path(__file__).with_name("daemon_client.py"))
    found = conformance("client", "--json", "--", sys.executable, driver)
    assert verdicts(found, "failed") == {}
    assert verdicts(found, "not tried").keys() == {"client.capabilities.refused"}
    assert found.returncode == 0


def planted(directory: Path, fault: str) -> list[str]:
    return ["--", sys.executable, "-I", "-S", str(PLANTED), str(directory), fault]


def test_a_broken_must_is_exit_code_3_and_shows_what_was_sent_and_received(tmp_path: Path) -> None:
    name = "rpc.unknown-method"
    run = conformance("agent", "--only", f"agent.{name}", *planted(tmp_path, name))
    assert run.returncode == 3
    assert "✗ agent.rpc.unknown-method\n" in run.stdout
    assert "MUST: A request for a method that does not exist gets the error -32601." in run.stdout
    assert '> {"jsonrpc":"2.0","id":2,"method":"conformance/none","params":{}}' in run.stdout
    assert "-32603" in run.stdout
    assert "1 MUST failed" in run.stdout.splitlines()[-1]


def test_a_broken_should_is_told_and_conforms_all_the_same(tmp_path: Path) -> None:
    name = "initialize.info"
    run = conformance("agent", "--only", f"agent.{name}", *planted(tmp_path, name))
    assert run.returncode == 0
    assert "✗ agent.initialize.info (should)" in run.stdout
    assert run.stdout.rstrip().endswith(": conforms")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["agent"], "no command"),
        (["agent", "--only", "nothing.like-it", "--", "true"], "no check is named"),
        (["nobody"], "invalid choice"),
        (["agent", "--cwd"], "expected one argument"),
    ],
)
def test_usage_is_exit_code_2(arguments: list[str], words: str) -> None:
    run = conformance(*arguments)
    assert run.returncode == 2
    assert words in run.stderr


@pytest.mark.parametrize("kind", ["agent", "client", "daemon"])
def test_a_command_that_cannot_be_started_is_exit_code_1(kind: str) -> None:
    run = conformance(kind, "--", "/no/such/command")
    assert run.returncode == 1
    assert run.stderr.startswith("conformance: cannot start '/no/such/command'")
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["agent", "client", "daemon"])
def test_a_command_that_does_nothing_passes_nothing(kind: str) -> None:
    run = conformance(kind, "--json", "--timeout", "5", "--", "true")
    assert run.returncode == 3, run.stderr
    assert verdicts(run, "passed") == {}


@pytest.mark.parametrize("kind", ["agent", "client", "daemon"])
def test_every_check_says_something_and_has_an_id_of_its_own(kind: str) -> None:
    run = conformance(kind, "--list")
    heads, sentences = run.stdout.splitlines()[::2], run.stdout.splitlines()[1::2]
    ids = [head.split()[0] for head in heads]
    assert len(ids) == len(set(ids)) == len(sentences)
    assert all(ident.startswith(f"{kind}.") for ident in ids)
    assert {head.split()[1] for head in heads} <= {"MUST", "SHOULD"}
    assert all(sentence.rstrip().endswith("]") for sentence in sentences)


def test_runs_become_a_table(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    files: list[str] = []
    for fault in ("-", "rpc.unknown-method"):
        run = conformance("agent", "--json", "--only", "agent.rpc.*", *planted(store, fault))
        file = tmp_path / f"agent{fault}.json"
        file.write_text(run.stdout)
        files.append(str(file))
    table = conformance("table", *files).stdout.splitlines()
    assert table[0] == "| check | | agent- | agentrpc.unknown-method |"
    assert "| `agent.rpc.unknown-method` | MUST | ✓ | ✗ |" in table
    assert any(line.startswith("- agentrpc.unknown-method, `agent.rpc.unk") for line in table)


def test_a_table_of_what_is_no_run_is_exit_code_1(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("{}")
    run = conformance("table", str(file))
    assert run.returncode == 1
    assert run.stderr.startswith("conformance: ")
