"""The official MCP conformance runner, on a conforming server and on the proxy in front of it.

    python -m tests.peers.conformance.compare [--verbose]

Every check of every scenario must have the verdict through the proxy that it has without it, but
for the differences that expected.json names, each with its reason; one of those that does not show
any more is an error too. Servers are compared in three suites, clients in the scenarios that say
anything of what a proxy passes on. Exit code 3 on a difference. Run by `make conformance`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Verdicts = dict[str, str]

ROOT = Path(__file__).parents[3]
MODULES = ROOT / ".peers/node-mcp/node_modules"
STABLE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
NEXT = MODULES / "conformance-next/dist/index.js"
BRIDGE = str(Path(sys.executable).with_name("acp-mcp-bridge"))
EXPECTED = Path(__file__).with_name("expected.json")
_STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")

SERVER_SUITES: dict[str, tuple[Path, list[str]]] = {
    "0.1.16 active": (STABLE, ["--suite", "active"]),
    "0.2.0-alpha.12 2025-11-25": (NEXT, ["--requirements", "2025-11-25"]),
    "0.2.0-alpha.12 2026-07-28": (NEXT, ["--requirements", "2026-07-28"]),
}
CLIENT_SCENARIOS: dict[str, tuple[Path, list[list[str]]]] = {
    "0.1.16": (
        STABLE,
        [["initialize"], ["tools_call"], ["sse-retry"], ["elicitation-sep1034-client-defaults"]],
    ),
    "0.2.0-alpha.12": (
        NEXT,
        [
            *([name, "2025-11-25"] for name in ("initialize", "tools_call", "sse-retry")),
            ["elicitation-sep1034-client-defaults", "2025-11-25"],
            ["json-schema-2020-12-preservation", "2025-11-25"],
            *(
                [name, "2026-07-28"]
                for name in (
                    *("tools_call", "request-metadata", "http-standard-headers"),
                    *("http-custom-headers", "http-invalid-tool-headers"),
                    *("sep-2322-client-request-state", "json-schema-2020-12-preservation"),
                    "json-schema-ref-no-deref",
                )
            ),
        ],
    ),
}


def node() -> str:
    found = sorted((ROOT / ".peers/node/node_modules").glob("node-linux-*/bin/node"))
    return str(found[0]) if found else "node"


@contextmanager
def started(*command: str) -> Generator[Json]:
    """A server, as its ready line presents it."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


@contextmanager
def servers() -> Generator[tuple[str, str]]:
    """A conforming server's URL, and its URL at the proxy."""
    with (
        tempfile.TemporaryDirectory() as directory,
        started(sys.executable, "-m", "tests.peers.conformance.server") as server,
    ):
        file = Path(directory) / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"": {"url": server["url"]}}}))
        with started(BRIDGE, "mcp", "--servers", str(file)) as proxy:
            yield server["url"], proxy["servers"][""]


def run(runner: Path, arguments: list[str], directory: Path) -> str:
    """Runs the runner; what it printed. Its checks are in the directory."""
    environment = {**os.environ, "PATH": f"{Path(node()).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [node(), str(runner), *arguments, "-o", str(directory)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=600,
        check=False,
    )
    return done.stdout + done.stderr


def verdicts(directory: Path) -> Verdicts:
    """`scenario check name` -> its status, from the files of a run."""
    found: Verdicts = {}
    for file in directory.glob("**/checks.json"):
        scenario = _STAMP.sub("", file.parent.name).removeprefix("server-")
        checks = json.loads(file.read_text())
        for check in checks if isinstance(checks, list) else checks["checks"]:
            key = f"{scenario} {check['id']} {check['name']}"
            found[key] = max(found.get(key, ""), check["status"])
    return found


def compared_server(suite: str) -> tuple[Verdicts, Verdicts]:
    runner, arguments = SERVER_SUITES[suite]
    found: list[Verdicts] = []
    with servers() as urls, tempfile.TemporaryDirectory() as directory:
        for name, url in zip(("direct", "proxied"), urls, strict=True):
            run(runner, ["server", "--url", url, *arguments], Path(directory) / name)
            found.append(verdicts(Path(directory) / name))
    return found[0], found[1]


def compared_client(runner: Path, scenario: list[str]) -> tuple[Verdicts, Verdicts]:
    found: list[Verdicts] = []
    name, *version = scenario
    with tempfile.TemporaryDirectory() as directory:
        for way in ("", " --proxy"):
            command = f"{sys.executable} -m tests.peers.conformance.client{way}"
            arguments = ["client", "--command", command, "--scenario", name]
            if version:
                arguments += ["--spec-version", *version]
            place = Path(directory) / (way.strip() or "direct")
            run(runner, arguments, place)
            found.append(verdicts(place))
    return found[0], found[1]


def differences(direct: Verdicts, proxied: Verdicts) -> Json:
    return {
        check: [direct.get(check, "absent"), proxied.get(check, "absent")]
        for check in sorted({*direct, *proxied})
        if direct.get(check) != proxied.get(check)
    }


def main() -> int:
    expected: Json = json.loads(EXPECTED.read_text())
    found: Json = {}
    for suite in SERVER_SUITES:
        direct, proxied = compared_server(suite)
        found[f"server {suite}"] = differences(direct, proxied)
        report(f"server {suite}", direct, proxied)
    for version, (runner, scenarios) in CLIENT_SCENARIOS.items():
        for scenario in scenarios:
            name = f"client {version} {' '.join(scenario)}"
            direct, proxied = compared_client(runner, scenario)
            found[name] = differences(direct, proxied)
            report(name, direct, proxied)
    wrong = 0
    for name in sorted({*found, *expected}):
        listed = {check: entry["verdicts"] for check, entry in expected.get(name, {}).items()}
        for check in sorted({*found.get(name, {}), *listed}):
            seen, wanted = found.get(name, {}).get(check), listed.get(check)
            if seen != wanted:
                wrong += 1
                print(f"{name}: {check}: direct and proxied {seen}, expected {wanted}")
    print("no unexpected difference" if not wrong else f"{wrong} unexpected differences")
    return 3 if wrong else 0


def report(name: str, direct: Verdicts, proxied: Verdicts) -> None:
    def passed(found: Verdicts) -> str:
        return f"{sum(status == 'SUCCESS' for status in found.values())}/{len(found)}"

    print(f"{name}: {passed(direct)} checks pass directly, {passed(proxied)} through the proxy")


if __name__ == "__main__":
    sys.exit(main())
