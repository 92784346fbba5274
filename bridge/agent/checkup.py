"""What this machine has of what the bridge and node agents need, and the command that mends it.

Owns: the checks behind `acp-mcp-bridge doctor`. Rules: looking changes nothing and starts nothing
but `--version` of node and npm; a check that fails says what to do. Called by `bridge.cli.doctor`.
"""

import importlib.metadata
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from bridge.agent import installed
from bridge.agent.rendering import program
from bridge.agent.versions import Fault, faults, faulty, numbers, package_version, within
from bridge.errors import UsageError
from protocol_schemas.profile import Profile

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
    """Agents that `agents install` has, and those whose program is on PATH."""
    from bridge.agent import profile

    known = faults()
    found = False
    for name in profile.names(environment):
        try:
            agent = profile.load(name, environment)
        except UsageError as error:
            yield Check(f"agent {name}", "warn", str(error), "mend the file, or remove it")
            continue
        for check in (
            _installed(agent, environment, node),
            _on_path(agent, environment, node, known),
        ):
            if check is not None:
                found = True
                yield check
    for fault in known:
        command = fault.command and shutil.which(fault.command, path=environment.get("PATH"))
        version = package_version(Path(command), fault.package) if command else None
        if version is not None and within(version, fault.versions):
            found = True
            yield Check(f"agent {fault.command}", "warn", f"{version} ({command}): {fault.reason}")
    if not found:
        words = "none is installed; `acp-mcp-bridge agent` is always there"
        yield Check("agents", "warn", words, "acp-mcp-bridge agents install pi")


def _installed(agent: Profile, environment: Mapping[str, str], node: str | None) -> Check | None:
    """What `agents install` has of an agent."""
    if agent.install is None:
        return None
    name, mend = f"agent {agent.name}", f"acp-mcp-bridge agents install {agent.name}"
    pinned = " ".join(f"{package} {version}" for package, version in agent.install.packages.items())
    if (whole := installed.find(agent, environment)) is not None:
        if whole.node is None and _too_old(agent, node):
            words = f"{pinned} needs node {agent.install.node} or newer, {node} is first on PATH"
            return Check(name, "warn", words, mend)
        return Check(name, "ok", f"{pinned} ({whole.prefix})")
    others = [
        prefix.name for prefix, ready in installed.every(environment) if ready.agent == agent.name
    ]
    if not others:
        return None
    return Check(name, "warn", f"{', '.join(others)} is installed; pinned is {pinned}", mend)


def _on_path(
    agent: Profile, environment: Mapping[str, str], node: str | None, known: list[Fault]
) -> Check | None:
    """An agent's program on PATH: which version it is, and whether that does."""
    name = program(agent)
    command = shutil.which(name, path=environment.get("PATH")) if name else None
    if command is None:
        return None
    packages = agent.install.packages if agent.install is not None else {}
    title, mend = f"agent {agent.name}", f"acp-mcp-bridge agents install {agent.name}"
    for package in packages:
        version = package_version(Path(command), package)
        if version is not None and (reason := faulty(package, version, known)):
            return Check(title, "warn", f"{version} ({command}): {reason}", mend)
        if version is not None:
            where = f"{version} ({command})"
            break
    else:
        where = f"unknown version ({command})"
    if _too_old(agent, node):
        assert agent.install is not None
        words = f"{where} needs node {agent.install.node} or newer, {node} is first on PATH"
        return Check(title, "warn", words, mend)
    return Check(title, "ok", where)


def _too_old(agent: Profile, node: str | None) -> bool:
    oldest = "" if agent.install is None else agent.install.node
    return bool(oldest) and numbers(node or "0") < numbers(oldest)
