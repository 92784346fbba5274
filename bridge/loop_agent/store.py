"""Sessions on disk: one append-only file each, `<id>.ndjson` in a directory.

Owns: the files. Rules: a line is written in one go at the end of the file, so whatever dies leaves
at most an unfinished last line, which the next reader drops; a session's id is checked before it
becomes a path. All calls are short and blocking but `page`, which belongs in a thread.
Used by `bridge.loop_agent.sessions`.
"""

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from bridge.errors import UsageError
from bridge.log import log
from bridge.loop_agent.failures import failed, invalid_params, session_not_found
from bridge.wire import codec
from protocol_schemas.session_file import FORMAT, AnyLine, Head, Title

PAGE = 100
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_CURSOR = re.compile(r"(-?[0-9]{1,20}):([A-Za-z0-9_-]{1,128})")
_SUFFIX = ".ndjson"
_GLANCE = 1 << 20
"""How much of a file is looked through for its title."""


class SessionFile:
    """The end of a session's file, where lines are added."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, line: AnyLine) -> None:
        """Adds a line; raises RequestFailed if the disk will not take it."""
        try:
            _write(self._path, codec.encode(line) + b"\n", os.O_APPEND)
        except FileNotFoundError:
            return  # deleted while it was open: what goes on in it is not kept
        except OSError as error:
            raise failed("the session could not be saved", f"{self._path}: {error}") from None


class Store:
    """The directory. Raises UsageError if it cannot be used."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            words = f"cannot keep sessions in {directory}: {error.strerror}; give --sessions DIR"
            raise UsageError(words) from None
        if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(f"cannot write to {directory}; give --sessions DIR")

    def create(self, lines: list[AnyLine]) -> SessionFile:
        """A new session of these lines, of which the first is its Head."""
        path = self._path(cast(Head, lines[0]).id)
        data = b"".join(codec.encode(line) + b"\n" for line in lines)
        try:
            _write(path, data, os.O_CREAT | os.O_EXCL)
        except OSError as error:
            raise failed("the session could not be saved", f"{path}: {error}") from None
        return SessionFile(path)

    def check(self, session_id: str) -> None:
        """Raises RequestFailed (-32002) if there is no such session."""
        if not self._path(session_id).exists():
            raise session_not_found(session_id)

    def read(self, session_id: str) -> list[AnyLine]:
        """A session's lines, its Head first; an unfinished last line is left out.

        Raises RequestFailed: -32002 if there is none, -32603 if it cannot be read.
        """
        path = self._path(session_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise session_not_found(session_id) from None
        except OSError as error:
            raise failed("the session could not be read", f"{path}: {error}") from None
        lines: list[AnyLine] = []
        for number, text in enumerate(data.split(b"\n")[:-1], 1):
            try:
                lines.append(_decode(text))
            except codec.JSONError as error:
                log.warning("%s: line %d left out: %s", path, number, error)
        if not lines or not isinstance(lines[0], Head):
            raise failed("the session could not be read", f"{path} does not begin with a session")
        if lines[0].format > FORMAT:
            raise failed("the session could not be read", f"{path} is of a newer format")
        return lines

    def open(self, session_id: str) -> tuple[list[AnyLine], SessionFile]:
        """As `read`, and the file's end, rid of what a crash left unfinished there."""
        lines = self.read(session_id)
        path = self._path(session_id)
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            os.truncate(path, whole)
        return lines, SessionFile(path)

    def delete(self, session_id: str) -> None:
        """Removes a session; one that does not exist is removed already."""
        if _ID.fullmatch(session_id):
            self._path(session_id).unlink(missing_ok=True)

    def page(self, cwd: str | None, cursor: str | None) -> dict[str, Any]:
        """The `session/list` result: newest first, PAGE at a time, of one `cwd` if given."""
        after = _parse_cursor(cursor)
        found: list[tuple[int, str]] = []
        for entry in os.scandir(self._directory):
            if entry.name.endswith(_SUFFIX):
                found.append((-entry.stat().st_mtime_ns, entry.name.removesuffix(_SUFFIX)))
        sessions: list[dict[str, Any]] = []
        last = (0, "")
        for key in sorted(found):
            if after is not None and key <= after:
                continue
            info = self._info(key)
            if info is None or (cwd is not None and info["cwd"] != cwd):
                continue
            if len(sessions) == PAGE:
                return {"sessions": sessions, "nextCursor": f"{last[0]}:{last[1]}"}
            sessions.append(info)
            last = key
        return {"sessions": sessions}

    def _info(self, key: tuple[int, str]) -> dict[str, Any] | None:
        """One session as the list shows it; None if its file is gone or none of ours."""
        head: Head | None = None
        title: str | None = None
        try:
            with self._path(key[1]).open("rb") as file:
                for text in file.read(_GLANCE).split(b"\n")[:-1]:
                    line = _decode(text)
                    if isinstance(line, Head):
                        head = line
                    elif isinstance(line, Title):
                        title = line.title
                        break
        except (OSError, codec.JSONError):
            pass  # what was understood so far is shown
        if head is None:
            return None
        changed = datetime.fromtimestamp(-key[0] / 1e9, UTC)
        info = {"sessionId": head.id, "cwd": head.cwd, "updatedAt": changed.isoformat()}
        return info if title is None else {**info, "title": title}

    def _path(self, session_id: str) -> Path:
        if not _ID.fullmatch(session_id):
            raise session_not_found(session_id)
        return self._directory / (session_id + _SUFFIX)


def _decode(text: bytes) -> AnyLine:
    return cast(AnyLine, codec.decode_as(text, cast(Any, AnyLine)))


def _write(path: Path, data: bytes, flags: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def _parse_cursor(cursor: str | None) -> tuple[int, str] | None:
    if cursor is None:
        return None
    parts = _CURSOR.fullmatch(cursor)
    if parts is None:
        raise invalid_params(f"cursor {cursor!r} is none that session/list gave")
    return int(parts[1]), parts[2]
