"""The bash tool, with real shells."""

import os
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from bridge.io.family import Family
from bridge.loop_agent.toolbox import Result, ToolError
from bridge.loop_agent.tools.bash import HEAD, LONGEST_COMMAND, TAIL, Bash, Output
from tests.peers.processes import alive

pytestmark = pytest.mark.anyio


async def run(cwd: Path, command: str, **more: object) -> Result:
    bash = Bash(str(cwd), Family(), dict(os.environ))
    return await bash.plan({"command": command, **more}).run()


async def test_output_of_both_kinds_comes_in_order(tmp_path: Path) -> None:
    result = await run(tmp_path, "echo a; echo b >&2; echo c; pwd")
    assert result.content == f"a\nb\nc\n{tmp_path}\n"
    assert not result.failed


async def test_an_exit_code_is_told(tmp_path: Path) -> None:
    result = await run(tmp_path, "echo oops; exit 3")
    assert result.content == "oops\n[exit code 3]"
    assert result.failed
    assert result.raw["exitCode"] == 3


async def test_a_signal_is_told(tmp_path: Path) -> None:
    result = await run(tmp_path, "kill -9 $$")
    assert result.content == "[signal SIGKILL]"
    assert result.raw["signal"] == "SIGKILL"


async def test_silence_is_told_as_such(tmp_path: Path) -> None:
    assert (await run(tmp_path, "true")).content == "(no output)"


async def test_a_command_has_no_input(tmp_path: Path) -> None:
    assert (await run(tmp_path, "cat; echo end")).content == "end\n"


async def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    result = await run(tmp_path, "echo $$; sleep 600 & echo $!; sleep 600", timeout=0.3)
    first, second, ending = str(result.content).split("\n")
    assert ending == "[killed after 0.3 s]"
    assert result.raw["timedOut"] is True
    assert not alive(int(first))
    assert not alive(int(second))


async def test_what_runs_in_the_background_ends_with_the_call(tmp_path: Path) -> None:
    result = await run(tmp_path, "sleep 600 & echo $!; setsid sleep 600 & echo $!")
    first, second = str(result.content).split()
    assert not alive(int(first))
    assert not alive(int(second))


async def test_much_output_loses_its_middle(tmp_path: Path) -> None:
    result = await run(tmp_path, "echo begin; head -c 1000000 /dev/zero | tr '\\0' x; echo end")
    assert str(result.content).startswith("begin\nx")
    assert str(result.content).endswith("x\nend" if result.failed else "xend\n")
    assert "bytes left out" in str(result.content)
    assert len(str(result.content)) < HEAD + TAIL + 100
    assert result.raw["truncated"] is True


async def test_bytes_that_are_no_text_are_shown_as_replaced(tmp_path: Path) -> None:
    assert (await run(tmp_path, "printf 'a\\377b'")).content == "a\ufffdb"


async def test_a_cancelled_command_is_gone_when_the_cancel_is_through(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, tmp_path, f"sleep 600 & echo $$ $! > {pids}; wait")
        running = (await anyio.to_thread.run_sync(pids.read_text)).split()
        assert [alive(int(pid)) for pid in running] == [True, True]
        tasks.cancel_scope.cancel()
    assert [alive(int(pid)) for pid in running] == [False, False]


async def test_a_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    from bridge.errors import BridgeError

    with pytest.raises(BridgeError, match="does not exist"):
        await run(tmp_path / "gone", "true")


def test_arguments_it_cannot_take_are_refused(tmp_path: Path) -> None:
    bash = Bash(str(tmp_path), Family(), {})
    half = {"command": "echo \ud83d"}
    for arguments in ({}, {"command": "a\0b"}, half, {"command": "x", "timeout": "5"}):
        with pytest.raises(ToolError, match="Resend"):
            bash.plan(arguments)


async def test_a_command_is_as_long_as_the_system_takes_or_refused(tmp_path: Path) -> None:
    longest = LONGEST_COMMAND - 1 - len("# ")
    assert (await run(tmp_path, "# " + "é" * (longest // 2))).failed is False
    with pytest.raises(ToolError, match="Put the text into a file"):
        await run(tmp_path, "# " + "x" * (longest + 1))


@pytest.mark.parametrize("sizes", [[1], [HEAD], [HEAD + TAIL], [HEAD + TAIL + 1], [7] * 20_000])
def test_what_is_kept_and_what_is_left_out_add_up(sizes: list[int]) -> None:
    output, given = Output(), b""
    for number, size in enumerate(sizes):
        piece = bytes([97 + number % 26]) * size
        given += piece
        output.add(piece)
    text = output.text().encode()
    assert output.omitted == max(0, len(given) - HEAD - TAIL)
    if output.omitted:
        assert text.startswith(given[:HEAD])
        assert text.endswith(given[-TAIL:])
    else:
        assert text == given
