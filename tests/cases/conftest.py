"""What the case tests share: the real daemon, on each loop, in each way a host may speak to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.peers.host import Host

Spawn = Callable[..., Host]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Starts daemons; whatever a failed test leaves of them is ended."""
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
    """The daemon's own event loop."""
    return request.param


@pytest.fixture(params=["A-packets", "B-packets", "C-packets", "C-lines"])
def talk(request: pytest.FixtureRequest) -> dict[str, str]:
    """Each generation of the host protocol, and the second framing."""
    generation, framing = request.param.split("-")
    return {"generation": generation, "framing": framing}


@dataclass(frozen=True)
class Way:
    """A loop and a way to talk together."""

    loop: str
    talk: dict[str, str]


WAYS = ["asyncio C-packets", "uvloop A-packets", "uvloop C-lines", "trio B-packets"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    """Every loop, generation and framing once, where all their pairs would tell no more."""
    loop, talk = request.param.split(" ")
    generation, framing = talk.split("-")
    return Way(loop, {"generation": generation, "framing": framing})
