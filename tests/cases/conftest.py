"""What the case tests share: the real daemon, on each loop, in each way a host may speak to it."""

from dataclasses import dataclass

import pytest

from tests.conftest import Spawn

__all__ = ["Spawn", "Way"]


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
