"""What the tests of processes start with."""

import os

import pytest

from bridge.io.process import Family
from tests.peers.processes import MARKER


@pytest.fixture
def env(mark: str) -> dict[str, str]:
    """The environment of a test's children."""
    return {"PATH": os.environ["PATH"], MARKER: mark}


@pytest.fixture(scope="module")
def adopting() -> None:
    """The first spawn of a process makes it adopt orphans, a moment too late for its own."""
    Family()._adopt_orphans()
