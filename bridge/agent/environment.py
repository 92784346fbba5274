"""The environment an agent starts with. Pure; called by `bridge.session.launcher`."""

import re
from collections.abc import Mapping

NESTING_GUARDS = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT")
"""Set by an agent for what it runs; inherited, they make another one refuse to start."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_PROXY = ("NO_PROXY", "no_proxy")


def agent_environment(inherited: Mapping[str, str], explicit: Mapping[str, str]) -> dict[str, str]:
    """`inherited` less the nesting guards, with the loopback exempt from proxies, since ours are
    there; `explicit` wins over all of it, guards included."""
    env = {name: value for name, value in inherited.items() if name not in NESTING_GUARDS}
    env.update(explicit)
    # Programs read one spelling or the other: what only one says holds for both.
    said = {name: env[name] for name in _NO_PROXY if name in env}
    for name in _NO_PROXY:
        if name not in explicit:
            env[name] = _with_loopback(said.get(name, next(iter(said.values()), "")))
    return env


def _with_loopback(value: str) -> str:
    """A no_proxy list with the loopback's names added; `*` means everything already."""
    if value.strip() == "*":
        return value
    present = {entry.lower() for entry in re.split(r"[,\s]+", value)}
    missing = [host for host in LOOPBACK if host not in present]
    return ",".join(filter(None, [value.strip().rstrip(","), *missing]))
