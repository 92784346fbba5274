"""Running npm, and what its failures mean.

Owns: npm's command line, the words for its errors, and what is told of its progress. Rules: the
user's own npm settings hold (registry, proxies, cache, tokens), except for what decides whether an
agent is whole; npm and all that it starts end with us; a file that npm could not write is a
failure, though npm (11.19) only warns of it and exits with 0. Called by `bridge.agent.install`.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from bridge.agent.versions import numbers, package_version
from bridge.errors import BridgeError
from bridge.io.process import Family, spawn
from bridge.wire import codec

Tell = Callable[[str], object]

OLDEST = 7
"""The first npm that installs peer dependencies, which some agents are made of."""
_OPTIONS = (
    *("--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--no-save"),
    *("--global=false", "--include=optional", "--omit=dev", "--json", "--loglevel=info"),
)
_FETCHES_TOLD = 50
_KEPT = 20
_NETWORK = frozenset(
    {
        *("ECONNREFUSED", "ECONNRESET", "EAI_AGAIN", "EAI_FAIL", "ENOTFOUND", "ETIMEDOUT"),
        *("ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "ERR_SOCKET_TIMEOUT", "FETCH_ERROR"),
    }
)
_UNWRITTEN = frozenset({"ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS", "EMFILE", "ENFILE"})
"""What leaves a file short. Other warnings of the kind are of files that npm removes again."""
_REMEDIES = {
    "ETARGET": "there is no such version; `npm view PACKAGE versions` lists them",
    "E404": "the registry has no such package; check its name and `npm config get registry`",
    "E401": "the registry wants a log-in; run `npm login`, or check the token in .npmrc",
    "E403": "the registry refuses it; check the token in .npmrc and the registry's policy",
    "ENEEDAUTH": "the registry wants a log-in; run `npm login`, or check the token in .npmrc",
    "ENOSPC": "the disk is full; make room, or set BRIDGE_AGENTS_DIR to where there is some",
    "EDQUOT": "the disk quota is used up; make room, or set BRIDGE_AGENTS_DIR to another place",
    "EFBIG": "files may not grow so large here; raise the limit (ulimit -f)",
    "EROFS": "the file system is read-only; set BRIDGE_AGENTS_DIR to another place",
    "EACCES": "it may not be written; set BRIDGE_AGENTS_DIR, or mend the permissions",
    "EPERM": "it may not be written; set BRIDGE_AGENTS_DIR, or mend the permissions",
    "EINTEGRITY": "what came is not what was published; run `npm cache clean --force`, try again",
    "EBADPLATFORM": "the package is not made for this machine",
    "EBADENGINE": "the package is not made for this node; install a newer one",
    "EIO": "the disk does not work; set BRIDGE_AGENTS_DIR to another place",
    "EMFILE": "no file descriptor is free; raise the limit (ulimit -n)",
}


class _Failure(msgspec.Struct):
    code: str | int | None = ""
    summary: str | None = ""
    detail: str | None = ""


class _Report(msgspec.Struct):
    """What npm says on stdout with --json, as far as we read it."""

    error: _Failure | None = None


def remedy(code: str) -> str:
    """What to do about an error code of npm's or the system's; empty where nothing is known."""
    if code in _NETWORK:
        return (
            "the registry cannot be reached; check the network, `npm config get registry` and "
            "npm's proxy settings"
        )
    return _REMEDIES.get(code, "")


async def install(
    prefix: Path,
    packages: Mapping[str, str],
    *,
    scripts: bool,
    environment: Mapping[str, str],
    family: Family,
    tell: Tell,
) -> None:
    """Installs exact versions under a directory that exists; raises BridgeError."""
    npm = _npm(environment)
    specs = [f"{name}@{version}" for name, version in packages.items()]
    ignore = f"--ignore-scripts={'false' if scripts else 'true'}"
    progress = Progress(tell)
    argv = [npm, "install", "--prefix", str(prefix), ignore, *_OPTIONS, "--", *specs]
    code, said = await run(argv, environment, family, cwd=prefix, on_line=progress.line)
    if code or progress.unwritten:
        raise failed(said, progress, " ".join(specs), prefix)


async def newest(package: str, environment: Mapping[str, str], family: Family) -> str:
    """The version that the registry calls latest; raises BridgeError."""
    npm = _npm(environment)
    progress = Progress(len)
    argv = [npm, "view", package, "version", "--json", "--loglevel=error"]
    code, said = await run(argv, environment, family, on_line=progress.line)
    if code:
        raise failed(said, progress, package, None)
    return str(codec.decode(said))


def _npm(environment: Mapping[str, str]) -> str:
    """npm's path, if it is there and not known to be too old; raises BridgeError."""
    path = shutil.which("npm", path=environment.get("PATH"))
    if path is None:
        raise BridgeError("npm is not on PATH: agents are installed with it; install node, 22 say")
    version = package_version(Path(path), "npm")
    if version is not None and numbers(version)[0] < OLDEST:
        raise BridgeError(
            f"{path} is npm {version}; {OLDEST} or newer is needed: npm install --global npm"
        )
    return path


async def run(
    argv: Sequence[str],
    environment: Mapping[str, str],
    family: Family,
    *,
    cwd: Path | None = None,
    on_line: Tell = len,
) -> tuple[int, bytes]:
    """Exit code (by a signal: 128 and its number) and stdout of a command without input; `on_line`
    gets its stderr by the line. Raises BridgeError where it cannot be started."""
    rest = b""

    def on_stderr(data: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            on_line(line.decode(errors="replace"))

    directory = None if cwd is None else str(cwd)
    said: list[bytes] = []
    async with spawn(
        argv, env=environment, cwd=directory, on_stderr=on_stderr, stdin=False, family=family
    ) as process:
        while chunk := await process.stdout.receive():
            said.append(chunk)
        status = await process.wait()
        await process.drained_stderr(2.0)
    if rest:
        on_line(rest.decode(errors="replace"))
    return 1 if status.code is None else status.code, b"".join(said)


class Progress:
    """npm's stderr: what is worth telling of it at once, and what is needed if it fails."""

    _FETCH = re.compile(r"npm http fetch GET (\d+|\S+) (\S+)")
    _RETRY = re.compile(r"npm http fetch GET (\S+) attempt (\d+) failed with (\S+)")
    _SCRIPT = re.compile(r"npm info run (\S+) (\w+) (?!\{)")
    _TAR = re.compile(r"npm warn tar TAR_ENTRY_ERROR (\w+): (.*)", re.IGNORECASE)
    _ERROR = re.compile(r"npm (?:error|ERR!) ?(.*)")
    _LOG = re.compile(r"A complete log of this run can be found in: *(\S.*)?")

    def __init__(self, tell: Tell) -> None:
        self.log = ""
        self.code = ""
        self.errors: list[str] = []
        self.unwritten = ""
        """The code by which a file could not be written."""
        self._tell = tell
        self._fetched = 0
        self._log_follows = False

    def line(self, line: str) -> None:
        """The next line of stderr."""
        if match := self._RETRY.match(line):
            self._tell(f"{match[1]}: try {match[2]} failed ({match[3]})")
        elif self._FETCH.match(line):
            self._fetched += 1
            if self._fetched % _FETCHES_TOLD == 0:
                self._tell(f"{self._fetched} files fetched")
        elif match := self._SCRIPT.match(line):
            self._tell(f"{match[2]} of {match[1]}")
        elif match := self._TAR.match(line):
            if match[1] in _UNWRITTEN:
                self.unwritten, self.errors = match[1], [f"{match[1]}: {match[2]}"]
        elif match := self._ERROR.match(line):
            self._error(match[1])
        elif not line.startswith("npm "):
            self.errors = [*self.errors, line][-_KEPT:]

    def _error(self, words: str) -> None:
        if match := self._LOG.match(words):
            self.log, self._log_follows = match[1] or "", not match[1]
        elif self._log_follows:
            self.log, self._log_follows = words.strip(), False
        elif words.startswith("code "):
            self.code = words.removeprefix("code ")
        else:
            self.errors = [*self.errors, words][-_KEPT:]


def failed(said: bytes, progress: Progress, what: str, prefix: Path | None) -> BridgeError:
    """npm's failure in one line: the code, what it says, what to do, and where its log is."""
    failure = _Failure()
    with suppress(codec.JSONError):
        failure = codec.decode_as(said, _Report).error or failure
    code = str(failure.code or progress.code or progress.unwritten)
    summary = failure.summary or "\n".join(progress.errors)
    lines = [line for line in summary.splitlines() if line.strip()]
    words = lines[0].strip() if lines else "npm gave no reason"
    mend = remedy(code)
    parts = [f"npm could not install {what}" if prefix else f"npm could not look up {what}"]
    parts.append(f"{words} ({code})" if code and code not in words else words)
    parts.append(f"{mend}" if mend else "its log says more")
    log = f" (npm's log: {progress.log})" if progress.log else ""
    return BridgeError(": ".join(parts[:2]) + f"; {parts[2]}{log}", extra={"npm_code": code})
