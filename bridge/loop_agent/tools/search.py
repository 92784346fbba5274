"""The `search` tool: a regular expression over the files of a directory.

The work is done by `search_worker` in a process of its own, which is killed when it takes too long
or the turn is cancelled: some expressions never come to an end.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio

from bridge.io.family import Family
from bridge.io.process import spawn
from bridge.loop_agent.toolbox import (
    Json,
    Plan,
    Result,
    Spec,
    ToolError,
    string,
    system_string,
    text_block,
)
from bridge.loop_agent.tools import search_worker
from bridge.wire import codec

TIMEOUT = 20.0
_LOCATIONS = 50


class Search:
    """Paths are taken from `cwd`."""

    spec = Spec(
        name="search",
        description=(
            "Search the lines of text files for a regular expression (Python's syntax). Returns "
            f"path:line:text, at most {search_worker.MATCHES} lines. The directories of version "
            "control and node_modules are left out."
        ),
        parameters={
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "description": "The regular expression"},
                "path": {
                    "type": "string",
                    "description": "File or directory; the cwd if not given",
                },
                "glob": {"type": "string", "description": "Only files like this, such as *.py"},
            },
            "required": ["pattern"],
        },
        asks=True,
    )

    def __init__(self, cwd: str, family: Family, timeout: float = TIMEOUT) -> None:
        self._cwd = cwd
        self._family = family
        self._timeout = timeout

    def plan(self, arguments: Json) -> Plan:
        pattern = string(arguments, "pattern")
        glob = string(arguments, "glob", "")
        where = system_string(arguments, "path", ".")
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"The pattern is no regular expression: {error}.") from None
        root = os.path.normpath(os.path.join(self._cwd, where))
        if not os.path.exists(root):
            raise ToolError(f"{root} does not exist.")
        query = {"root": root, "pattern": pattern, "glob": glob}
        place = where if glob == "" else f"{where} ({glob})"
        return Plan(
            f"Search {place} for {pattern}",
            "search",
            lambda: self._run(query),
            locations=[{"path": root}],
        )

    async def _run(self, query: dict[str, str]) -> Result:
        worker = [sys.executable, "-I", "-S", search_worker.__file__, codec.encode(query).decode()]
        data = b""
        async with spawn(
            worker, env=dict(os.environ), cwd=self._cwd, stdin=False, family=self._family
        ) as process:
            try:
                with anyio.move_on_after(self._timeout) as scope:
                    while piece := await process.stdout.receive():
                        data += piece
                    status = await process.wait()
                if scope.cancelled_caught:
                    raise ToolError(
                        f"The search took over {self._timeout:g} s and was ended. "
                        "Use a simpler pattern, or give a path or a glob."
                    )
            finally:
                await process.stop(eof=0, term=0)
            if status.code != 0:  # pyright: ignore[reportPossiblyUnboundVariable]
                raise ToolError(f"The search failed: {process.stderr_tail().strip()[-500:]}")
        return self._result(codec.decode(data))

    def _result(self, answer: Any) -> Result:
        found: list[tuple[str, int, str]] = answer["matches"]
        cwd = Path(self._cwd)
        lines = [f"{_short(Path(path), cwd)}:{number}:{line}" for path, number, line in found]
        if not answer["complete"]:
            lines.append(f"[more than {len(found)} matches or files; narrow the search]")
        words = "\n".join(lines) or "No matches."
        # The client gets places, not paths only: an editor can follow along.
        places = [{"path": path, "line": number} for path, number, _ in found[:_LOCATIONS]]
        raw = {"matches": len(found), "complete": answer["complete"], "locations": places}
        return Result(words, [text_block(words)], raw)


def _short(path: Path, cwd: Path) -> str:
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
