"""Shared fixtures: every async test runs on asyncio, uvloop and trio."""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.peers.host import Host
from tests.peers.processes import kill_all, marked

# Two cores are shared by many: how long an example takes says nothing here.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same inputs each time: a commit is green or it is not. `make test EXPLORE=1` looks for others.
settings.register_profile("repeatable", settings.get_profile("shared"), derandomize=True)
settings.load_profile("shared" if os.environ.get("EXPLORE") else "repeatable")

LOOPS = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    pytest.param(("trio", {}), id="trio"),
]


@pytest.fixture(params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param


@pytest.fixture
def mark() -> Iterator[str]:
    """For `MARKER` in the environment of a test's processes, of which none may be left behind."""
    mark = uuid.uuid4().hex
    yield mark
    left = marked(mark)
    kill_all(left)
    assert left == []


Spawn = Callable[..., Host]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Starts real daemons; whatever a failed test leaves of them is ended."""
    hosts: list[Host] = []

    def start(*arguments: str, **options: Any) -> Host:
        host = Host(tmp_path, *arguments, **options)
        hosts.append(host)
        return host

    yield start
    for host in hosts:
        host.dispose()


@pytest.fixture(params=["asyncio", "uvloop", "trio"])
def loop(request: pytest.FixtureRequest) -> str:
    """A daemon's own event loop."""
    return request.param
