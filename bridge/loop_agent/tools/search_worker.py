"""The search itself, a program of its own: its argument is the query, stdout the answer, in JSON.

Rules: a regular expression can run for ever and holds the interpreter while it does, so it runs
where it can be killed; it starts fast (`python -I -S`) and imports only the standard library.
Every answer is bounded: matches, files, bytes a file, characters a line.
Started by `bridge.loop_agent.tools.search`.
"""

import fnmatch
import json
import os
import re
import sys
from collections.abc import Iterator

MATCHES = 200
FILES = 100_000
LARGEST = 2 << 20
LINE = 300
SKIPPED = {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"}


def files(root: str, glob: str) -> Iterator[str]:
    """The files below `root` (or root itself) whose name, or path from root, fits the glob."""
    if os.path.isfile(root):
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if (
                not glob
                or fnmatch.fnmatch(name, glob)
                or fnmatch.fnmatch(os.path.relpath(path, root), glob)
            ):
                yield path


def lines(path: str) -> list[str]:
    """A text file's lines; nothing for what is binary, too large or unreadable."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > LARGEST:
            return []
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return []
    return [] if b"\0" in data else data.decode(errors="replace").split("\n")


def search(root: str, pattern: str, glob: str) -> dict[str, object]:
    """`matches` as [path, line number, line], and `complete`: whether no bound was met."""
    expression = re.compile(pattern)
    matches: list[tuple[str, int, str]] = []
    for seen, path in enumerate(files(root, glob)):
        if seen >= FILES:
            return {"matches": matches, "complete": False}
        for number, line in enumerate(lines(path), 1):
            if expression.search(line):
                if len(matches) == MATCHES:
                    return {"matches": matches, "complete": False}
                matches.append((path, number, line.rstrip("\r")[:LINE]))
    return {"matches": matches, "complete": True}


if __name__ == "__main__":
    json.dump(search(**json.loads(sys.argv[1])), sys.stdout)
