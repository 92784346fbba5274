"""Every agent in every scenario, through the real daemon, and what came of it.

`tests/e2e/test_matrix.py` plays the cells as tests; `python -m tests.e2e.matrix [AGENT...]` plays
them to write docs/agents-matrix.md and docs/agents/. Both call `runner.play`.
"""
