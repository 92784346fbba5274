"""The file service of an ACP client: `fs/read_text_file` and `fs/write_text_file`.

Owns: nothing that lasts. Rules: paths are absolute; text is UTF-8 and keeps its line ends and its
byte order mark, so that reading and writing back changes nothing; whatever goes wrong is an error
that names the path and what to do. It reaches what the daemon's user can reach: hosts that want
less leave the service off. Called by `bridge.session.services`; blocking work runs in threads.
"""

import os
import stat
from collections.abc import Collection
from typing import Any, BinaryIO, NoReturn, TypeVar

import anyio.to_thread

from bridge.errors import RequestFailed
from bridge.wire import codec, jsonrpc
from protocol_schemas.services import ReadTextFile, WriteTextFile

T = TypeVar("T")
LARGEST = 64 * 1024 * 1024
"""Bytes that one answer may hold."""
_SNIFFED = 8000


def known(method: str, methods: Collection[str]) -> None:
    """Raises RequestFailed for a method that a service has not, though its name begins alike."""
    if method not in methods:
        raise RequestFailed(jsonrpc.METHOD_NOT_FOUND, f"method not found: {method}")


class Files:
    """Answers requests by method; each raises RequestFailed."""

    METHODS = frozenset({"fs/read_text_file", "fs/write_text_file"})

    async def answer(self, method: str, params: Any) -> dict[str, Any]:
        """The result of a request for one of METHODS."""
        known(method, self.METHODS)
        if method == "fs/read_text_file":
            return await self.read_text_file(params)
        return await self.write_text_file(params)

    async def read_text_file(self, params: Any) -> dict[str, Any]:
        """`{path, line?, limit?}` -> `{content}`: all of it, or `limit` lines from line `line`.

        A file that is not there is -32002; lines beyond the end are an empty content.
        """
        wanted = decoded(params, ReadTextFile)
        path = absolute(wanted.path, "path")
        content = await anyio.to_thread.run_sync(
            _read, path, max(wanted.line or 1, 1), wanted.limit, abandon_on_cancel=True
        )
        return {"content": content}

    async def write_text_file(self, params: Any) -> dict[str, Any]:
        """`{path, content}` -> `{}`. Makes the file, and the directories it is to be in: ACP has
        no other way to make them. An existing file keeps its mode and its links."""
        wanted = decoded(params, WriteTextFile)
        path = absolute(wanted.path, "path")
        try:
            data = wanted.content.encode()
        except UnicodeEncodeError as error:
            raise RequestFailed(
                jsonrpc.INVALID_PARAMS,
                f"content holds half a surrogate pair at character {error.start}, "
                "which UTF-8 cannot express; send whole characters",
            ) from None
        await anyio.to_thread.run_sync(_write, path, data)
        return {}


def decoded(params: Any, kind: type[T]) -> T:
    """The parameters as `kind`; raises RequestFailed -32602 that names the place."""
    try:
        return codec.convert(params, kind)
    except codec.JSONError as error:
        raise RequestFailed(jsonrpc.INVALID_PARAMS, f"invalid parameters: {error}") from None


def absolute(path: str, name: str) -> str:
    """The path; raises RequestFailed -32602 if it is relative or none at all."""
    if not os.path.isabs(path):
        raise RequestFailed(jsonrpc.INVALID_PARAMS, f"{name} must be absolute, not {path!r}")
    if "\0" in path:
        raise RequestFailed(jsonrpc.INVALID_PARAMS, f"{name} must not contain NUL: {path!r}")
    return path


def _read(path: str, line: int, limit: int | None) -> str:
    try:
        # O_NONBLOCK: a FIFO without a writer would hold the thread for ever.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            _require_file(path, file.fileno())
            if line == 1 and limit is None:
                data = file.read(LARGEST + 1)
            else:
                data = _lines(file, line, limit)
    except (OSError, UnicodeEncodeError) as error:
        _fail("read", path, error)
    if len(data) > LARGEST:
        _refuse(f"cannot read {path}: more than {LARGEST >> 20} MiB; give line and limit")
    if b"\0" in data[:_SNIFFED]:
        _refuse(f"cannot read {path}: it is a binary file, not text")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        byte = f"byte 0x{data[error.start]:02x} at {error.start}"
        _refuse(f"cannot read {path}: it is not UTF-8 text ({byte})")


def _lines(file: BinaryIO, line: int, limit: int | None) -> bytes:
    """At most `limit` lines from line `line` on, and no more than what makes it too much."""
    number, size, found = 0, 0, list[bytes]()
    while limit is None or len(found) < limit:
        part = file.readline(LARGEST + 1 - size)
        if not part:
            break
        if number >= line - 1:
            found.append(part)
            size += len(part)
            if size > LARGEST:
                break
        if part.endswith(b"\n"):
            number += 1
    return b"".join(found)


def _write(path: str, data: bytes) -> None:
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(path, flags, 0o666)
        with open(fd, "wb", buffering=0) as file:
            _require_file(path, fd)
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
    except (OSError, UnicodeEncodeError) as error:
        _fail("write", path, error)


def _require_file(path: str, fd: int) -> None:
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):
        _refuse(f"{path} is a device or a pipe, not a file")


def _fail(verb: str, path: str, error: OSError | UnicodeEncodeError) -> NoReturn:
    match error:
        case FileNotFoundError():
            code, words = jsonrpc.RESOURCE_NOT_FOUND, "no such file"
        case IsADirectoryError():
            code, words = jsonrpc.INTERNAL_ERROR, "it is a directory"
        case PermissionError():
            code, words = jsonrpc.INTERNAL_ERROR, "permission denied"
        case NotADirectoryError() | FileExistsError():
            code, words = jsonrpc.INTERNAL_ERROR, "a part of the path is a file, not a directory"
        case OSError():
            code, words = jsonrpc.INTERNAL_ERROR, error.strerror or str(error)
        case UnicodeEncodeError():
            code, words = jsonrpc.INVALID_PARAMS, "the path is not valid text"
    raise RequestFailed(code, f"cannot {verb} {path!r}: {words}", {"path": path}) from None


def _refuse(words: str) -> NoReturn:
    raise RequestFailed(jsonrpc.INTERNAL_ERROR, words)
