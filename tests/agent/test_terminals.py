"""bridge.agent.terminals: terminal/* with real processes on three loops."""

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.agent import terminals as module
from bridge.agent.terminals import Terminals, last_characters
from bridge.errors import RequestFailed
from bridge.io.process import Family
from tests.io.tree import until
from tests.peers.processes import MARKER, alive, marked


class Client:
    """What an agent would send."""

    def __init__(self, terminals: Terminals) -> None:
        self.terminals = terminals

    async def ask(self, name: str, **params: Any) -> Any:
        with anyio.fail_after(20):
            return await self.terminals.answer(f"terminal/{name}", {"sessionId": "s", **params})

    async def create(self, command: str, **params: Any) -> str:
        return (await self.ask("create", command=command, **params))["terminalId"]

    async def run(self, command: str, **params: Any) -> tuple[str, Any]:
        """The output and exit status of a command that ends."""
        ident = await self.create(command, **params)
        status = await self.ask("wait_for_exit", terminalId=ident)
        shown = await self.ask("output", terminalId=ident)
        assert shown["exitStatus"] == status
        return shown["output"], status

    async def refused(self, name: str, **params: Any) -> RequestFailed:
        with pytest.raises(RequestFailed) as caught:
            await self.ask(name, **params)
        return caught.value

    async def printed(self, ident: str, text: str) -> None:
        with anyio.fail_after(20):
            while text not in (await self.ask("output", terminalId=ident))["output"]:  # noqa: ASYNC110
                await anyio.sleep(0.005)


@asynccontextmanager
async def serving(mark: str, cwd: Path):
    async with anyio.create_task_group() as group:
        terminals = Terminals(
            group,
            family=Family(),
            environment={"PATH": os.environ["PATH"], MARKER: mark, "CLAUDECODE": "1"},
            cwd=str(cwd),
        )
        yield Client(terminals)
        await terminals.release_all()


OK = {"exitCode": 0, "signal": None}


@pytest.mark.anyio
async def test_a_command_runs_with_its_arguments_and_no_shell(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        assert await client.run("echo", args=["$HOME", "a b"]) == ("$HOME a b\n", OK)
        assert await client.run("pwd") == (f"{tmp_path}\n", OK)


@pytest.mark.anyio
@pytest.mark.parametrize("args", [None, []])
async def test_a_line_without_arguments_is_a_line_for_the_shell(args, mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        assert await client.run("echo one && exit 3", args=args) == (
            "one\n",
            {"exitCode": 3, "signal": None},
        )
        assert await client.run("echo two;pwd|wc -l", args=args) == ("two\n1\n", OK)


@pytest.mark.anyio
async def test_a_program_with_a_space_in_its_path_is_not_taken_for_a_line(mark, tmp_path):
    program = tmp_path / "my program"
    program.write_text("#!/bin/sh\necho mine\n")
    program.chmod(0o755)
    async with serving(mark, tmp_path) as client:
        assert await client.run(str(program)) == ("mine\n", OK)


@pytest.mark.anyio
async def test_environment_and_directory_are_the_ones_asked_for(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        (tmp_path / "below").mkdir()
        output, _ = await client.run(
            "echo $A $B [$CLAUDECODE]; pwd",
            env=[{"name": "A", "value": "1"}, {"name": "B", "value": "x y"}],
            cwd=str(tmp_path / "below"),
        )
        assert output == f"1 x y []\n{tmp_path / 'below'}\n"


@pytest.mark.anyio
async def test_stdout_and_stderr_come_in_order(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        output, _ = await client.run("for i in 1 2 3; do echo o$i; echo e$i >&2; done")
        assert output == "o1\ne1\no2\ne2\no3\ne3\n"


@pytest.mark.anyio
async def test_a_command_that_reads_gets_the_end_of_file(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        assert await client.run("cat") == ("", OK)


@pytest.mark.anyio
async def test_output_shows_what_there_is_while_the_command_runs(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        ident = await client.create("printf 'so far \\303'; exec sleep 1000")
        await client.printed(ident, "so far ")
        shown = await client.ask("output", terminalId=ident)
        # The half character is held back.
        assert shown == {"output": "so far ", "truncated": False, "exitStatus": None}


@pytest.mark.anyio
async def test_all_output_is_there_once_the_exit_is_reported(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        output, status = await client.run("head -c 3000000 /dev/zero | tr '\\0' x; sleep 1000 &")
        assert (len(output), status) == (3_000_000, OK)


@pytest.mark.anyio
async def test_output_beyond_the_limit_loses_its_beginning_at_a_character(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        command = "i=0; while [ $i -lt 5000 ]; do printf '€%04d' $i; i=$((i+1)); done"
        ident = await client.create(command, outputByteLimit=20)
        await client.ask("wait_for_exit", terminalId=ident)
        shown = await client.ask("output", terminalId=ident)
        assert shown == {"output": "4997€4998€4999", "truncated": True, "exitStatus": OK}
        assert len(shown["output"].encode()) <= 20


@pytest.mark.anyio
@pytest.mark.parametrize("limit, output", [(0, ""), (1, "c"), (3, "abc"), (None, "abc")])
async def test_limits_at_the_edge(limit, output, mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        ident = await client.create("printf abc", outputByteLimit=limit)
        await client.ask("wait_for_exit", terminalId=ident)
        shown = await client.ask("output", terminalId=ident)
        assert (shown["output"], shown["truncated"]) == (output, output != "abc")


@pytest.mark.anyio
async def test_output_that_is_no_text_stays_within_the_limit_too(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        ident = await client.create("head -c 100 /dev/zero | tr '\\0' '\\377'", outputByteLimit=50)
        await client.ask("wait_for_exit", terminalId=ident)
        shown = await client.ask("output", terminalId=ident)
        assert shown["output"] == "\ufffd" * 16
        assert shown["truncated"] is True


@pytest.mark.anyio
async def test_without_a_limit_memory_is_bounded_all_the_same(mark, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 1000)
    async with serving(mark, tmp_path) as client:
        for limit in (None, 10**18):
            ident = await client.create("seq 100000", outputByteLimit=limit)
            await client.ask("wait_for_exit", terminalId=ident)
            shown = await client.ask("output", terminalId=ident)
            assert (len(shown["output"]), shown["truncated"]) == (1000, True)
            assert shown["output"].endswith("99999\n100000\n")


@pytest.mark.anyio
async def test_a_killed_terminal_stays_valid(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        ident = await client.create("echo started; sleep 1000 & sleep 1000")
        await client.printed(ident, "started")
        assert await client.ask("kill", terminalId=ident) == {}
        status = {"exitCode": None, "signal": "SIGTERM"}
        assert await client.ask("wait_for_exit", terminalId=ident) == status
        shown = await client.ask("output", terminalId=ident)
        assert shown == {"output": "started\n", "truncated": False, "exitStatus": status}
        assert await client.ask("kill", terminalId=ident) == {}
        assert await client.ask("release", terminalId=ident) == {}
        assert marked(mark) == []


@pytest.mark.anyio
async def test_one_that_ignores_the_term_is_killed(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        ident = await client.create("trap '' TERM; echo up; while :; do sleep 0.01; done")
        await client.printed(ident, "up")
        await client.ask("kill", terminalId=ident)
        assert (await client.ask("wait_for_exit", terminalId=ident))["signal"] == "SIGKILL"


@pytest.mark.anyio
async def test_release_ends_the_command_and_forgets_the_terminal(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        ident = await client.create("setsid sleep 1000 & echo $$; exec sleep 1000")
        await client.printed(ident, "\n")
        async with anyio.create_task_group() as tasks:
            statuses: list[Any] = []

            async def wait() -> None:
                statuses.append(await client.ask("wait_for_exit", terminalId=ident))

            tasks.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert await client.ask("release", terminalId=ident) == {}
        assert statuses == [{"exitCode": None, "signal": "SIGTERM"}]
        assert marked(mark) == []
        for name in ("output", "wait_for_exit", "kill", "release"):
            error = await client.refused(name, terminalId=ident)
            assert (error.code, ident in error.message) == (-32002, True)


@pytest.mark.anyio
async def test_an_unknown_terminal_is_an_error_that_names_it(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        error = await client.refused("output", terminalId="term_7")
        assert (error.code, "'term_7'" in error.message) == (-32002, True)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "params, code, words",
    [
        ({"command": ""}, -32602, "command is empty"),
        ({"command": " \n"}, -32602, "command is empty"),
        ({}, -32602, "`command`"),
        ({"command": "true", "cwd": "relative"}, -32602, "cwd must be absolute"),
        ({"command": "true", "args": "no list"}, -32602, "$.args"),
        ({"command": "true", "env": [{"name": "A"}]}, -32602, "`value`"),
        ({"command": "true", "env": [{"name": "A=B", "value": ""}]}, -32602, "'A=B'"),
        ({"command": "true", "env": [{"name": "", "value": ""}]}, -32602, "''"),
        ({"command": "true", "outputByteLimit": -1}, -32602, "$.outputByteLimit"),
        ({"command": "no-such-command"}, -32603, "no such command on PATH"),
        ({"command": "true", "cwd": "/no/such/place"}, -32603, "'/no/such/place'"),
        ({"command": "true", "args": ["a\0b"]}, -32603, "NUL"),
    ],
)
async def test_what_cannot_be_run_is_an_error_and_leaves_no_terminal(
    params, code, words, mark, tmp_path
):
    async with serving(mark, tmp_path) as client:
        error = await client.refused("create", **params)
        assert error.code == code
        assert words in error.message
        assert await client.create("true") == "term_1"


@pytest.mark.anyio
async def test_the_end_of_the_session_releases_all(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        for _ in range(3):
            await client.create("trap '' TERM; setsid sleep 1000 & sleep 1000")
        await until(lambda: len(marked(mark)) >= 6)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await client.terminals.release_all()
        assert marked(mark) == []


@pytest.mark.anyio
async def test_a_terminal_on_its_way_when_the_session_ends_is_not_left(mark, tmp_path):
    refusals = []
    async with serving(mark, tmp_path) as client:

        async def create():
            refusals.append(await client.refused("create", command="sleep 1000"))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(create)
            await anyio.lowlevel.checkpoint()
            await client.terminals.release_all()
        assert marked(mark) == []
        await create()
    assert {error.code for error in refusals} == {-32603}
    assert all("the session is over" in error.message for error in refusals)


@pytest.mark.anyio
async def test_a_method_that_there_is_not_is_refused_and_ends_nothing(mark, tmp_path):
    async with serving(mark, tmp_path) as client:
        ident = await client.create("echo there; exec sleep 1000")
        error = await client.refused("resize", terminalId=ident, columns=80)
        assert (error.code, error.message) == (-32601, "method not found: terminal/resize")
        await client.printed(ident, "there")


@pytest.mark.anyio
async def test_a_group_that_is_cancelled_leaves_no_process(mark, tmp_path):
    async with anyio.create_task_group() as group:
        terminals = Terminals(
            group,
            family=Family(),
            environment={"PATH": os.environ["PATH"], MARKER: mark},
            cwd=str(tmp_path),
        )
        client = Client(terminals)
        ident = await client.create("echo $$; exec sleep 1000")
        await client.printed(ident, "\n")
        pid = int((await client.ask("output", terminalId=ident))["output"])
        assert alive(pid)
        group.cancel_scope.cancel()
    assert not alive(pid)


@given(st.text(), st.integers(0, 40))
def test_the_cut_is_the_longest_end_of_whole_characters(text: str, limit: int):
    text = "".join(c for c in text if not "\ud800" <= c <= "\udfff")
    data = text.encode()
    kept = last_characters(data, limit)
    assert data.endswith(kept)
    assert len(kept) <= limit
    assert kept.decode() == text[len(text) - len(kept.decode()) :]
    assert len(kept) == len(data) or len(kept) > limit - 4
