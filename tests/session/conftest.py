"""The real daemon for tests of the session layer: one a module and loop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.host import Host
from tests.session.room import Room

LOOPS = ["asyncio", "uvloop", "trio"]


@pytest.fixture(scope="module", params=LOOPS)
def daemon(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Host]:
    """A daemon on each loop that lives as long as the module's tests; all events subscribed."""
    host = Host(tmp_path_factory.mktemp("daemon"), "--loop", request.param)
    host.hello()
    yield host
    try:
        host.shutdown()
    finally:
        host.dispose()


@pytest.fixture
def room(daemon: Host, tmp_path: Path) -> Iterator[Room]:
    """A session of its own in the module's daemon; closed when the test is over."""
    made = Room(daemon, tmp_path)
    yield made
    made.call("close")


@pytest.fixture
def another(daemon: Host, tmp_path: Path) -> Iterator[Room]:
    """A second session beside `room`."""
    made = Room(daemon, tmp_path)
    yield made
    made.call("close")
