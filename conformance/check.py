"""What a check is: an id, what the specification says, and a coroutine that tries it.

Rule: a check that returns has passed; `Broken` says what was wrong, `NotTried` why it could not be
found out. Nothing else may be raised on account of the program under test. Suites are lists of
checks in the order in which they run; `conformance.runner` runs them.
"""

import fnmatch
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Generic, Literal, TypeVar

Severity = Literal["MUST", "SHOULD"]
Verdict = Literal["passed", "failed", "not tried"]
L = TypeVar("L")


class Broken(Exception):
    """The program under test does not do what is asked. `lines`: what was sent (`> `) and received
    (`< `); by default the runner shows the last traffic of the check."""

    def __init__(self, words: str, lines: Sequence[str] = ()) -> None:
        super().__init__(words)
        self.lines = list(lines)


class NotTried(Exception):
    """It could not be found out, and why."""


def expect(condition: object, words: str) -> None:
    """Raises Broken with these words unless the condition holds."""
    if not condition:
        raise Broken(words)


@dataclass(frozen=True)
class Check(Generic[L]):
    """One demand. `says`: one sentence; `section`: where the ACP documentation (or another
    specification) says so; `run`: tries it in the suite's laboratory."""

    id: str
    severity: Severity
    section: str
    says: str
    run: Callable[[L], Awaitable[None]]


@dataclass(frozen=True)
class Outcome:
    """What came of one check. `words`: what was wrong, or why it was not tried."""

    check: Check[object]
    verdict: Verdict
    words: str = ""
    lines: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    @property
    def breaks(self) -> bool:
        """Whether this alone makes the run fail."""
        return self.verdict == "failed" and self.check.severity == "MUST"


class Suite(Generic[L]):
    """The checks for one kind of program; `name` begins their ids."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check[L]] = []

    def check(
        self, name: str, severity: Severity, section: str, says: str
    ) -> Callable[[Callable[[L], Awaitable[None]]], Callable[[L], Awaitable[None]]]:
        """Decorates a coroutine function of the laboratory as the next check."""

        def add(run: Callable[[L], Awaitable[None]]) -> Callable[[L], Awaitable[None]]:
            self.checks.append(Check(f"{self.name}.{name}", severity, section, says, run))
            return run

        return add

    def order(self, *modules: ModuleType) -> None:
        """Puts the checks in the order of the modules that they stand in; what a suite adds later
        comes last."""
        places = {module.__name__: place for place, module in enumerate(modules)}
        self.checks.sort(key=lambda check: places.get(check.run.__module__, len(places)))

    def chosen(self, patterns: Sequence[str]) -> list[Check[L]]:
        """The checks that one of the patterns names: a glob, or a part of the id."""
        return [c for c in self.checks if not patterns or any(_names(p, c.id) for p in patterns)]


def _names(pattern: str, ident: str) -> bool:
    if re.search(r"[*?\[]", pattern):
        return fnmatch.fnmatchcase(ident, pattern)
    return pattern in ident
