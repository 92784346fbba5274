"""Which node an agent runs on: the machine's, or one that npm brings.

Rule: the machine's is taken where it is new enough; else the oldest of those pinned here that is.
Called by `bridge.agent.install`, once an install: the way to an agent starts nothing to find out.
"""

import shutil
from collections.abc import Mapping

from bridge.agent import npm
from bridge.agent.versions import numbers
from bridge.errors import BridgeError
from bridge.io.process import Family

PINNED = ("22.23.3", "24.21.0")
"""What the agents were tried with, in order."""


async def wanted(oldest: str, environment: Mapping[str, str], family: Family) -> str:
    """The version of node that npm is to bring for an agent that needs `oldest` or newer; empty if
    the machine's will do, or none is needed. Raises BridgeError where none is known."""
    if not oldest or numbers(await machine(environment, family)) >= numbers(oldest):
        return ""
    for version in PINNED:
        if numbers(version) >= numbers(oldest):
            return version
    raise BridgeError(
        f"node {oldest} or newer is needed and the newest known here is {PINNED[-1]}; "
        "install it and put it first on PATH"
    )


async def machine(environment: Mapping[str, str], family: Family) -> str:
    """The version of the node that is first on PATH; empty if there is none that runs."""
    path = shutil.which("node", path=environment.get("PATH"))
    if path is None:
        return ""
    code, said = await npm.run([path, "--version"], environment, family)
    return "" if code else said.decode(errors="replace").strip().lstrip("v")
