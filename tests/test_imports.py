"""Cold start is a feature: what the daemon has loaded after a whole turn, and what not."""

import json
from pathlib import Path

import pytest

from tests.peers.agent import scripted
from tests.peers.host import Host

HOOK = """
import atexit, json, os, sys
def dump():
    with open(os.environ["MODULES_DUMP"], "w") as file:
        json.dump(sorted(sys.modules), file)
atexit.register(dump)
"""
NEVER = {
    *("mcp", "httpx", "httpx2", "httpcore", "requests", "aiohttp", "h11", "httptools"),
    *("pydantic", "pydantic_core", "structlog", "rich", "typer", "jsonschema"),
    *("argparse", "tomllib", "email", "http", "urllib.request", "ssl", "xml", "sqlite3"),
    *("multiprocessing", "concurrent.futures.process", "unittest", "pdb", "hypothesis"),
    *("bridge.trace", "bridge.loop_agent", "bridge.client", "bridge.once", "bridge.cli.frame"),
    *("bridge.session.placement", "bridge.session.states", "bridge.agent.profile"),
    *("bridge.agent.files", "bridge.agent.terminals", "bridge.io.httpclient", "conformance"),
}
ONLY_ON = {"trio": {"trio", "attr", "attrs", "outcome"}, "uvloop": {"uvloop"}, "asyncio": set()}
FORCED = {"asyncio": {"ssl"}, "uvloop": {"ssl"}, "trio": {"ssl"}}
"""What the loop's own library loads, whatever we do."""


def loaded_after_a_turn(directory: Path, loop: str) -> set[str]:
    """The modules of a daemon that was started without arguments and ran one prompt."""
    site, dump = directory / "site", directory / "modules.json"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HOOK)
    environment = {"PYTHONPATH": str(site), "MODULES_DUMP": str(dump), "BRIDGE_LOOP": loop}
    with Host(directory, environment=environment) as host:
        host.hello()
        assert host.reply(scripted(), "say hi\ntool t completed\nstderr 100") == "hi"
        host.shutdown()
    return set(json.loads(dump.read_text()))


def test_the_hook_sees_what_a_process_has_loaded(tmp_path: Path) -> None:
    assert {"bridge.app", "bridge.session.session", "anyio"} <= loaded_after_a_turn(
        tmp_path, "trio"
    )


@pytest.mark.parametrize("loop", ["asyncio", "uvloop", "trio"])
def test_a_daemon_that_ran_a_turn_has_loaded_nothing_it_did_not_need(
    tmp_path: Path, loop: str
) -> None:
    loaded = loaded_after_a_turn(tmp_path, loop)
    others = set().union(*(names for other, names in ONLY_ON.items() if other != loop))
    unwanted = (NEVER | (others - ONLY_ON[loop])) - FORCED[loop]
    found = {
        module
        for module in loaded
        if any(module == name or module.startswith(f"{name}.") for name in unwanted)
    }
    assert found == set()
