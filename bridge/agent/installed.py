"""Where node agents are installed, and which installs are whole.

Owns: the layout, `<home>/<agent>/<version>@<adapter's version>/`, and its `.ready`, the file that
says what was installed. Rule: an install is one if, and only if, its `.ready` says that it is what
is asked for; looking changes nothing and starts nothing. It costs the daemon one small file on the
way to an agent. Written by `bridge.agent.install`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from bridge.errors import BridgeError, UsageError
from bridge.wire import codec
from protocol_schemas.profile import Install, Profile

READY = ".ready"
NODE = ".node"
"""The name node from npm goes by among the agents; no agent's begins with a dot."""


_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


class Ready(msgspec.Struct):
    """What a `.ready` says: the agent, its packages with the versions npm was given, whether their
    scripts ran, and when, in UTC. `node`: that of npm which it runs on; empty is the machine's."""

    agent: str
    packages: dict[str, str]
    scripts: bool = False
    node: str = ""
    date: str = ""


class Found(NamedTuple):
    """A whole install. `node`: the directory of a node of its own; None: the machine's will do."""

    prefix: Path
    ready: Ready
    node: Path | None


def home(environment: Mapping[str, str]) -> Path:
    """The directory of all installs: `$BRIDGE_AGENTS_DIR`, or in the user's data directory."""
    if given := environment.get("BRIDGE_AGENTS_DIR"):
        return Path(given).expanduser().absolute()
    data = environment.get("XDG_DATA_HOME", "")
    if not data.startswith("/"):
        data = f"{environment.get('HOME') or os.path.expanduser('~')}/.local/share"
    return Path(data) / "acp-mcp-bridge" / "agents"


def place(agent: str, packages: Mapping[str, str], environment: Mapping[str, str]) -> Path:
    """Where these versions of an agent's packages are, or would be. No version has an `@` in it."""
    return home(environment) / agent / "@".join(packages.values())


def ready(prefix: Path) -> Ready | None:
    """What the `.ready` of a directory says, if there is one that can be read."""
    with suppress(OSError, codec.JSONError):
        return codec.decode_as((prefix / READY).read_bytes(), Ready)
    return None


def find(profile: Profile, environment: Mapping[str, str]) -> Found | None:
    """The install of an agent in the profile's versions, if it is whole."""
    if profile.install is None:
        return None
    return look(profile.name, profile.install, environment)


def look(agent: str, install: Install, environment: Mapping[str, str]) -> Found | None:
    """The same by an agent's name and what is to be installed."""
    prefix = place(agent, install.packages, environment)
    said = ready(prefix)
    if said is None or said.packages != install.packages or said.scripts != install.scripts:
        return None
    node = node_directory(said.node, environment) if said.node else None
    if node is not None and not (node / "node").exists():
        return None
    return Found(prefix, said, node)


def require(profile: Profile, environment: Mapping[str, str], *, named: str) -> Found:
    """The install of an agent that a host has `named`; raises BridgeError with how to get it."""
    if profile.install is None:
        raise UsageError(f"agent {profile.name} has no packages: nothing of it is installed")
    if (found := find(profile, environment)) is not None:
        return found
    asked = [f"{name} {version}" for name, version in profile.install.packages.items()]
    others = [prefix.name for prefix, said in every(environment) if said.agent == profile.name]
    there = f" (there is {', '.join(others)})" if others else ""
    raise BridgeError(
        f"agent {profile.name} is not installed: {', '.join(asked)}{there}; "
        f"run: acp-mcp-bridge agents install {named}{_options(profile, named, environment)}",
        code="spawn_failed",
        origin="agent",
    )


def _options(profile: Profile, named: str, environment: Mapping[str, str]) -> str:
    """What `agents install` must be told of versions that are not the pinned ones."""
    from bridge.agent.profile import load  # only on the way to an error

    assert profile.install is not None
    pinned = load(named, environment).install
    held = {} if pinned is None else pinned.packages
    return "".join(
        f" --package {name}={version}"
        for name, version in profile.install.packages.items()
        if held.get(name) != version
    )


def every(environment: Mapping[str, str]) -> Iterator[tuple[Path, Ready]]:
    """All whole installs of agents, by name and version."""
    for prefix in sorted(home(environment).glob("*/[!.]*")):
        if (said := ready(prefix)) is not None:
            yield prefix, said


def node_packages(version: str) -> dict[str, str]:
    """What npm is to install for that version of node: its binary for this machine."""
    system, machine = os.uname().sysname.lower(), os.uname().machine
    return {f"node-{system}-{_MACHINES.get(machine, machine)}": version}


def node_directory(version: str, environment: Mapping[str, str]) -> Path:
    """Where the program `node` of that version is, or would be."""
    packages = node_packages(version)
    return place(NODE, packages, environment) / "node_modules" / next(iter(packages)) / "bin"
