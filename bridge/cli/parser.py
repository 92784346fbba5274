"""The argument parser of all commands: what it does not understand is one line, with what to do.

Rule: the line names the command that was given, what is wrong, the option that may have been meant,
and the help that has the rest; exit code 2. Used by `bridge.cli.frame`, for subcommands too.
"""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from bridge.errors import meant


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` with other words for errors."""

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """argparse leaves a subcommand's unknown arguments to the top, which cannot say more."""
        into = argparse.Namespace() if namespace is None else namespace
        found, unknown = super().parse_known_args(args, into)
        unknown = self._gathered(found, unknown)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._hint(unknown[0])}")
        return found, unknown

    def _gathered(self, found: argparse.Namespace, unknown: list[str]) -> list[str]:
        """argparse ends a list of words at the first option behind it; the rest belongs to it too.
        What is left is unknown."""
        names = [a.dest for a in self._actions if not a.option_strings and a.nargs == "*"]
        at = unknown.index("--") if "--" in unknown else len(unknown)
        before, behind = unknown[:at], unknown[at + 1 :]
        if not names or any(item.startswith("-") for item in before):
            return unknown
        setattr(found, names[-1], [*(getattr(found, names[-1]) or []), *before, *behind])
        return []

    def error(self, message: str) -> NoReturn:
        stop = "" if message.endswith("?") else ";"
        self.exit(2, f"{self.prog}: {message}{stop} see: {self.prog} --help\n")

    def _hint(self, unknown: str) -> str:
        hint = meant(unknown.partition("=")[0], self._option_string_actions)
        starts = any(str(action.metavar).startswith("-- ") for action in self._actions)
        if not hint and starts:
            return "; a command to be started stands behind --, with its own options"
        return hint
