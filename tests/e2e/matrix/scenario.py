"""A row of the matrix: a function that plays it on a desk and returns a note on what it saw."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.e2e.matrix.desk import Desk


@dataclass(frozen=True)
class Scenario:
    """A row. `tells`: the note is what the table shows, where the agent can do it."""

    title: str
    play: Callable[[Desk], str]
    tells: bool = False

    @property
    def name(self) -> str:
        return self.play.__name__


def scenario(title: str, *, tells: bool = False) -> Callable[[Callable[[Desk], str]], Scenario]:
    """Makes a row of a function; it fails by an AssertionError whose words are for the table."""
    return lambda play: Scenario(title, play, tells)
