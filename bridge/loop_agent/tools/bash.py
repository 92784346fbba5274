"""The `bash` tool: one command in a shell, with a time limit and bounded output.

Rules: a call leaves nothing running, whether it ends, times out or is cancelled: what the command
put into the background ends with it. Its input is empty; the model's own key is not in its
environment. Output beyond the bound loses its middle, since errors stand at the end.
"""

import shutil
from collections.abc import Mapping
from typing import Any

import anyio

from bridge.io.exits import ExitStatus
from bridge.io.family import Family
from bridge.io.process import Process, spawn
from bridge.loop_agent.toolbox import (
    Json,
    Plan,
    Result,
    Spec,
    ToolError,
    number,
    system_string,
    text_block,
)

TIMEOUT = 120.0
LONGEST = 3600.0
LONGEST_COMMAND = 128 * 1024
"""Bytes: Linux takes no longer argument (execve(2), MAX_ARG_STRLEN)."""
_GRACE = 0.5
HEAD, TAIL = 16 * 1024, 48 * 1024
"""Bytes kept of an output's beginning and end."""


class Bash:
    """Commands run in `cwd`; all their processes are of `family`."""

    spec = Spec(
        name="bash",
        description=(
            "Run a command in a shell and return its output (stdout and stderr together) and exit "
            "code. Every call is a new shell in the working directory, without input. Background "
            "processes end with the call. Of output over "
            f"{(HEAD + TAIL) // 1024} KiB the middle is left out."
        ),
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The command line"},
                "timeout": {
                    "type": "number",
                    "description": f"Seconds until it is killed; {TIMEOUT:.0f} if not given",
                },
            },
            "required": ["command"],
        },
        asks=True,
    )

    def __init__(self, cwd: str, family: Family, environment: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._family = family
        self._shell = shutil.which("bash", path=environment.get("PATH")) or "/bin/sh"
        self._environment = {**environment, "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"}
        self._environment.pop("OPENAI_API_KEY", None)

    def plan(self, arguments: Json) -> Plan:
        command = system_string(arguments, "command")
        timeout = number(arguments, "timeout", TIMEOUT, LONGEST)
        if not command.strip():
            raise ToolError("The command is empty. Resend the call with one.")
        if len(command.encode()) >= LONGEST_COMMAND:
            raise ToolError(
                f"The command is over {LONGEST_COMMAND} bytes, more than a command line holds. "
                "Nothing was run. Put the text into a file in several calls, and run that."
            )
        title = command if len(command) <= 200 else command[:199] + "…"
        return Plan(title, "execute", lambda: self._run(command, timeout))

    async def _run(self, command: str, timeout: float) -> Result:
        output = Output()
        status: ExitStatus | None = None
        async with (
            spawn(
                [self._shell, "-c", command],
                env=self._environment,
                cwd=self._cwd,
                merge_stderr=True,
                stdin=False,
                family=self._family,
            ) as process,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_collect, process, output)
            try:
                with anyio.move_on_after(timeout):
                    status = await process.wait()
            finally:
                # Also ends what holds the output open, so that the collector comes to its end.
                await process.stop(eof=0, term=_GRACE)
        return _result(output, status, timeout)


async def _collect(process: Process, output: "Output") -> None:
    while data := await process.stdout.receive():
        output.add(data)


def _result(output: "Output", status: ExitStatus | None, timeout: float) -> Result:
    text = output.text()
    if status is None:
        ending = f"killed after {timeout:g} s"
    elif status.code == 0:
        ending = ""
    else:
        ending = str(status)
    words = text or ("" if ending else "(no output)")
    if ending:
        words = f"{words.rstrip()}\n[{ending}]".lstrip()
    raw: dict[str, Any] = {
        "exitCode": None if status is None else status.code,
        "signal": None if status is None else status.signal,
        "timedOut": status is None,
        "truncated": output.omitted > 0,
        "output": text,
    }
    return Result(words, [text_block(words)], raw, failed=bool(ending))


class Output:
    """Bytes of any amount; keeps the first HEAD and the last TAIL of them."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room < len(data) else b""
        if len(self._tail) > 2 * TAIL:
            self._trim()

    def _trim(self) -> None:
        over = len(self._tail) - TAIL
        if over > 0:
            del self._tail[:over]
            self._dropped += over

    @property
    def omitted(self) -> int:
        """Bytes that are not in `text`."""
        self._trim()
        return self._dropped

    def text(self) -> str:
        """What was kept, as UTF-8; cut characters become U+FFFD."""
        if not self.omitted:
            return (self._head + self._tail).decode(errors="replace")
        gap = f"\n[... {self.omitted} bytes left out ...]\n"
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")
