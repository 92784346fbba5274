"""The `edit` tool: replace an exact string in a text file, or create a file.

Rules: a replacement must be unambiguous; the file changes whole or not at all (written beside,
then renamed over); its line ends and its mode stay. The client sees the whole change as a diff
before it is made.
"""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from bridge.loop_agent.toolbox import Json, Plan, Result, Spec, ToolError, plain, system_string

LARGEST = 1 << 20
GROWN = 16 << 20
"""Bytes of the files it edits, and of what replacing may make of them."""


class Edit:
    """Paths are taken from `cwd`."""

    spec = Spec(
        name="edit",
        description=(
            "Change a text file by replacing old_string, which must occur in it exactly once, with "
            "new_string. With an empty old_string, create the file with new_string as its content."
        ),
        parameters={
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, absolute or from the cwd"},
                "old_string": {"type": "string", "description": "The text to replace, exactly"},
                "new_string": {"type": "string", "description": "The text to put in its place"},
                "replace_all": {"type": "boolean", "description": "Replace every occurrence"},
            },
            "required": ["path", "old_string", "new_string"],
        },
        asks=True,
    )

    def __init__(self, cwd: str) -> None:
        self._cwd = Path(cwd)

    def plan(self, arguments: Json) -> Plan:
        name = system_string(arguments, "path")
        old, new = plain(arguments, "old_string"), plain(arguments, "new_string")
        everywhere = arguments.get("replace_all", False) is True
        path = Path(os.path.realpath(self._cwd / name))
        before, after = _changed(path, old, new, everywhere)
        diff = {"type": "diff", "path": str(path), "oldText": before, "newText": after}
        line = 1 if before is None else before[: before.find(old)].count("\n") + 1

        async def run() -> Result:
            # Another look: the file may have changed while permission was asked.
            if _changed(path, old, new, everywhere) != (before, after):
                raise ToolError(f"{path} has changed in the meantime. Read it again.")
            _write(path, after)
            words = f"Created {path}." if before is None else f"Edited {path}."
            return Result(words, [diff], {"path": str(path), "created": before is None})

        verb = "Create" if before is None else "Edit"
        where = [{"path": str(path), "line": line}]
        return Plan(f"{verb} {name}", "edit", run, locations=where, preview=[diff])


def _changed(path: Path, old: str, new: str, everywhere: bool) -> tuple[str | None, str]:
    """The file's text before (None if there is no file) and after; raises ToolError."""
    before = _read(path)
    if not old:
        if before:
            raise ToolError(f"{path} exists and is not empty. Give the text to replace.")
        return before, new
    if before is None:
        raise ToolError(f"{path} does not exist. To create it, give an empty old_string.")
    if "\r\n" in before and "\r" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = before.count(old)
    if count == 0:
        raise ToolError(f"old_string does not occur in {path}. Read the file and copy it exactly.")
    if count > 1 and not everywhere:
        raise ToolError(
            f"old_string occurs {count} times in {path}. Give more of the text around it, "
            "or set replace_all."
        )
    if len(before) + count * (len(new) - len(old)) > GROWN:
        raise ToolError(f"{path} would become over {GROWN} bytes. Nothing was changed.")
    if old == new:
        raise ToolError("old_string and new_string are the same. Nothing to do.")
    return before, before.replace(old, new)


def _read(path: Path) -> str | None:
    try:
        found = path.stat()
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            # Reading a pipe waits for a writer, reading a device may never end.
            raise ToolError(f"{path} is no regular file, and this tool edits no others.")
        if found.st_size > LARGEST:
            raise ToolError(f"{path} is over {LARGEST} bytes, more than this tool edits.")
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise ToolError(f"{path} is not a UTF-8 text file.") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from None


def _write(path: Path, text: str) -> None:
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=".edit-")
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode())
        if path.exists():
            shutil.copymode(path, temporary)
        else:
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise ToolError(f"{path} cannot be written: {error.strerror}.") from None


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current
