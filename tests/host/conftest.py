"""The real daemon for tests of what hosts say and hear."""

from tests.session.conftest import loop, spawn

__all__ = ["loop", "spawn"]
