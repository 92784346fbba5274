"""The rules by name, as `rules.toml` has them: how grave a breach is, and where the rule stands."""

import tomllib
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "info"]


class Rule(NamedTuple):
    """What a rule demands (`words`), and where that is said (`spec`). `group`: its heading."""

    severity: Severity
    spec: str
    words: str
    group: str


@cache
def rules() -> dict[str, Rule]:
    """All rules, in the order of the table."""
    text = (resources.files("bridge.trace.check") / "rules.toml").read_text()
    return {
        name: Rule(*row, group=group)
        for group, table in tomllib.loads(text).items()
        for name, row in table.items()
    }
