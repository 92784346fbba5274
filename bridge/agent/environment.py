"""The environment an agent starts with. Pure; called by `bridge.session.launcher`."""

from collections.abc import Mapping


def agent_environment(inherited: Mapping[str, str], explicit: Mapping[str, str]) -> dict[str, str]:
    """What the daemon inherited, and over it what the host gave."""
    return {**inherited, **explicit}
