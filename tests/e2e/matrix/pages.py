"""docs/agents-matrix.md and docs/agents/NAME.md, made of the results and the profiles. Pure."""

from collections.abc import Iterator
from typing import Any

from bridge.agent import placeholders, profile
from protocol_schemas.profile import Profile
from tests.e2e.matrix.agents import AGENTS, LEFT_OUT
from tests.e2e.matrix.runner import SCENARIOS
from tests.e2e.matrix.scenario import Scenario

Json = dict[str, Any]
MADE = "Made by `python -m tests.e2e.matrix` from what the runs saw; not to be written by hand."
NOT_PLAYED = "it has not been run yet"
NOTHING = {"verdict": "not run", "note": "", "seconds": 0.0}
TOLD = {
    "the model's address": {"model.url"},
    "its key": {"model.key"},
    "its name": {"model.name"},
    "the system prompt": {"system_prompt"},
    "MCP servers": {"mcp.servers"},
    "tools switched off": {"disabled_tools", "disabled_rules"},
}


def every(results: Json) -> dict[str, str]:
    """Each page's text, by its path in docs/."""
    pages = {f"agents/{name}.md": agent_page(name, results[name]) for name in _run(results)}
    return {"agents-matrix.md": matrix_page(results)} | pages


def _run(results: Json) -> list[str]:
    return [name for name in AGENTS if name in results]


def matrix_page(results: Json) -> str:
    names = _run(results)
    lines = [
        "# What each agent can do",
        "",
        MADE,
        "",
        "Each cell is an agent of the registry, unchanged, started by `config.agent`, behind a",
        "daemon of its own, with a scripted model and a real MCP server on loopback: what it says",
        "is held against what reached those servers. `not offered`: it has no such thing, or",
        "does not advertise it. `not run`: an agent that takes a minute to start was not played in",
        "every scenario.",
        "",
        _row(["", *(f"[{name}](agents/{name}.md)" for name in names)]),
        _row(["---"] * (len(names) + 1)),
        _row(["version", *(_versions(results[name]) for name in names)]),
        _row(["model wire", *(results[name]["wire"] for name in names)]),
    ]
    for row in SCENARIOS.values():
        lines.append(_row([row.title, *(shown(name, row, results[name]) for name in names)]))
    lines += ["", *(f"{name}: {words}" for name, words in _runs(results)), ""]
    missing = [name for name in profile.names({"HOME": "/nonexistent"}) if name not in names]
    why = {name: LEFT_OUT.get(name, NOT_PLAYED) for name in missing}
    lines += [f"- `{name}` is not in the table: {words}." for name, words in why.items()]
    return "\n".join(lines).rstrip() + "\n"


def _runs(results: Json) -> Iterator[tuple[str, str]]:
    """Which agents were run when and where, agents of one run together."""
    runs: dict[str, list[str]] = {}
    for name in _run(results):
        runs.setdefault(_when(results[name]), []).append(f"`{name}`")
    for when, names in runs.items():
        yield ", ".join(names), f"{when}.  "


def _when(result: Json) -> str:
    return f"{result['date']}, {result['machine']}, acp-mcp-bridge {result['bridge']}"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _versions(result: Json) -> str:
    return ", ".join(result["versions"].values())


def shown(name: str, row: Scenario, result: Json) -> str:
    """A cell as the table has it: a verdict, with the reason if it is none that one hopes for."""
    cell = result["cells"].get(row.name, NOTHING)
    verdict, note = cell["verdict"], cell["note"]
    if verdict == "works":
        return note if row.tells else verdict
    if verdict == "not offered" or not note:
        return verdict
    return f"{verdict}: {AGENTS[name].nature.get(row.name, note)}"


def agent_page(name: str, result: Json) -> str:
    found = profile.load(name, {})
    cells = result["cells"]
    packages = ", ".join(f"{p} {version}" for p, version in result["versions"].items())
    lines = [
        f"# {found.title}",
        "",
        MADE,
        "",
        found.docs.strip(),
        "",
        f"    acp-mcp-bridge agents install {name}",
        f"    acp-mcp-bridge agents run {name}",
        "",
        f"{packages}; {_when(result)}. It was driven on the {result['wire']} wire; it can speak",
        f"{', '.join(found.wires)}.",
        "",
        "## How it is told things",
        "",
        "| | |",
        "|---|---|",
        *(_row([what, places]) for what, places in told(found)),
        "",
        "## What was seen",
        "",
        "| | | |",
        "|---|---|---|",
    ]
    for row in SCENARIOS.values():
        cell = cells.get(row.name, NOTHING)
        lines.append(_row([row.title, cell["verdict"], cell["note"]]))
    nature = AGENTS[name].nature
    if nature:
        lines += ["", "## Why some of it fails", ""]
        lines += [f"- {SCENARIOS[key].title}: {why}" for key, why in nature.items()]
    return "\n".join(lines) + "\n"


def told(found: Profile) -> Iterator[tuple[str, str]]:
    """What a host says of a session, and where the profile puts it."""
    yield "started by", f"`{' '.join(found.launch.command)}`"
    for what, names in TOLD.items():
        places = list(_places(found, names))
        yield what, ", ".join(places) or _otherwise(what, found)
    if found.session.mode is not None:
        yield "mode", f"`{found.session.mode}`, set after `session/new`"


def _places(found: Profile, names: set[str]) -> Iterator[str]:
    launch = found.launch
    if names & placeholders.used(launch.command):
        yield "its command line"
    for variable, template in launch.environment.items():
        if names & placeholders.used(template):
            yield f"`{variable}` in its environment"
    for file in found.files:
        if not file.executable and names & placeholders.used([file.text, file.json, file.toml]):
            yield f"its file `{file.path}`"
    if names & placeholders.used(found.session.meta):
        yield (
            "`_meta` of `session/new`, where it does not advertise `systemPrompt`"
            if names == {"system_prompt"}
            else "`_meta` of `session/new`"
        )


def _otherwise(what: str, found: Profile) -> str:
    if what == "MCP servers":
        return "`session/new`" if found.mcp.via == "acp" else "no way"
    if what == "the system prompt":
        return "`session/new`, where it advertises `systemPrompt`; else before the first prompt"
    return "no way" if what == "tools switched off" else "nothing"
