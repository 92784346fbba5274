"""Tells where the browser's screenshots are, if the run made any."""

import time
from typing import Any

from tests.trace.test_html import SHOTS

_BEGUN = time.time()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    made = [shot for shot in SHOTS.glob("*.png") if shot.stat().st_mtime >= _BEGUN]
    if made:
        terminalreporter.write_line(f"screenshots: {SHOTS} ({len(made)})")
