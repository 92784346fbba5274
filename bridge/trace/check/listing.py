"""Findings as lines of text."""

from collections import Counter
from collections.abc import Iterable, Iterator

from bridge.trace.check.finding import Finding
from bridge.trace.check.rules import Severity

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_REPEATED = 5
"""Findings by one rule that are listed, before only their number is."""


def chosen(findings: Iterable[Finding], least: Severity) -> list[Finding]:
    """Those that are at least so grave."""
    wanted = SEVERITIES[: SEVERITIES.index(least) + 1]
    return [finding for finding in findings if finding.severity in wanted]


def listing(findings: list[Finding], *, every: bool) -> Iterator[str]:
    """A line each, and their numbers at the end. `every`: also those that repeat a rule often."""
    seen: Counter[str] = Counter()
    for finding in findings:
        seen[finding.rule] += 1
        if every or seen[finding.rule] <= _REPEATED:
            where = f"{finding.channel}:{finding.session}" if finding.session else finding.channel
            yield (
                f"line {finding.line:<6} {finding.severity:<8} {finding.rule:<22} "
                f"{where} {finding.method}: {finding.words}  [{finding.spec}]"
            )
    for rule, count in seen.items():
        if not every and count > _REPEATED:
            yield f"... and {count - _REPEATED} more of {rule} (--all lists them)"
    counts = Counter(finding.severity for finding in findings)
    yield ", ".join(f"{counts[severity]} {severity}" for severity in SEVERITIES)
