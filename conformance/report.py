"""Outcomes for people and for programs: text as they come, JSON, and a Markdown table.

Pure: gives strings. Called by `conformance.__main__`.
"""

import json
from collections.abc import Sequence
from typing import Any

from conformance.check import Check, Outcome, Verdict

MARKS: dict[Verdict, str] = {"passed": "✓", "failed": "✗", "not tried": "–"}
LONGEST = 120
COLOURS: dict[Verdict, str] = {"passed": "32", "failed": "31", "not tried": "2"}


def listing(checks: Sequence[Check[Any]]) -> str:
    """Every check: id, severity, what the specification says and where."""
    return "\n".join(f"{c.id}  {c.severity}\n    {c.says} [{c.section}]" for c in checks)


def line(outcome: Outcome, *, colour: bool = False) -> str:
    """One outcome as it comes; for a failure, also what was sent and received."""
    check, verdict = outcome.check, outcome.verdict
    severity = "should" if verdict == "failed" and check.severity == "SHOULD" else ""
    mark = MARKS[verdict]
    head = f"{mark} {check.id}" + (f" ({severity})" if severity else "")
    tint = "33" if severity else COLOURS[verdict]
    if colour:
        head = f"\x1b[{tint}m{head}\x1b[0m"
    if verdict == "passed":
        return head
    if verdict == "not tried":
        return f"{head}: not tried: {outcome.words}"
    rows = [
        head,
        f"    {check.severity}: {check.says} [{check.section}]",
        f"    but: {outcome.words}",
        *(f"      {row}" for row in outcome.lines),
    ]
    return "\n".join(rows)


def summary(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The last line: the counts and the verdict."""
    broken = sum(outcome.breaks for outcome in outcomes)
    advised = count(outcomes, "failed") - broken
    words = [f"{count(outcomes, 'passed')} passed"]
    words += [f"{broken} MUST failed"] if broken else []
    words += [f"{advised} SHOULD failed"] if advised else []
    words += [f"{untried} not tried"] if (untried := count(outcomes, "not tried")) else []
    verdict = "does not conform" if broken else "conforms"
    if count(outcomes, "not tried") == len(outcomes):
        verdict = "nothing was found out"
    return f"{', '.join(words)} in {seconds:.1f} s: {verdict}"


def count(outcomes: Sequence[Outcome], verdict: Verdict) -> int:
    return sum(outcome.verdict == verdict for outcome in outcomes)


def document(outcomes: Sequence[Outcome], command: Sequence[str], about: dict[str, Any]) -> str:
    """Everything, as one JSON object."""
    value = {
        "command": list(command),
        **about,
        "conforms": not any(outcome.breaks for outcome in outcomes),
        "checks": [
            {
                "id": outcome.check.id,
                "severity": outcome.check.severity,
                "says": outcome.check.says,
                "section": outcome.check.section,
                "verdict": outcome.verdict,
                "words": outcome.words,
                "lines": outcome.lines,
                "seconds": round(outcome.seconds, 3),
            }
            for outcome in outcomes
        ],
    }
    return json.dumps(value, indent=1, ensure_ascii=False)


def markdown(documents: Sequence[dict[str, Any]]) -> str:
    """One table for several runs (`document`s) of one suite: what failed or was not tried, and in
    words every failure."""
    names = [str(one["name"]) for one in documents]
    marks = [{check["id"]: check for check in one["checks"]} for one in documents]
    rows = [f"| check | | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    for check in documents[0]["checks"]:
        verdicts = [found.get(check["id"], {}).get("verdict", "") for found in marks]
        if any(verdict != "passed" for verdict in verdicts):
            cells = [MARKS.get(verdict, "") for verdict in verdicts]
            rows.append(f"| `{check['id']}` | {check['severity']} | {' | '.join(cells)} |")
    passed = [sum(c["verdict"] == "passed" for c in one["checks"]) for one in documents]
    rows.append(f"| all passed | | {' | '.join(map(str, passed))} |")
    rows.append("")
    for one in documents:
        failed = [check for check in one["checks"] if check["verdict"] == "failed"]
        rows += [f"- {one['name']}, `{check['id']}`: {_plain(check['words'])}" for check in failed]
    return "\n".join(rows).rstrip()


def _plain(words: str) -> str:
    """In one line, and not too long a one."""
    line = " ".join(words.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."
