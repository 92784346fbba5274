"""The terminal service of an ACP client: `terminal/*`, with real processes.

Owns: the terminals of one session. Rules: a terminal lives in a task of the session's group until
it is released, so that leaving the group ends them all; its output is kept up to a limit, the last
of it; an exit is reported once the output before it is there. Called by `bridge.session.services`.
"""

import codecs
import os
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.abc

from bridge.agent.environment import agent_environment
from bridge.agent.files import absolute, decoded, known
from bridge.errors import BridgeError, RequestFailed
from bridge.io.process import Family, Process, spawn
from bridge.wire import jsonrpc
from protocol_schemas.services import CreateTerminal, TerminalReference

KEPT = 16 * 1024 * 1024
"""Bytes of output kept at most, whatever the agent's own limit."""
_TERM = 0.5
_LAST_OUTPUT = 0.25
_OVER = "the session is over: no terminal is made for it any more"
_SHELL_SYNTAX = frozenset(" \t\n|&;<>()$`\"'")


class Terminals:
    """Answers requests by method; each raises RequestFailed. `environment` is what commands
    inherit, `cwd` where they run unless told otherwise."""

    METHODS = frozenset(
        f"terminal/{name}" for name in ("create", "output", "wait_for_exit", "kill", "release")
    )

    def __init__(
        self,
        group: anyio.abc.TaskGroup,
        *,
        family: Family,
        environment: Mapping[str, str],
        cwd: str,
    ) -> None:
        self._group = group
        self._family = family
        self._environment = environment
        self._cwd = cwd
        self._terminals: dict[str, _Terminal] = {}
        self._count = 0
        self._over = False

    async def answer(self, method: str, params: Any) -> dict[str, Any]:
        """The result of a request for one of METHODS."""
        known(method, self.METHODS)
        if method == "terminal/create":
            return await self.create(params)
        ident = decoded(params, TerminalReference).terminal_id
        terminal = self._terminals.get(ident)
        if terminal is None:
            raise RequestFailed(
                jsonrpc.RESOURCE_NOT_FOUND,
                f"there is no terminal {ident!r}, or it was released",
                {"terminalId": ident},
            )
        match method:
            case "terminal/output":
                return terminal.output()
            case "terminal/wait_for_exit":
                return await terminal.wait()
            case "terminal/kill":
                await terminal.kill()
            case _:
                del self._terminals[ident]
                await terminal.release()
        return {}

    async def create(self, params: Any) -> dict[str, Any]:
        """`{command, args?, env?, cwd?, outputByteLimit?}` -> `{terminalId}`.

        No shell is involved but where `command` comes without args, is no file, and holds white
        space or other shell syntax: then it is a line for `sh -c`, as many agents send it.
        """
        wanted = decoded(params, CreateTerminal)
        if self._over:
            raise RequestFailed(jsonrpc.INTERNAL_ERROR, _OVER)
        if not wanted.command.strip():
            raise RequestFailed(jsonrpc.INVALID_PARAMS, "command is empty")
        explicit = {variable.name: variable.value for variable in wanted.env or ()}
        for name in explicit:
            if not name or "=" in name:
                raise RequestFailed(jsonrpc.INVALID_PARAMS, f"{name!r} cannot name a variable")
        cwd = self._cwd if wanted.cwd is None else absolute(wanted.cwd, "cwd")
        limit = KEPT if wanted.output_byte_limit is None else min(wanted.output_byte_limit, KEPT)
        terminal = _Terminal(limit)
        try:
            await self._group.start(
                terminal.run,
                _argv(wanted),
                agent_environment(self._environment, explicit),
                cwd,
                self._family,
            )
        except BridgeError as error:
            raise RequestFailed(jsonrpc.INTERNAL_ERROR, error.message) from None
        if self._over:
            # Since it was asked for: `release_all` did not know of it.
            await terminal.release()
            raise RequestFailed(jsonrpc.INTERNAL_ERROR, _OVER)
        self._count += 1
        ident = f"term_{self._count}"
        self._terminals[ident] = terminal
        return {"terminalId": ident}

    async def release_all(self) -> None:
        """Ends every terminal, for good: the session is over, and gets no more of them. Shielded,
        and within a few seconds."""
        self._over = True
        terminals = list(self._terminals.values())
        self._terminals.clear()
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                for terminal in terminals:
                    tasks.start_soon(terminal.release)


def _argv(wanted: CreateTerminal) -> list[str]:
    argv = [wanted.command, *(wanted.args or ())]
    if len(argv) == 1 and _SHELL_SYNTAX & set(argv[0]) and not os.path.isfile(argv[0]):
        return ["sh", "-c", argv[0]]
    return argv


def last_characters(data: bytes | bytearray, limit: int) -> bytes:
    """The last `limit` bytes of UTF-8, less what would be the rest of a character cut in two."""
    if len(data) <= limit:
        return bytes(data)
    start = len(data) - limit
    for _ in range(3):
        if start < len(data) and data[start] & 0xC0 == 0x80:
            start += 1
    return bytes(data[start:])


class _Terminal:
    """One command and what it wrote, stdout and stderr in order."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._truncated = False
        self._process: Process | None = None
        self._output_ended = anyio.Event()
        self._exited = anyio.Event()
        self._released = anyio.Event()
        self._gone = anyio.Event()

    async def run(
        self,
        argv: list[str],
        env: dict[str, str],
        cwd: str,
        family: Family,
        *,
        task_status: anyio.abc.TaskStatus[None],
    ) -> None:
        """The terminal's life, from the spawn (raises BridgeError) to its release."""
        try:
            async with (
                spawn(
                    argv, env=env, cwd=cwd, merge_stderr=True, stdin=False, family=family
                ) as process,
                anyio.create_task_group() as tasks,
            ):
                self._process = process
                tasks.start_soon(self._read, process)
                task_status.started()
                await process.wait()
                # A process it left in the background may hold the pipe open.
                with anyio.move_on_after(_LAST_OUTPUT):
                    await self._output_ended.wait()
                self._exited.set()
                await self._released.wait()
                await process.stop(eof=0, term=_TERM)
                tasks.cancel_scope.cancel()
        finally:
            self._exited.set()
            self._gone.set()

    async def _read(self, process: Process) -> None:
        while chunk := await process.stdout.receive():
            self._kept += chunk
            if len(self._kept) > 2 * self._limit + 4096:
                self._cut()
        self._output_ended.set()

    def _cut(self) -> None:
        if len(self._kept) > self._limit:
            self._kept = bytearray(last_characters(self._kept, self._limit))
            self._truncated = True

    def output(self) -> dict[str, Any]:
        """`{output, truncated, exitStatus}`; exitStatus is null while the command runs."""
        self._cut()
        # Half a character at the end may yet become a whole one.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(bytes(self._kept), final=self._exited.is_set())
        # What is no UTF-8 grows by being replaced.
        encoded = text.encode()
        if len(encoded) > self._limit:
            text = last_characters(encoded, self._limit).decode()
            self._truncated = True
        return {"output": text, "truncated": self._truncated, "exitStatus": self._status()}

    def _status(self) -> dict[str, Any] | None:
        status = None if self._process is None else self._process.status
        if status is None or not self._exited.is_set():
            return None
        return {"exitCode": status.code, "signal": status.signal}

    async def wait(self) -> dict[str, Any]:
        """`{exitCode, signal}`, one of them null."""
        await self._exited.wait()
        return self._status() or {"exitCode": None, "signal": None}

    async def kill(self) -> None:
        """Ends the command and all it started: TERM, and KILL after half a second. What it wrote
        stays."""
        if self._process is not None:
            await self._process.stop(eof=0, term=_TERM)
        await self._exited.wait()

    async def release(self) -> None:
        """As `kill`, for good."""
        self._released.set()
        await self.kill()
        await self._gone.wait()
