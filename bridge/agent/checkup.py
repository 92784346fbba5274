"""What this machine has of what the bridge and node agents need, and the command that mends it.

Owns: the checks behind `acp-mcp-bridge doctor`. Rules: looking changes nothing and starts nothing
but `--version` of node and npm; a check that fails says what to do. Called by `bridge.cli.doctor`.
"""

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bridge.wire import codec

State = Literal["ok", "warn", "missing"]
NODE_WANTED = 22
_PYTHON = (3, 11)
_LIBRARIES = ("anyio", "msgspec", "httptools", "httpx2", "mcp", "trio", "jsonschema")
_FILES = 1024


class Check(NamedTuple):
    """What was looked at, how it is, and how to mend it where it is not right."""

    name: str
    state: State
    words: str
    mend: str = ""


def checks(environment: Mapping[str, str]) -> Iterator[Check]:
    """All of them."""
    yield _python()
    yield from _libraries()
    yield _uvloop()
    yield from _system()
    yield _loopback()
    node = _version_of("node", environment)
    yield _node(node)
    yield _npm(environment)
    yield from _agents(environment, node)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _PYTHON:
        return Check("python", "missing", f"{version} is too old", "install Python 3.11 or newer")
    return Check("python", "ok", f"{version} ({sys.executable})")


def _libraries() -> Iterator[Check]:
    missing: list[str] = []
    for name in _LIBRARIES:
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        pip = f"{sys.executable} -m pip install {' '.join(missing)}"
        yield Check("libraries", "missing", f"not installed: {', '.join(missing)}", pip)
    else:
        yield Check("libraries", "ok", f"all {len(_LIBRARIES)} are installed")


def _uvloop() -> Check:
    try:
        return Check("uvloop", "ok", importlib.metadata.version("uvloop"))
    except importlib.metadata.PackageNotFoundError:
        pip = f"{sys.executable} -m pip install uvloop"
        return Check("uvloop", "warn", "not installed; the loop is asyncio's own, slower", pip)


def _system() -> Iterator[Check]:
    if not os.path.isdir("/proc/self"):
        words = "no /proc: what agents leave running can only be found by its process group"
        yield Check("processes", "warn", words, "run on Linux, or mount /proc")
    elif not hasattr(os, "pidfd_open"):
        yield Check("processes", "warn", "no pidfd: exits are polled", "Linux 5.3 or newer")
    else:
        yield Check("processes", "ok", "/proc and pidfd")
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES:
        words = f"{soft} open files are few for several agents"
        yield Check("open files", "warn", words, f"ulimit -n {min(hard, 4096)}")
    else:
        yield Check("open files", "ok", str(soft))
    folder = tempfile.gettempdir()
    if os.access(folder, os.W_OK):
        yield Check("temporary files", "ok", folder)
    else:
        mend = "TMPDIR=... to a directory that can be written"
        yield Check("temporary files", "missing", f"{folder} cannot be written", mend)


def _loopback() -> Check:
    try:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            ports = one.getsockname()[1], other.getsockname()[1]
    except OSError as error:
        mend = "ip link set lo up   (the proxies listen on 127.0.0.1)"
        return Check("loopback", "missing", f"no free port: {error.strerror}", mend)
    return Check("loopback", "ok", f"free ports, such as {ports[0]} and {ports[1]}")


def _version_of(command: str, environment: Mapping[str, str]) -> str | None:
    path = shutil.which(command, path=environment.get("PATH"))
    if path is None:
        return None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, timeout=20, text=True)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip().lstrip("v") or None


def _node(version: str | None) -> Check:
    mend = f"npm install --prefix ~/.local/node node@{NODE_WANTED}   (and its bin on PATH)"
    if version is None:
        return Check("node", "warn", "not on PATH; node agents cannot be started", mend)
    if numbers(version)[0] < NODE_WANTED:
        return Check("node", "warn", f"{version}; some agents need {NODE_WANTED}", mend)
    return Check("node", "ok", version)


def _npm(environment: Mapping[str, str]) -> Check:
    version = _version_of("npm", environment)
    if version is None:
        return Check("npm", "warn", "not on PATH; agents cannot be installed", "it comes with node")
    return Check("npm", "ok", version)


def _agents(environment: Mapping[str, str], node: str | None) -> Iterator[Check]:
    text = (resources.files("bridge.agent") / "known.toml").read_text()
    found = False
    table: dict[str, dict[str, Any]] = tomllib.loads(text)
    for name, known in table.items():
        command = shutil.which(str(known["command"]), path=environment.get("PATH"))
        if command is not None:
            found = True
            yield _agent(name, known, command, node)
    if not found:
        package = "@agentclientprotocol/claude-agent-acp"
        words = "none of the known ones is on PATH; `acp-mcp-bridge agent` is always there"
        yield Check("agents", "warn", words, f"npm install --global {package}")


def _agent(name: str, known: dict[str, Any], command: str, node: str | None) -> Check:
    version = package_version(Path(command), known["package"])
    where = f"{version or 'unknown version'} ({command})"
    install = f"npm install --global {known['package']}@{known['tried'] or 'latest'}"
    for bound, reason in known["bad"].items():
        if version is not None and within(version, bound):
            return Check(f"agent {name}", "warn", f"{where}: {reason}", install)
    if known["node"] and node is not None and numbers(node)[0] < known["node"]:
        words = f"{where} needs node {known['node']} or newer, {node} is first on PATH"
        return Check(f"agent {name}", "warn", words, f"npm install node@{known['node']}")
    return Check(f"agent {name}", "ok", where)


def package_version(command: Path, package: str) -> str | None:
    """The version of the npm package a command belongs to."""
    for folder in command.resolve().parents:
        with suppress(OSError, codec.JSONError):
            fields = codec.mapping(codec.decode((folder / "package.json").read_bytes())) or {}
            if fields.get("name") == package:
                return str(fields.get("version"))
    return None


def numbers(version: str) -> tuple[int, ...]:
    """A version's numbers, to be compared."""
    return tuple(map(int, re.findall(r"\d+", version.partition("-")[0]))) or (0,)


def within(version: str, bound: str) -> bool:
    """Whether a version is under a bound such as `<0.64` or `=7.8.1`."""
    wanted = numbers(bound[1:])
    if bound[0] == "<":
        return numbers(version) < wanted
    return numbers(version) == wanted
